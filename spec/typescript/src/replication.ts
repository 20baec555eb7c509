// Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

/**
 * Streaming replication envelope: what they hold, and how they are read and built.
 *
 * Source: PostgreSQL's documentation, protocol-replication.
 *
 * @module
 */

import * as wire from "./wire.js";

/** What determines the layout of a message besides its bytes. */
export interface Layout {}

/**
 * A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface XLogData {
  message: "XLogData";
  /** LSN of the message, 0/0 for Relation, Type and what an Origin follows. */
  walStart: wire.Lsn;
  /** In logical replication, the same as wal_start. */
  walEnd: wire.Lsn;
  /** The server's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
  /** The payload, to the end. */
  data: Uint8Array;
}

function readXLogData(r: wire.Reader): XLogData {
  r.byte("tag", 119);
  const walStart = r.uint64("wal_start");
  const walEnd = r.uint64("wal_end");
  const sendTime = r.int64("send_time");
  const data_ = r.rest("data");
  return { message: "XLogData", walStart, walEnd, sendTime, data: data_ };
}

function writeXLogData(w: wire.Writer, m: XLogData): void {
  w.raw([119]);
  w.uint("wal_start", 8, m.walStart);
  w.uint("wal_end", 8, m.walEnd);
  w.int("send_time", 8, m.sendTime);
  w.bytes("data", m.data);
}

function jsonXLogData(m: XLogData, layout: Layout): wire.Json {
  void layout;
  return {
    wal_start: wire.lsnText(m.walStart),
    wal_end: wire.lsnText(m.walEnd),
    send_time: wire.timestampText(m.sendTime),
    data: wire.jsonHex("hex", m.data),
  };
}

/**
 * Reports how far the server has read its WAL.
 *
 * PostgreSQL 10 and newer, sent by the server.
 */
export interface PrimaryKeepalive {
  message: "PrimaryKeepalive";
  /** End of the WAL that the server has sent. */
  walEnd: wire.Lsn;
  /** The server's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
  /** 1 asks for a status update at once. */
  replyRequested: number;
}

/** The values of replyRequested of PrimaryKeepalive. */
export const PrimaryKeepaliveReplyRequested = {
  /** No reply is needed. */
  NO_REPLY_IS_NEEDED: 0,
  /** Reply at once. */
  REPLY_AT_ONCE: 1,
} as const;

function readPrimaryKeepalive(r: wire.Reader): PrimaryKeepalive {
  r.byte("tag", 107);
  const walEnd = r.uint64("wal_end");
  const sendTime = r.int64("send_time");
  const replyRequested = r.oneOf("reply_requested", 1, r.uint8("reply_requested"), 0, 1);
  return { message: "PrimaryKeepalive", walEnd, sendTime, replyRequested };
}

function writePrimaryKeepalive(w: wire.Writer, m: PrimaryKeepalive): void {
  w.raw([107]);
  w.uint("wal_end", 8, m.walEnd);
  w.int("send_time", 8, m.sendTime);
  w.uint("reply_requested", 1, w.oneOf("reply_requested", m.replyRequested, 0, 1));
}

function jsonPrimaryKeepalive(m: PrimaryKeepalive, layout: Layout): wire.Json {
  void layout;
  return {
    wal_end: wire.lsnText(m.walEnd),
    send_time: wire.timestampText(m.sendTime),
    reply_requested: m.replyRequested,
  };
}

/**
 * Answers a status request: how far the primary has come.
 *
 * PostgreSQL 19 and newer, sent by the server.
 */
export interface PrimaryStatusUpdate {
  message: "PrimaryStatusUpdate";
  /** Latest WAL position of the primary. */
  lsn: wire.Lsn;
  /** Oldest transaction that is committing on the primary. */
  oldestFullXid: bigint;
  /** Next transaction ID to be assigned. */
  nextFullXid: bigint;
  /** The server's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
}

function readPrimaryStatusUpdate(r: wire.Reader): PrimaryStatusUpdate {
  r.byte("tag", 115);
  const lsn = r.uint64("lsn");
  const oldestFullXid = r.uint64("oldest_full_xid");
  const nextFullXid = r.uint64("next_full_xid");
  const sendTime = r.int64("send_time");
  return { message: "PrimaryStatusUpdate", lsn, oldestFullXid, nextFullXid, sendTime };
}

function writePrimaryStatusUpdate(w: wire.Writer, m: PrimaryStatusUpdate): void {
  w.raw([115]);
  w.uint("lsn", 8, m.lsn);
  w.uint("oldest_full_xid", 8, m.oldestFullXid);
  w.uint("next_full_xid", 8, m.nextFullXid);
  w.int("send_time", 8, m.sendTime);
}

function jsonPrimaryStatusUpdate(m: PrimaryStatusUpdate, layout: Layout): wire.Json {
  void layout;
  return {
    lsn: wire.lsnText(m.lsn),
    oldest_full_xid: m.oldestFullXid,
    next_full_xid: m.nextFullXid,
    send_time: wire.timestampText(m.sendTime),
  };
}

/**
 * Confirms what the client has received and made durable.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface StandbyStatusUpdate {
  message: "StandbyStatusUpdate";
  /** LSN after the last byte received. */
  writeLsn: wire.Lsn;
  /** LSN after the last byte made durable; only this moves the slot. */
  flushLsn: wire.Lsn;
  /** LSN after the last byte applied. */
  applyLsn: wire.Lsn;
  /** The client's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
  /** 1 asks the server for a keepalive at once. */
  replyRequested: number;
}

/** The values of replyRequested of StandbyStatusUpdate. */
export const StandbyStatusUpdateReplyRequested = {
  /** No reply is needed. */
  NO_REPLY_IS_NEEDED: 0,
  /** Reply at once. */
  REPLY_AT_ONCE: 1,
} as const;

function readStandbyStatusUpdate(r: wire.Reader): StandbyStatusUpdate {
  r.byte("tag", 114);
  const writeLsn = r.uint64("write_lsn");
  const flushLsn = r.uint64("flush_lsn");
  const applyLsn = r.uint64("apply_lsn");
  const sendTime = r.int64("send_time");
  const replyRequested = r.oneOf("reply_requested", 1, r.uint8("reply_requested"), 0, 1);
  return { message: "StandbyStatusUpdate", writeLsn, flushLsn, applyLsn, sendTime, replyRequested };
}

function writeStandbyStatusUpdate(w: wire.Writer, m: StandbyStatusUpdate): void {
  w.raw([114]);
  w.uint("write_lsn", 8, m.writeLsn);
  w.uint("flush_lsn", 8, m.flushLsn);
  w.uint("apply_lsn", 8, m.applyLsn);
  w.int("send_time", 8, m.sendTime);
  w.uint("reply_requested", 1, w.oneOf("reply_requested", m.replyRequested, 0, 1));
}

function jsonStandbyStatusUpdate(m: StandbyStatusUpdate, layout: Layout): wire.Json {
  void layout;
  return {
    write_lsn: wire.lsnText(m.writeLsn),
    flush_lsn: wire.lsnText(m.flushLsn),
    apply_lsn: wire.lsnText(m.applyLsn),
    send_time: wire.timestampText(m.sendTime),
    reply_requested: m.replyRequested,
  };
}

/**
 * Reports which transactions a standby still needs.
 *
 * PostgreSQL 10 and newer, sent by the client.
 */
export interface HotStandbyFeedback {
  message: "HotStandbyFeedback";
  /** The client's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
  /** Oldest transaction the standby needs, 0 when it needs none. */
  xmin: number;
  /** Epoch of xmin. */
  xminEpoch: number;
  /** Oldest transaction its slots need in catalogs, 0 when they need none. */
  catalogXmin: number;
  /** Epoch of catalog_xmin. */
  catalogXminEpoch: number;
}

function readHotStandbyFeedback(r: wire.Reader): HotStandbyFeedback {
  r.byte("tag", 104);
  const sendTime = r.int64("send_time");
  const xmin = r.uint32("xmin");
  const xminEpoch = r.uint32("xmin_epoch");
  const catalogXmin = r.uint32("catalog_xmin");
  const catalogXminEpoch = r.uint32("catalog_xmin_epoch");
  return { message: "HotStandbyFeedback", sendTime, xmin, xminEpoch, catalogXmin, catalogXminEpoch };
}

function writeHotStandbyFeedback(w: wire.Writer, m: HotStandbyFeedback): void {
  w.raw([104]);
  w.int("send_time", 8, m.sendTime);
  w.uint("xmin", 4, m.xmin);
  w.uint("xmin_epoch", 4, m.xminEpoch);
  w.uint("catalog_xmin", 4, m.catalogXmin);
  w.uint("catalog_xmin_epoch", 4, m.catalogXminEpoch);
}

function jsonHotStandbyFeedback(m: HotStandbyFeedback, layout: Layout): wire.Json {
  void layout;
  return {
    send_time: wire.timestampText(m.sendTime),
    xmin: m.xmin,
    xmin_epoch: m.xminEpoch,
    catalog_xmin: m.catalogXmin,
    catalog_xmin_epoch: m.catalogXminEpoch,
  };
}

/**
 * Asks the primary for a status update.
 *
 * PostgreSQL 19 and newer, sent by the client.
 */
export interface PrimaryStatusRequest {
  message: "PrimaryStatusRequest";
  /** The client's clock when it sent this, in microseconds since 2000-01-01 UTC. */
  sendTime: wire.Timestamp;
}

function readPrimaryStatusRequest(r: wire.Reader): PrimaryStatusRequest {
  r.byte("tag", 112);
  const sendTime = r.int64("send_time");
  return { message: "PrimaryStatusRequest", sendTime };
}

function writePrimaryStatusRequest(w: wire.Writer, m: PrimaryStatusRequest): void {
  w.raw([112]);
  w.int("send_time", 8, m.sendTime);
}

function jsonPrimaryStatusRequest(m: PrimaryStatusRequest, layout: Layout): wire.Json {
  void layout;
  return {
    send_time: wire.timestampText(m.sendTime),
  };
}

/** Any of the messages. */
export type Frame =
  XLogData | PrimaryKeepalive | PrimaryStatusUpdate | StandbyStatusUpdate | HotStandbyFeedback | PrimaryStatusRequest;

/** The names of the messages, in the order of the specification. */
export const NAMES: readonly string[] = [
  "XLogData",
  "PrimaryKeepalive",
  "PrimaryStatusUpdate",
  "StandbyStatusUpdate",
  "HotStandbyFeedback",
  "PrimaryStatusRequest",
];

/** Return a message as JSON, as the golden vectors have it; numbers of 64 bits are bigint. */
export function toJson(message: Frame, layout: Layout): wire.Json {
  return { message: message.message, ...(jsonFields(message, layout) as object) };
}

function jsonFields(message: Frame, layout: Layout): wire.Json {
  switch (message.message) {
    case "XLogData":
      return jsonXLogData(message, layout);
    case "PrimaryKeepalive":
      return jsonPrimaryKeepalive(message, layout);
    case "PrimaryStatusUpdate":
      return jsonPrimaryStatusUpdate(message, layout);
    case "StandbyStatusUpdate":
      return jsonStandbyStatusUpdate(message, layout);
    case "HotStandbyFeedback":
      return jsonHotStandbyFeedback(message, layout);
    case "PrimaryStatusRequest":
      return jsonPrimaryStatusRequest(message, layout);
  }
}

/** Build a message. */
export function build(message: Frame, layout: Layout): Uint8Array {
  void layout;
  const w = new wire.Writer(message.message);
  switch (message.message) {
    case "XLogData":
      writeXLogData(w, message);
      break;
    case "PrimaryKeepalive":
      writePrimaryKeepalive(w, message);
      break;
    case "PrimaryStatusUpdate":
      writePrimaryStatusUpdate(w, message);
      break;
    case "StandbyStatusUpdate":
      writeStandbyStatusUpdate(w, message);
      break;
    case "HotStandbyFeedback":
      writeHotStandbyFeedback(w, message);
      break;
    case "PrimaryStatusRequest":
      writePrimaryStatusRequest(w, message);
      break;
    default:
      w.possible("", false);
  }
  return w.finish();
}

/**
 * Parse a message. Truncated, trailing or unknown bytes, values that are not defined, and messages
 * that are not sent under these options throw a WireError with the path of the field and the
 * offset. Bytes of the message share the memory of the payload.
 */
export function parse(payload: Uint8Array, layout: Layout, trace?: wire.Trace): Frame {
  void layout;
  const r = new wire.Reader(payload, trace);
  let message: Frame;
  switch (r.first()) {
    case 119: // w
      r.begin("XLogData");
      message = readXLogData(r);
      break;
    case 107: // k
      r.begin("PrimaryKeepalive");
      message = readPrimaryKeepalive(r);
      break;
    case 115: // s
      r.begin("PrimaryStatusUpdate");
      message = readPrimaryStatusUpdate(r);
      break;
    case 114: // r
      r.begin("StandbyStatusUpdate");
      message = readStandbyStatusUpdate(r);
      break;
    case 104: // h
      r.begin("HotStandbyFeedback");
      message = readHotStandbyFeedback(r);
      break;
    case 112: // p
      r.begin("PrimaryStatusRequest");
      message = readPrimaryStatusRequest(r);
      break;
    default:
      return r.unknownTag();
  }
  r.end();
  return message;
}

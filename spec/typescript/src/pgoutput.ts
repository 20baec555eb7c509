// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

/**
 * Logical replication messages: what they hold, and how they are read and built.
 *
 * Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.
 *
 * @module
 */

import * as wire from "./wire.js";

/** What determines the layout of a message besides its bytes. */
export interface Layout {
  /** The option proto_version of START_REPLICATION. */
  protoVersion: number;
  /** A state: between Stream Start and Stream Stop. */
  inStream: boolean;
  /** The option streaming is set to 'parallel'. */
  parallel: boolean;
  /** Whether the option streaming was requested. */
  hasStreaming: boolean;
}

/** The options on which layouts depend. */
export interface Options {
  /** The protocol version. */
  protoVersion: number;
  /** How transactions are sent that are still running. */
  streaming?: "off" | "on" | "parallel";
}

/**
 * Set an option by its name. A name that determines no layout, or a value that the option does not
 * have, throws a WireError; whether a server accepts them together, checkOptions says.
 */
export function setOption(options: Options, name: string, value: string): void {
  switch (name) {
    case "proto_version":
      options.protoVersion = wire.optionNumber(name, value);
      break;
    case "streaming":
      options.streaming = wire.optionValue(name, value, ["off", "on", "parallel"]);
      break;
    default:
      throw wire.unknownOption(name);
  }
}

/** Throw a WireError for options that a server refuses. */
export function checkOptions(options: Options): void {
  wire.check([1, 2, 3, 4].includes(options.protoVersion), "proto_version");
  wire.check(["off", "on", "parallel", undefined].includes(options.streaming), "streaming");
  wire.check(options.streaming !== "on" || options.protoVersion >= 2, "streaming");
  wire.check(options.streaming !== "parallel" || options.protoVersion >= 4, "streaming");
}

/**
 * The bit of a parameter that states of a stream set. A state: between Stream Start and Stream
 * Stop.
 */
export const IN_STREAM = 1;

/** The names of these parameters, by the number of their bits. */
export const STATE_PARAMETERS: readonly string[] = ["in_stream"];

/**
 * Return the layout of messages under options, in a state of the stream: `sets` are the parameters
 * that it sets, as bits; 0 if it sets none.
 */
export function layoutOf(options: Options, sets: number): Layout {
  return {
    protoVersion: options.protoVersion,
    inStream: (sets & IN_STREAM) !== 0,
    parallel: options.streaming === "parallel",
    hasStreaming: (options.streaming ?? "off") !== "off",
  };
}

/** The parameters that each state of a stream sets, as bits: idle, transaction, preparing, stream. */
const SETS: readonly number[] = [0, 0, 0, 1];

/** The states in which each message is permitted, each with the one that follows. */
// prettier-ignore
const TRANSITIONS: readonly (readonly (readonly [number, number])[])[] = [
  [[0, 1]], // Begin
  [[0, 0], [1, 1], [2, 2], [3, 3]], // Message
  [[1, 0]], // Commit
  [[1, 1], [2, 2], [3, 3]], // Origin
  [[1, 1], [2, 2], [3, 3]], // Relation
  [[1, 1], [2, 2], [3, 3]], // Type
  [[1, 1], [2, 2], [3, 3]], // Insert
  [[1, 1], [2, 2], [3, 3]], // Update
  [[1, 1], [2, 2], [3, 3]], // Delete
  [[1, 1], [2, 2], [3, 3]], // Truncate
  [[0, 3]], // StreamStart
  [[3, 0]], // StreamStop
  [[0, 0]], // StreamCommit
  [[0, 0]], // StreamAbort
  [[0, 2]], // BeginPrepare
  [[0, 0], [2, 0]], // Prepare
  [[0, 0]], // CommitPrepared
  [[0, 0]], // RollbackPrepared
  [[0, 0]], // StreamPrepare
];

/** Parses and builds the messages of one connection in their order, by the state of the stream. */
export class Session {
  private readonly state = new wire.StreamState(SETS, TRANSITIONS);
  private sets = -1;
  private known!: Layout;

  /** Start a session; options that a server refuses throw a WireError. */
  constructor(private readonly options: Options) {
    checkOptions(options);
  }

  /** The layout of the next message. */
  get layout(): Layout {
    const sets = this.state.sets;
    if (sets !== this.sets) this.known = layoutOf(this.options, sets);
    this.sets = sets;
    return this.known;
  }

  /** Parse the next message; an error leaves the state unchanged. */
  parse(payload: Uint8Array): PgoutputMessage {
    const message = parse(payload, this.layout);
    this.state.advance(INDEXES[message.message], message.message);
    return message;
  }

  /** Build the next message; an error leaves the state unchanged. */
  build(message: PgoutputMessage): Uint8Array {
    const payload = build(message, this.layout);
    this.state.advance(INDEXES[message.message], message.message);
    return payload;
  }
}

/** The format of the value. The tag is its kind. */
export type TupleDataValue =
  /** NULL. */
  | { kind: "n" }
  /** An unchanged TOASTed value, which is not sent. */
  | { kind: "u" }
  /** The value as text, by its type's output function. */
  | { kind: "t"; value: Uint8Array }
  /** The value as binary, by its type's send function; under the option binary. */
  | { kind: "b"; value: Uint8Array };

function readTupleDataValue(r: wire.Reader): TupleDataValue {
  switch (r.uint8("")) {
    case 110: // n
      return { kind: "n" };
    case 117: // u
      return { kind: "u" };
    case 116: // t
      return { kind: "t", value: readTupleDataValueText(r) };
    case 98: // b
      return { kind: "b", value: readTupleDataValueBinary(r) };
    default:
      return r.unknownKind("");
  }
}

function writeTupleDataValue(w: wire.Writer, m: TupleDataValue): void {
  w.letter("", m.kind, "nutb");
  switch (m.kind) {
    case "t":
      writeTupleDataValueText(w, m.value);
      break;
    case "b":
      writeTupleDataValueBinary(w, m.value);
      break;
  }
}

function jsonTupleDataValue(m: TupleDataValue, layout: Layout): wire.Json {
  void layout;
  switch (m.kind) {
    case "n":
      return null;
    case "u":
      return { unchanged: true };
    case "t":
      return wire.jsonTextOrHex("text", m.value);
    case "b":
      return wire.jsonHex("binary", m.value);
  }
}

function readTupleDataValueText(r: wire.Reader): Uint8Array {
  const length = r.uint32("length");
  const data_ = r.bytes("data", length);
  return data_;
}

function writeTupleDataValueText(w: wire.Writer, m: Uint8Array): void {
  w.uint("length", 4, m.length);
  w.bytes("data", m);
}

function readTupleDataValueBinary(r: wire.Reader): Uint8Array {
  const length = r.uint32("length");
  const data_ = r.bytes("data", length);
  return data_;
}

function writeTupleDataValueBinary(w: wire.Writer, m: Uint8Array): void {
  w.uint("length", 4, m.length);
  w.bytes("data", m);
}

/** The values of one row, or of its key. */
export type TupleData = TupleDataValue[];

function readTupleData(r: wire.Reader): TupleDataValue[] {
  const columnCount = r.uint16("column_count");
  const columns = r.items("columns", Number(columnCount), () => readTupleDataValue(r));
  return columns;
}

function writeTupleData(w: wire.Writer, m: TupleDataValue[]): void {
  w.uint("column_count", 2, m.length);
  w.items("columns", m, (item) => writeTupleDataValue(w, item));
}

function jsonTupleData(m: TupleData, layout: Layout): wire.Json {
  return m.map((item) => jsonTupleDataValue(item, layout));
}

/**
 * Opens a transaction that has committed; its changes follow.
 *
 * PostgreSQL 10 and newer.
 */
export interface Begin {
  message: "Begin";
  /** LSN of the commit record, the same as Commit's commit_lsn. */
  finalLsn: wire.Lsn;
  /** Time of the commit, in microseconds since 2000-01-01 UTC. */
  commitTime: wire.Timestamp;
  /** Transaction ID. */
  xid: number;
}

function readBegin(r: wire.Reader): Begin {
  r.byte("tag", 66);
  const finalLsn = r.uint64("final_lsn");
  const commitTime = r.int64("commit_time");
  const xid = r.uint32("xid");
  return { message: "Begin", finalLsn, commitTime, xid };
}

function writeBegin(w: wire.Writer, m: Begin): void {
  w.raw([66]);
  w.uint("final_lsn", 8, m.finalLsn);
  w.int("commit_time", 8, m.commitTime);
  w.uint("xid", 4, m.xid);
}

function jsonBegin(m: Begin, layout: Layout): wire.Json {
  void layout;
  return {
    final_lsn: wire.lsnText(m.finalLsn),
    commit_time: wire.timestampText(m.commitTime),
    xid: m.xid,
  };
}

/**
 * A message written by pg_logical_emit_message(), sent when the option messages is on.
 *
 * PostgreSQL 14 and newer.
 */
export interface Message {
  message: "Message";
  /** Top-level transaction ID, present only inside a stream. */
  xid: number | null;
  /** Bit 1 is set when the message belongs to a transaction. */
  flags: number;
  /** LSN of the message. */
  lsn: wire.Lsn;
  /** Prefix given by the writer. */
  prefix: wire.Text;
  /** Content given by the writer, never converted to the client's encoding. */
  content: Uint8Array;
}

/** The bits of flags of Message. */
export const MessageFlags = {
  /** Transactional. */
  TRANSACTIONAL: 1,
} as const;

function readMessage(r: wire.Reader, layout: Layout): Message {
  r.byte("tag", 77);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const flags = r.bits("flags", 1, r.uint8("flags"), 0x1);
  const lsn = r.uint64("lsn");
  const prefix = r.text("prefix");
  const contentLength = r.uint32("content_length");
  const content = r.bytes("content", contentLength);
  return { message: "Message", xid, flags, lsn, prefix, content };
}

function writeMessage(w: wire.Writer, m: Message, layout: Layout): void {
  w.raw([77]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("flags", 1, w.bits("flags", m.flags, 0x1));
  w.uint("lsn", 8, m.lsn);
  w.text("prefix", m.prefix);
  w.uint("content_length", 4, m.content.length);
  w.bytes("content", m.content);
}

function jsonMessage(m: Message, layout: Layout): wire.Json {
  void layout;
  return {
    xid: m.xid === null ? null : m.xid,
    flags: m.flags,
    lsn: wire.lsnText(m.lsn),
    prefix: wire.jsonText(m.prefix),
    content: wire.jsonHex("hex", m.content),
  };
}

/**
 * Ends a transaction.
 *
 * PostgreSQL 10 and newer.
 */
export interface Commit {
  message: "Commit";
  /** LSN at which the commit record starts. */
  commitLsn: wire.Lsn;
  /** LSN after the commit record: the position to confirm. */
  endLsn: wire.Lsn;
  /** Time of the commit, in microseconds since 2000-01-01 UTC. */
  commitTime: wire.Timestamp;
}

function readCommit(r: wire.Reader): Commit {
  r.byte("tag", 67);
  r.byte("flags", 0);
  const commitLsn = r.uint64("commit_lsn");
  const endLsn = r.uint64("end_lsn");
  const commitTime = r.int64("commit_time");
  return { message: "Commit", commitLsn, endLsn, commitTime };
}

function writeCommit(w: wire.Writer, m: Commit): void {
  w.raw([67]);
  w.raw([0]);
  w.uint("commit_lsn", 8, m.commitLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("commit_time", 8, m.commitTime);
}

function jsonCommit(m: Commit, layout: Layout): wire.Json {
  void layout;
  return {
    commit_lsn: wire.lsnText(m.commitLsn),
    end_lsn: wire.lsnText(m.endLsn),
    commit_time: wire.timestampText(m.commitTime),
  };
}

/**
 * Names the replication origin of the transaction that has just begun.
 *
 * PostgreSQL 10 and newer.
 */
export interface Origin {
  message: "Origin";
  /** LSN of the transaction's commit on its origin, 0/0 inside a stream. */
  originLsn: wire.Lsn;
  /** Name of the origin. */
  name: wire.Text;
}

function readOrigin(r: wire.Reader): Origin {
  r.byte("tag", 79);
  const originLsn = r.uint64("origin_lsn");
  const name = r.text("name");
  return { message: "Origin", originLsn, name };
}

function writeOrigin(w: wire.Writer, m: Origin): void {
  w.raw([79]);
  w.uint("origin_lsn", 8, m.originLsn);
  w.text("name", m.name);
}

function jsonOrigin(m: Origin, layout: Layout): wire.Json {
  void layout;
  return {
    origin_lsn: wire.lsnText(m.originLsn),
    name: wire.jsonText(m.name),
  };
}

/** One published column of the table. */
export interface RelationColumn {
  /** Bit 1 is set when the column is part of the replica identity. */
  flags: number;
  /** Name of the column. */
  name: wire.Text;
  /** OID of the column's type. */
  typeOid: number;
  /** Type modifier, as atttypmod in pg_attribute; -1 for none. */
  typeModifier: number;
}

/** The bits of flags of RelationColumn. */
export const RelationColumnFlags = {
  /** Key. */
  KEY: 1,
} as const;

function readRelationColumn(r: wire.Reader): RelationColumn {
  const flags = r.bits("flags", 1, r.uint8("flags"), 0x1);
  const name = r.text("name");
  const typeOid = r.uint32("type_oid");
  const typeModifier = r.int32("type_modifier");
  return { flags, name, typeOid, typeModifier };
}

function writeRelationColumn(w: wire.Writer, m: RelationColumn): void {
  w.uint("flags", 1, w.bits("flags", m.flags, 0x1));
  w.text("name", m.name);
  w.uint("type_oid", 4, m.typeOid);
  w.int("type_modifier", 4, m.typeModifier);
}

function jsonRelationColumn(m: RelationColumn, layout: Layout): wire.Json {
  void layout;
  return {
    flags: m.flags,
    name: wire.jsonText(m.name),
    type_oid: m.typeOid,
    type_modifier: m.typeModifier,
  };
}

/**
 * Describes a table before its first change.
 *
 * PostgreSQL 10 and newer.
 */
export interface Relation {
  message: "Relation";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** OID of the table. */
  relationOid: number;
  /** Schema of the table, empty for pg_catalog. */
  namespace: wire.Text;
  /** Name of the table. */
  name: wire.Text;
  /** Replica identity setting, as relreplident in pg_class. */
  replicaIdentity: string;
  /** One published column of the table. */
  columns: RelationColumn[];
}

/** The values of replicaIdentity of Relation. */
export const RelationReplicaIdentity = {
  /** Default. */
  DEFAULT: "d",
  /** Nothing. */
  NOTHING: "n",
  /** Full. */
  FULL: "f",
  /** Index. */
  INDEX: "i",
} as const;

function readRelation(r: wire.Reader, layout: Layout): Relation {
  r.byte("tag", 82);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const relationOid = r.uint32("relation_oid");
  const namespace = r.text("namespace");
  const name = r.text("name");
  const replicaIdentity = r.letter("replica_identity", "dnfi");
  const columnCount = r.uint16("column_count");
  const columns = r.items("columns", Number(columnCount), () => readRelationColumn(r));
  return { message: "Relation", xid, relationOid, namespace, name, replicaIdentity, columns };
}

function writeRelation(w: wire.Writer, m: Relation, layout: Layout): void {
  w.raw([82]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("relation_oid", 4, m.relationOid);
  w.text("namespace", m.namespace);
  w.text("name", m.name);
  w.letter("replica_identity", m.replicaIdentity, "dnfi");
  w.uint("column_count", 2, m.columns.length);
  w.items("columns", m.columns, (item) => writeRelationColumn(w, item));
}

function jsonRelation(m: Relation, layout: Layout): wire.Json {
  return {
    xid: m.xid === null ? null : m.xid,
    relation_oid: m.relationOid,
    namespace: wire.jsonText(m.namespace),
    name: wire.jsonText(m.name),
    replica_identity: m.replicaIdentity,
    columns: m.columns.map((item) => jsonRelationColumn(item, layout)),
  };
}

/**
 * Names a type that is not built in, before the Relation that uses it.
 *
 * PostgreSQL 10 and newer.
 */
export interface Type {
  message: "Type";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** OID of the type. */
  typeOid: number;
  /** Schema of the type, empty for pg_catalog. */
  namespace: wire.Text;
  /** Name of the type; for a domain, of its base type. */
  name: wire.Text;
}

function readType(r: wire.Reader, layout: Layout): Type {
  r.byte("tag", 89);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const typeOid = r.uint32("type_oid");
  const namespace = r.text("namespace");
  const name = r.text("name");
  return { message: "Type", xid, typeOid, namespace, name };
}

function writeType(w: wire.Writer, m: Type, layout: Layout): void {
  w.raw([89]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("type_oid", 4, m.typeOid);
  w.text("namespace", m.namespace);
  w.text("name", m.name);
}

function jsonType(m: Type, layout: Layout): wire.Json {
  void layout;
  return {
    xid: m.xid === null ? null : m.xid,
    type_oid: m.typeOid,
    namespace: wire.jsonText(m.namespace),
    name: wire.jsonText(m.name),
  };
}

/**
 * A new row.
 *
 * PostgreSQL 10 and newer.
 */
export interface Insert {
  message: "Insert";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** OID of a table that a Relation has described. */
  relationOid: number;
  /** Values of the new row, in the order of the Relation's columns. */
  new: TupleData;
}

function readInsert(r: wire.Reader, layout: Layout): Insert {
  r.byte("tag", 73);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const relationOid = r.uint32("relation_oid");
  r.byte("new_tag", 78);
  const new_ = r.inside("new", () => readTupleData(r));
  return { message: "Insert", xid, relationOid, new: new_ };
}

function writeInsert(w: wire.Writer, m: Insert, layout: Layout): void {
  w.raw([73]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("relation_oid", 4, m.relationOid);
  w.raw([78]);
  w.inside("new", () => writeTupleData(w, m.new));
}

function jsonInsert(m: Insert, layout: Layout): wire.Json {
  return {
    xid: m.xid === null ? null : m.xid,
    relation_oid: m.relationOid,
    new: jsonTupleData(m.new, layout),
  };
}

/**
 * The row before the change: the whole row, or its key where that changed or is TOASTed, or
 * nothing. The tag is its kind.
 */
export type UpdateOld =
  /** The old key; columns outside the key are null. */
  | { kind: "K"; value: TupleData }
  /** The whole old row, under REPLICA IDENTITY FULL. */
  | { kind: "O"; value: TupleData };

function readUpdateOld(r: wire.Reader): UpdateOld {
  switch (r.uint8("old_kind")) {
    case 75: // K
      return { kind: "K", value: r.inside("old", () => readTupleData(r)) };
    case 79: // O
      return { kind: "O", value: r.inside("old", () => readTupleData(r)) };
    default:
      return r.unknownKind("old_kind");
  }
}

function writeUpdateOld(w: wire.Writer, m: UpdateOld): void {
  w.letter("old_kind", m.kind, "KO");
  switch (m.kind) {
    case "K":
      w.inside("old", () => writeTupleData(w, m.value));
      break;
    case "O":
      w.inside("old", () => writeTupleData(w, m.value));
      break;
  }
}

function jsonUpdateOld(m: UpdateOld, layout: Layout): wire.Json {
  void layout;
  switch (m.kind) {
    case "K":
      return jsonTupleData(m.value, layout);
    case "O":
      return jsonTupleData(m.value, layout);
  }
}

/**
 * A changed row.
 *
 * PostgreSQL 10 and newer.
 */
export interface Update {
  message: "Update";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** OID of a table that a Relation has described. */
  relationOid: number;
  /**
   * The row before the change: the whole row, or its key where that changed or is TOASTed, or
   * nothing.
   */
  old: UpdateOld | null;
  /** Values of the new row, in the order of the Relation's columns. */
  new: TupleData;
}

function readUpdate(r: wire.Reader, layout: Layout): Update {
  r.byte("tag", 85);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const relationOid = r.uint32("relation_oid");
  const old = r.next(78) ? null : readUpdateOld(r);
  r.byte("new_tag", 78);
  const new_ = r.inside("new", () => readTupleData(r));
  return { message: "Update", xid, relationOid, old, new: new_ };
}

function writeUpdate(w: wire.Writer, m: Update, layout: Layout): void {
  w.raw([85]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("relation_oid", 4, m.relationOid);
  if (m.old !== null) {
    writeUpdateOld(w, m.old);
  }
  w.raw([78]);
  w.inside("new", () => writeTupleData(w, m.new));
}

function jsonUpdate(m: Update, layout: Layout): wire.Json {
  return {
    xid: m.xid === null ? null : m.xid,
    relation_oid: m.relationOid,
    old_kind: m.old?.kind ?? null,
    old: m.old === null ? null : jsonUpdateOld(m.old, layout),
    new: jsonTupleData(m.new, layout),
  };
}

/** The removed row: whole, or its key. The tag is its kind. */
export type DeleteOld =
  /** The old key; columns outside the key are null. */
  | { kind: "K"; value: TupleData }
  /** The whole old row, under REPLICA IDENTITY FULL. */
  | { kind: "O"; value: TupleData };

function readDeleteOld(r: wire.Reader): DeleteOld {
  switch (r.uint8("old_kind")) {
    case 75: // K
      return { kind: "K", value: r.inside("old", () => readTupleData(r)) };
    case 79: // O
      return { kind: "O", value: r.inside("old", () => readTupleData(r)) };
    default:
      return r.unknownKind("old_kind");
  }
}

function writeDeleteOld(w: wire.Writer, m: DeleteOld): void {
  w.letter("old_kind", m.kind, "KO");
  switch (m.kind) {
    case "K":
      w.inside("old", () => writeTupleData(w, m.value));
      break;
    case "O":
      w.inside("old", () => writeTupleData(w, m.value));
      break;
  }
}

function jsonDeleteOld(m: DeleteOld, layout: Layout): wire.Json {
  void layout;
  switch (m.kind) {
    case "K":
      return jsonTupleData(m.value, layout);
    case "O":
      return jsonTupleData(m.value, layout);
  }
}

/**
 * A removed row.
 *
 * PostgreSQL 10 and newer.
 */
export interface Delete {
  message: "Delete";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** OID of a table that a Relation has described. */
  relationOid: number;
  /** The removed row: whole, or its key. */
  old: DeleteOld;
}

function readDelete(r: wire.Reader, layout: Layout): Delete {
  r.byte("tag", 68);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const relationOid = r.uint32("relation_oid");
  const old = readDeleteOld(r);
  return { message: "Delete", xid, relationOid, old };
}

function writeDelete(w: wire.Writer, m: Delete, layout: Layout): void {
  w.raw([68]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("relation_oid", 4, m.relationOid);
  writeDeleteOld(w, m.old);
}

function jsonDelete(m: Delete, layout: Layout): wire.Json {
  return {
    xid: m.xid === null ? null : m.xid,
    relation_oid: m.relationOid,
    old_kind: m.old.kind,
    old: jsonDeleteOld(m.old, layout),
  };
}

/**
 * Tables emptied by one TRUNCATE.
 *
 * PostgreSQL 11 and newer.
 */
export interface Truncate {
  message: "Truncate";
  /** Transaction or subtransaction ID, present only inside a stream. */
  xid: number | null;
  /** Bit 1 for CASCADE, bit 2 for RESTART IDENTITY. */
  options: number;
  /** One emptied table. */
  relationOids: number[];
}

/** The bits of options of Truncate. */
export const TruncateOptions = {
  /** Cascade. */
  CASCADE: 1,
  /** Restart identity. */
  RESTART_IDENTITY: 2,
} as const;

function readTruncate(r: wire.Reader, layout: Layout): Truncate {
  r.byte("tag", 84);
  const xid = layout.protoVersion >= 2 && layout.inStream ? r.uint32("xid") : null;
  const relationCount = r.uint32("relation_count");
  const options = r.bits("options", 1, r.uint8("options"), 0x3);
  const relationOids = r.items("relation_oids", Number(relationCount), () => r.uint32(""));
  return { message: "Truncate", xid, options, relationOids };
}

function writeTruncate(w: wire.Writer, m: Truncate, layout: Layout): void {
  w.raw([84]);
  if (layout.protoVersion >= 2 && layout.inStream) {
    const value = w.present("xid", m.xid);
    w.uint("xid", 4, value);
  } else {
    w.absent("xid", m.xid);
  }
  w.uint("relation_count", 4, m.relationOids.length);
  w.uint("options", 1, w.bits("options", m.options, 0x3));
  w.items("relation_oids", m.relationOids, (item) => w.uint("", 4, item));
}

function jsonTruncate(m: Truncate, layout: Layout): wire.Json {
  return {
    xid: m.xid === null ? null : m.xid,
    options: m.options,
    relation_oids: m.relationOids.map((item) => item),
  };
}

/**
 * Opens one segment of a transaction that is still running.
 *
 * PostgreSQL 14 and newer, protocol version 2 and newer.
 */
export interface StreamStart {
  message: "StreamStart";
  /** Top-level transaction ID. */
  xid: number;
  /** 1 for the transaction's first segment and 0 for the others. */
  firstSegment: number;
}

/** The values of firstSegment of StreamStart. */
export const StreamStartFirstSegment = {
  /** Later segment. */
  LATER_SEGMENT: 0,
  /** First segment. */
  FIRST_SEGMENT: 1,
} as const;

function readStreamStart(r: wire.Reader): StreamStart {
  r.byte("tag", 83);
  const xid = r.uint32("xid");
  const firstSegment = r.oneOf("first_segment", 1, r.uint8("first_segment"), 0, 1);
  return { message: "StreamStart", xid, firstSegment };
}

function writeStreamStart(w: wire.Writer, m: StreamStart): void {
  w.raw([83]);
  w.uint("xid", 4, m.xid);
  w.uint("first_segment", 1, w.oneOf("first_segment", m.firstSegment, 0, 1));
}

function jsonStreamStart(m: StreamStart, layout: Layout): wire.Json {
  void layout;
  return {
    xid: m.xid,
    first_segment: m.firstSegment,
  };
}

/**
 * Ends a segment; others may follow.
 *
 * PostgreSQL 14 and newer, protocol version 2 and newer.
 */
export interface StreamStop {
  message: "StreamStop";
}

function readStreamStop(r: wire.Reader): StreamStop {
  r.byte("tag", 69);
  return { message: "StreamStop" };
}

function writeStreamStop(w: wire.Writer, _m: StreamStop): void {
  w.raw([69]);
}

function jsonStreamStop(_m: StreamStop, layout: Layout): wire.Json {
  void layout;
  return {};
}

/**
 * Commits a streamed transaction.
 *
 * PostgreSQL 14 and newer, protocol version 2 and newer.
 */
export interface StreamCommit {
  message: "StreamCommit";
  /** Top-level transaction ID. */
  xid: number;
  /** LSN at which the commit record starts. */
  commitLsn: wire.Lsn;
  /** LSN after the commit record: the position to confirm. */
  endLsn: wire.Lsn;
  /** Time of the commit, in microseconds since 2000-01-01 UTC. */
  commitTime: wire.Timestamp;
}

function readStreamCommit(r: wire.Reader): StreamCommit {
  r.byte("tag", 99);
  const xid = r.uint32("xid");
  r.byte("flags", 0);
  const commitLsn = r.uint64("commit_lsn");
  const endLsn = r.uint64("end_lsn");
  const commitTime = r.int64("commit_time");
  return { message: "StreamCommit", xid, commitLsn, endLsn, commitTime };
}

function writeStreamCommit(w: wire.Writer, m: StreamCommit): void {
  w.raw([99]);
  w.uint("xid", 4, m.xid);
  w.raw([0]);
  w.uint("commit_lsn", 8, m.commitLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("commit_time", 8, m.commitTime);
}

function jsonStreamCommit(m: StreamCommit, layout: Layout): wire.Json {
  void layout;
  return {
    xid: m.xid,
    commit_lsn: wire.lsnText(m.commitLsn),
    end_lsn: wire.lsnText(m.endLsn),
    commit_time: wire.timestampText(m.commitTime),
  };
}

/**
 * Rolls back a streamed transaction or one of its subtransactions.
 *
 * PostgreSQL 14 and newer, protocol version 2 and newer.
 */
export interface StreamAbort {
  message: "StreamAbort";
  /** Top-level transaction ID. */
  xid: number;
  /** ID of the transaction that is rolled back: a subtransaction, or the top-level transaction itself. */
  subxid: number;
  /** LSN after the abort record, 0/0 for a transaction lost in a crash. */
  abortLsn: wire.Lsn | null;
  /** Time of the abort, in microseconds since 2000-01-01 UTC. */
  abortTime: wire.Timestamp | null;
}

function readStreamAbort(r: wire.Reader, layout: Layout): StreamAbort {
  r.byte("tag", 65);
  const xid = r.uint32("xid");
  const subxid = r.uint32("subxid");
  const abortLsn = layout.protoVersion >= 4 && layout.parallel ? r.uint64("abort_lsn") : null;
  const abortTime = layout.protoVersion >= 4 && layout.parallel ? r.int64("abort_time") : null;
  return { message: "StreamAbort", xid, subxid, abortLsn, abortTime };
}

function writeStreamAbort(w: wire.Writer, m: StreamAbort, layout: Layout): void {
  w.raw([65]);
  w.uint("xid", 4, m.xid);
  w.uint("subxid", 4, m.subxid);
  if (layout.protoVersion >= 4 && layout.parallel) {
    const value = w.present("abort_lsn", m.abortLsn);
    w.uint("abort_lsn", 8, value);
  } else {
    w.absent("abort_lsn", m.abortLsn);
  }
  if (layout.protoVersion >= 4 && layout.parallel) {
    const value = w.present("abort_time", m.abortTime);
    w.int("abort_time", 8, value);
  } else {
    w.absent("abort_time", m.abortTime);
  }
}

function jsonStreamAbort(m: StreamAbort, layout: Layout): wire.Json {
  void layout;
  return {
    xid: m.xid,
    subxid: m.subxid,
    abort_lsn: m.abortLsn === null ? null : wire.lsnText(m.abortLsn),
    abort_time: m.abortTime === null ? null : wire.timestampText(m.abortTime),
  };
}

/**
 * Opens a transaction that has been prepared; its changes follow.
 *
 * PostgreSQL 15 and newer, protocol version 3 and newer.
 */
export interface BeginPrepare {
  message: "BeginPrepare";
  /** LSN at which the prepare record starts. */
  prepareLsn: wire.Lsn;
  /** LSN after the prepare record. */
  endLsn: wire.Lsn;
  /** Time of the prepare, in microseconds since 2000-01-01 UTC. */
  prepareTime: wire.Timestamp;
  /** Transaction ID. */
  xid: number;
  /** Name given in PREPARE TRANSACTION. */
  gid: wire.Text;
}

function readBeginPrepare(r: wire.Reader): BeginPrepare {
  r.byte("tag", 98);
  const prepareLsn = r.uint64("prepare_lsn");
  const endLsn = r.uint64("end_lsn");
  const prepareTime = r.int64("prepare_time");
  const xid = r.uint32("xid");
  const gid = r.text("gid");
  return { message: "BeginPrepare", prepareLsn, endLsn, prepareTime, xid, gid };
}

function writeBeginPrepare(w: wire.Writer, m: BeginPrepare): void {
  w.raw([98]);
  w.uint("prepare_lsn", 8, m.prepareLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("prepare_time", 8, m.prepareTime);
  w.uint("xid", 4, m.xid);
  w.text("gid", m.gid);
}

function jsonBeginPrepare(m: BeginPrepare, layout: Layout): wire.Json {
  void layout;
  return {
    prepare_lsn: wire.lsnText(m.prepareLsn),
    end_lsn: wire.lsnText(m.endLsn),
    prepare_time: wire.timestampText(m.prepareTime),
    xid: m.xid,
    gid: wire.jsonText(m.gid),
  };
}

/**
 * Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare.
 *
 * PostgreSQL 15 and newer, protocol version 3 and newer.
 */
export interface Prepare {
  message: "Prepare";
  /** LSN at which the prepare record starts. */
  prepareLsn: wire.Lsn;
  /** LSN after the prepare record: the position to confirm. */
  endLsn: wire.Lsn;
  /** Time of the prepare, in microseconds since 2000-01-01 UTC. */
  prepareTime: wire.Timestamp;
  /** Transaction ID. */
  xid: number;
  /** Name given in PREPARE TRANSACTION. */
  gid: wire.Text;
}

function readPrepare(r: wire.Reader): Prepare {
  r.byte("tag", 80);
  r.byte("flags", 0);
  const prepareLsn = r.uint64("prepare_lsn");
  const endLsn = r.uint64("end_lsn");
  const prepareTime = r.int64("prepare_time");
  const xid = r.uint32("xid");
  const gid = r.text("gid");
  return { message: "Prepare", prepareLsn, endLsn, prepareTime, xid, gid };
}

function writePrepare(w: wire.Writer, m: Prepare): void {
  w.raw([80]);
  w.raw([0]);
  w.uint("prepare_lsn", 8, m.prepareLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("prepare_time", 8, m.prepareTime);
  w.uint("xid", 4, m.xid);
  w.text("gid", m.gid);
}

function jsonPrepare(m: Prepare, layout: Layout): wire.Json {
  void layout;
  return {
    prepare_lsn: wire.lsnText(m.prepareLsn),
    end_lsn: wire.lsnText(m.endLsn),
    prepare_time: wire.timestampText(m.prepareTime),
    xid: m.xid,
    gid: wire.jsonText(m.gid),
  };
}

/**
 * Commits a transaction that was prepared earlier.
 *
 * PostgreSQL 15 and newer, protocol version 3 and newer.
 */
export interface CommitPrepared {
  message: "CommitPrepared";
  /** LSN at which the commit record starts. */
  commitLsn: wire.Lsn;
  /** LSN after the commit record: the position to confirm. */
  endLsn: wire.Lsn;
  /** Time of the commit, in microseconds since 2000-01-01 UTC. */
  commitTime: wire.Timestamp;
  /** Transaction ID. */
  xid: number;
  /** Name given in PREPARE TRANSACTION. */
  gid: wire.Text;
}

function readCommitPrepared(r: wire.Reader): CommitPrepared {
  r.byte("tag", 75);
  r.byte("flags", 0);
  const commitLsn = r.uint64("commit_lsn");
  const endLsn = r.uint64("end_lsn");
  const commitTime = r.int64("commit_time");
  const xid = r.uint32("xid");
  const gid = r.text("gid");
  return { message: "CommitPrepared", commitLsn, endLsn, commitTime, xid, gid };
}

function writeCommitPrepared(w: wire.Writer, m: CommitPrepared): void {
  w.raw([75]);
  w.raw([0]);
  w.uint("commit_lsn", 8, m.commitLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("commit_time", 8, m.commitTime);
  w.uint("xid", 4, m.xid);
  w.text("gid", m.gid);
}

function jsonCommitPrepared(m: CommitPrepared, layout: Layout): wire.Json {
  void layout;
  return {
    commit_lsn: wire.lsnText(m.commitLsn),
    end_lsn: wire.lsnText(m.endLsn),
    commit_time: wire.timestampText(m.commitTime),
    xid: m.xid,
    gid: wire.jsonText(m.gid),
  };
}

/**
 * Rolls back a transaction that was prepared earlier.
 *
 * PostgreSQL 15 and newer, protocol version 3 and newer.
 */
export interface RollbackPrepared {
  message: "RollbackPrepared";
  /** LSN after the prepare record, which tells whether that prepare was received. */
  prepareEndLsn: wire.Lsn;
  /** LSN after the rollback record: the position to confirm. */
  rollbackEndLsn: wire.Lsn;
  /** Time of the prepare, in microseconds since 2000-01-01 UTC. */
  prepareTime: wire.Timestamp;
  /** Time of the rollback, in microseconds since 2000-01-01 UTC. */
  rollbackTime: wire.Timestamp;
  /** Transaction ID. */
  xid: number;
  /** Name given in PREPARE TRANSACTION. */
  gid: wire.Text;
}

function readRollbackPrepared(r: wire.Reader): RollbackPrepared {
  r.byte("tag", 114);
  r.byte("flags", 0);
  const prepareEndLsn = r.uint64("prepare_end_lsn");
  const rollbackEndLsn = r.uint64("rollback_end_lsn");
  const prepareTime = r.int64("prepare_time");
  const rollbackTime = r.int64("rollback_time");
  const xid = r.uint32("xid");
  const gid = r.text("gid");
  return { message: "RollbackPrepared", prepareEndLsn, rollbackEndLsn, prepareTime, rollbackTime, xid, gid };
}

function writeRollbackPrepared(w: wire.Writer, m: RollbackPrepared): void {
  w.raw([114]);
  w.raw([0]);
  w.uint("prepare_end_lsn", 8, m.prepareEndLsn);
  w.uint("rollback_end_lsn", 8, m.rollbackEndLsn);
  w.int("prepare_time", 8, m.prepareTime);
  w.int("rollback_time", 8, m.rollbackTime);
  w.uint("xid", 4, m.xid);
  w.text("gid", m.gid);
}

function jsonRollbackPrepared(m: RollbackPrepared, layout: Layout): wire.Json {
  void layout;
  return {
    prepare_end_lsn: wire.lsnText(m.prepareEndLsn),
    rollback_end_lsn: wire.lsnText(m.rollbackEndLsn),
    prepare_time: wire.timestampText(m.prepareTime),
    rollback_time: wire.timestampText(m.rollbackTime),
    xid: m.xid,
    gid: wire.jsonText(m.gid),
  };
}

/**
 * Ends a streamed transaction that has been prepared.
 *
 * PostgreSQL 15 and newer, protocol version 3 and newer.
 */
export interface StreamPrepare {
  message: "StreamPrepare";
  /** LSN at which the prepare record starts. */
  prepareLsn: wire.Lsn;
  /** LSN after the prepare record: the position to confirm. */
  endLsn: wire.Lsn;
  /** Time of the prepare, in microseconds since 2000-01-01 UTC. */
  prepareTime: wire.Timestamp;
  /** Top-level transaction ID. */
  xid: number;
  /** Name given in PREPARE TRANSACTION. */
  gid: wire.Text;
}

function readStreamPrepare(r: wire.Reader): StreamPrepare {
  r.byte("tag", 112);
  r.byte("flags", 0);
  const prepareLsn = r.uint64("prepare_lsn");
  const endLsn = r.uint64("end_lsn");
  const prepareTime = r.int64("prepare_time");
  const xid = r.uint32("xid");
  const gid = r.text("gid");
  return { message: "StreamPrepare", prepareLsn, endLsn, prepareTime, xid, gid };
}

function writeStreamPrepare(w: wire.Writer, m: StreamPrepare): void {
  w.raw([112]);
  w.raw([0]);
  w.uint("prepare_lsn", 8, m.prepareLsn);
  w.uint("end_lsn", 8, m.endLsn);
  w.int("prepare_time", 8, m.prepareTime);
  w.uint("xid", 4, m.xid);
  w.text("gid", m.gid);
}

function jsonStreamPrepare(m: StreamPrepare, layout: Layout): wire.Json {
  void layout;
  return {
    prepare_lsn: wire.lsnText(m.prepareLsn),
    end_lsn: wire.lsnText(m.endLsn),
    prepare_time: wire.timestampText(m.prepareTime),
    xid: m.xid,
    gid: wire.jsonText(m.gid),
  };
}

/** Any of the messages. */
export type PgoutputMessage =
  | Begin
  | Message
  | Commit
  | Origin
  | Relation
  | Type
  | Insert
  | Update
  | Delete
  | Truncate
  | StreamStart
  | StreamStop
  | StreamCommit
  | StreamAbort
  | BeginPrepare
  | Prepare
  | CommitPrepared
  | RollbackPrepared
  | StreamPrepare;

/** The names of the messages, in the order of the specification. */
export const NAMES: readonly string[] = [
  "Begin",
  "Message",
  "Commit",
  "Origin",
  "Relation",
  "Type",
  "Insert",
  "Update",
  "Delete",
  "Truncate",
  "StreamStart",
  "StreamStop",
  "StreamCommit",
  "StreamAbort",
  "BeginPrepare",
  "Prepare",
  "CommitPrepared",
  "RollbackPrepared",
  "StreamPrepare",
];

const INDEXES = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Record<
  PgoutputMessage["message"],
  number
>;

/** Return a message as JSON, as the golden vectors have it; numbers of 64 bits are bigint. */
export function toJson(message: PgoutputMessage, layout: Layout): wire.Json {
  return { message: message.message, ...(jsonFields(message, layout) as object) };
}

function jsonFields(message: PgoutputMessage, layout: Layout): wire.Json {
  switch (message.message) {
    case "Begin":
      return jsonBegin(message, layout);
    case "Message":
      return jsonMessage(message, layout);
    case "Commit":
      return jsonCommit(message, layout);
    case "Origin":
      return jsonOrigin(message, layout);
    case "Relation":
      return jsonRelation(message, layout);
    case "Type":
      return jsonType(message, layout);
    case "Insert":
      return jsonInsert(message, layout);
    case "Update":
      return jsonUpdate(message, layout);
    case "Delete":
      return jsonDelete(message, layout);
    case "Truncate":
      return jsonTruncate(message, layout);
    case "StreamStart":
      return jsonStreamStart(message, layout);
    case "StreamStop":
      return jsonStreamStop(message, layout);
    case "StreamCommit":
      return jsonStreamCommit(message, layout);
    case "StreamAbort":
      return jsonStreamAbort(message, layout);
    case "BeginPrepare":
      return jsonBeginPrepare(message, layout);
    case "Prepare":
      return jsonPrepare(message, layout);
    case "CommitPrepared":
      return jsonCommitPrepared(message, layout);
    case "RollbackPrepared":
      return jsonRollbackPrepared(message, layout);
    case "StreamPrepare":
      return jsonStreamPrepare(message, layout);
  }
}

/** Build a message. */
export function build(message: PgoutputMessage, layout: Layout): Uint8Array {
  void layout;
  const w = new wire.Writer(message.message);
  switch (message.message) {
    case "Begin":
      writeBegin(w, message);
      break;
    case "Message":
      writeMessage(w, message, layout);
      break;
    case "Commit":
      writeCommit(w, message);
      break;
    case "Origin":
      writeOrigin(w, message);
      break;
    case "Relation":
      writeRelation(w, message, layout);
      break;
    case "Type":
      writeType(w, message, layout);
      break;
    case "Insert":
      writeInsert(w, message, layout);
      break;
    case "Update":
      writeUpdate(w, message, layout);
      break;
    case "Delete":
      writeDelete(w, message, layout);
      break;
    case "Truncate":
      writeTruncate(w, message, layout);
      break;
    case "StreamStart":
      w.possible("", layout.protoVersion >= 2);
      writeStreamStart(w, message);
      break;
    case "StreamStop":
      w.possible("", layout.protoVersion >= 2);
      writeStreamStop(w, message);
      break;
    case "StreamCommit":
      w.possible("", layout.protoVersion >= 2);
      writeStreamCommit(w, message);
      break;
    case "StreamAbort":
      writeStreamAbort(w, message, layout);
      break;
    case "BeginPrepare":
      writeBeginPrepare(w, message);
      break;
    case "Prepare":
      writePrepare(w, message);
      break;
    case "CommitPrepared":
      writeCommitPrepared(w, message);
      break;
    case "RollbackPrepared":
      writeRollbackPrepared(w, message);
      break;
    case "StreamPrepare":
      writeStreamPrepare(w, message);
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
export function parse(payload: Uint8Array, layout: Layout, trace?: wire.Trace): PgoutputMessage {
  void layout;
  const r = new wire.Reader(payload, trace);
  let message: PgoutputMessage;
  switch (r.first()) {
    case 66: // B
      r.begin("Begin");
      message = readBegin(r);
      break;
    case 77: // M
      r.begin("Message");
      message = readMessage(r, layout);
      break;
    case 67: // C
      r.begin("Commit");
      message = readCommit(r);
      break;
    case 79: // O
      r.begin("Origin");
      message = readOrigin(r);
      break;
    case 82: // R
      r.begin("Relation");
      message = readRelation(r, layout);
      break;
    case 89: // Y
      r.begin("Type");
      message = readType(r, layout);
      break;
    case 73: // I
      r.begin("Insert");
      message = readInsert(r, layout);
      break;
    case 85: // U
      r.begin("Update");
      message = readUpdate(r, layout);
      break;
    case 68: // D
      r.begin("Delete");
      message = readDelete(r, layout);
      break;
    case 84: // T
      r.begin("Truncate");
      message = readTruncate(r, layout);
      break;
    case 83: // S
      r.begin("StreamStart");
      if (layout.protoVersion < 2) r.fail("version", "", 0);
      if (!layout.hasStreaming) r.fail("option", "", 0);
      message = readStreamStart(r);
      break;
    case 69: // E
      r.begin("StreamStop");
      if (layout.protoVersion < 2) r.fail("version", "", 0);
      message = readStreamStop(r);
      break;
    case 99: // c
      r.begin("StreamCommit");
      if (layout.protoVersion < 2) r.fail("version", "", 0);
      message = readStreamCommit(r);
      break;
    case 65: // A
      r.begin("StreamAbort");
      message = readStreamAbort(r, layout);
      break;
    case 98: // b
      r.begin("BeginPrepare");
      message = readBeginPrepare(r);
      break;
    case 80: // P
      r.begin("Prepare");
      message = readPrepare(r);
      break;
    case 75: // K
      r.begin("CommitPrepared");
      message = readCommitPrepared(r);
      break;
    case 114: // r
      r.begin("RollbackPrepared");
      message = readRollbackPrepared(r);
      break;
    case 112: // p
      r.begin("StreamPrepare");
      message = readStreamPrepare(r);
      break;
    default:
      return r.unknownTag();
  }
  r.end();
  return message;
}

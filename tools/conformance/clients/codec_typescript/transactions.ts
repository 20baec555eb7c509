// Gathers the messages of a stream until their transaction commits, as an apply worker does.

import { lsnText, pgoutput } from "./codec/src/index.js";
import type { Lsn, Text } from "./codec/src/index.js";

type Value = string | null | { binary: string };
type Row = Record<string, Value> | null;

/** What is reported of a change. */
export interface Line {
  transaction?: string | null;
  operation: string;
  table?: string;
  new?: Row;
  old?: Row;
  prefix?: string;
  content?: string;
}

/** What is to be stored next: the lines, and the LSN that may be confirmed then, if any. */
export interface Stored {
  lines: Line[];
  end: Lsn;
}

/** A stream that this program does not accept, although each of its messages is valid. */
export class Refusal extends Error {}

type Kept = pgoutput.Relation | pgoutput.Insert | pgoutput.Update | pgoutput.Delete | pgoutput.Truncate | pgoutput.Message;

function text(given: Text): string {
  return typeof given === "string" ? given : decoded(given);
}

function decoded(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}

function hex(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
}

function described(message: pgoutput.Message): Line {
  const content = decoded(message.content);
  const isText = Buffer.from(content).equals(message.content);
  const shown = isText ? content : `\\x${hex(message.content)}`;
  return { operation: "message", prefix: text(message.prefix), content: shown };
}

/** Return the values that were sent; columns beside a key are NULL on the wire, whatever they are. */
function row(relation: pgoutput.Relation, values: pgoutput.TupleData, isKey: boolean): Row {
  const { columns } = relation;
  if (values.length !== columns.length) {
    throw new Refusal(`${values.length} values, ${text(relation.name)} has ${columns.length} columns`);
  }
  const found: [string, Value][] = [];
  columns.forEach(({ name, flags }, index) => {
    const value = values[index];
    if (value === undefined || value.kind === "u" || (isKey && !(flags & pgoutput.RelationColumnFlags.KEY))) return;
    const shown = value.kind === "n" ? null : value.kind === "t" ? decoded(value.value) : { binary: hex(value.value) };
    found.push([text(name), shown]);
  });
  return Object.fromEntries(found);
}

export class Follower {
  // What outlives a connection. Prepared transactions are in memory alone: a program that is to survive its own end
  // stores them before it confirms them.
  private readonly prepared = new Map<string, Line[]>();
  /** The end of the last transaction that was handed on. */
  private ended = 0n;
  /** The last logical message outside of transactions. */
  private spoke = 0n;

  // What belongs to one.
  private session: pgoutput.Session;
  private relations = new Map<number, pgoutput.Relation>();
  private streams = new Map<number, Kept[]>();
  private streaming = 0;
  private open: Kept[] | null = null;
  /** What Begin says of the LSN in its Commit. */
  private last = 0n;

  constructor(private readonly options: pgoutput.Options) {
    this.session = new pgoutput.Session(options);
  }

  /** Begin a connection: what was not committed comes again. */
  connected(): void {
    this.session = new pgoutput.Session(this.options);
    this.relations.clear();
    this.streams.clear();
    this.open = null;
  }

  /** Whether a transaction is open between its Begin and Commit. */
  get isOpen(): boolean {
    return this.open !== null;
  }

  /** Take the next message; return what is to be stored; throw a WireError or a Refusal. */
  take(payload: Uint8Array): Stored | null {
    const { inStream } = this.session.layout;
    const message = this.session.parse(new Uint8Array(payload)); // a message shares the memory of its payload
    switch (message.message) {
      case "Begin":
        return this.begin(message.finalLsn);
      case "BeginPrepare":
        return this.begin(message.prepareLsn);
      case "Commit":
        return this.hand(this.lines(this.end(message.commitLsn)), message.endLsn);
      case "Prepare":
        return this.prepare(message, this.end(message.prepareLsn));
      case "CommitPrepared":
        return this.hand(this.resolved(message.gid), message.endLsn);
      case "RollbackPrepared":
        this.resolved(message.gid);
        return this.hand([], message.rollbackEndLsn);
      case "StreamStart":
        if (!message.xid) throw new Refusal("a stream without an xid");
        this.streaming = message.xid;
        if (message.firstSegment === pgoutput.StreamStartFirstSegment.FIRST_SEGMENT) this.streams.delete(message.xid);
        return null;
      case "StreamCommit":
        return this.hand(this.lines(this.stream(message.xid)), message.endLsn);
      case "StreamPrepare":
        return this.prepare(message, this.stream(message.xid));
      case "StreamAbort":
        return this.abort(message);
      case "StreamStop":
      case "Origin":
      case "Type":
        return null;
      case "Message":
        return message.flags & pgoutput.MessageFlags.TRANSACTIONAL ? this.keep(inStream, message) : this.logical(message);
      case "Relation":
        if (inStream || this.open) return this.keep(inStream, message);
        this.relations.set(message.relationOid, message);
        return null;
      default:
        return this.keep(inStream, message);
    }
  }

  private begin(last: Lsn): null {
    if (this.open) throw new Refusal("a Begin within a transaction");
    if (!last) throw new Refusal("a Begin without an LSN");
    [this.open, this.last] = [[], last];
    return null;
  }

  private end(last: Lsn): Kept[] {
    const changes = this.open;
    if (!changes || last !== this.last) throw new Refusal("the end of a transaction is not that of its Begin");
    this.open = null;
    return changes;
  }

  private stream(xid: number): Kept[] {
    const changes = this.streams.get(xid) ?? [];
    this.streams.delete(xid);
    return changes;
  }

  private abort({ xid, subxid }: pgoutput.StreamAbort): null {
    const left = xid === subxid ? [] : this.stream(xid).filter((each) => each.xid !== subxid);
    this.streams.set(xid, left);
    return null;
  }

  /** Keep a change until its transaction ends. */
  private keep(inStream: boolean, message: Kept): null {
    if (inStream && !message.xid) throw new Refusal("a change without an xid in a stream");
    if (!inStream && !this.open) throw new Refusal(`${message.message} outside of a transaction`);
    let changes = inStream ? this.streams.get(this.streaming) : this.open;
    if (!changes) this.streams.set(this.streaming, (changes = []));
    changes.push(message);
    return null;
  }

  /** Hand on a message outside of transactions, unless it was before: LSNs of such messages rise. */
  private logical(message: pgoutput.Message): Stored | null {
    if (message.lsn <= this.spoke) return null;
    this.spoke = message.lsn;
    return { lines: [{ transaction: null, ...described(message) }], end: 0n };
  }

  private prepare({ gid, endLsn }: pgoutput.Prepare | pgoutput.StreamPrepare, changes: Kept[]): Stored | null {
    const lines = this.lines(changes);
    if (endLsn > this.ended) this.prepared.set(text(gid), lines);
    return this.hand([], endLsn);
  }

  private resolved(gid: Text): Line[] {
    const lines = this.prepared.get(text(gid)) ?? [];
    this.prepared.delete(text(gid));
    return lines;
  }

  /** Hand on the end of a transaction, unless that was done on an earlier connection: ends rise. */
  private hand(lines: Line[], end: Lsn): Stored | null {
    if (end <= this.ended) return null;
    this.ended = end;
    return { lines: lines.map((line) => ({ transaction: lsnText(end), ...line })), end };
  }

  /** Return what is to be reported of the changes of a transaction, whose Relations hold from then on. */
  private lines(changes: Kept[]): Line[] {
    return changes.flatMap((change) => this.lineOf(change));
  }

  private lineOf(message: Kept): Line[] {
    switch (message.message) {
      case "Relation":
        this.relations.set(message.relationOid, message);
        return [];
      case "Message":
        return [described(message)];
      case "Truncate":
        return message.relationOids.map((oid) => ({ ...this.line(this.relation(oid), "truncate") }));
    }
    const relation = this.relation(message.relationOid);
    const old = "old" in message && message.old ? row(relation, message.old.value, message.old.kind === "K") : null;
    const made = { ...this.line(relation, message.message.toLowerCase()), old };
    return ["new" in message ? { ...made, new: row(relation, message.new, false) } : made];
  }

  private line(relation: pgoutput.Relation, operation: string): Line {
    return { table: `${text(relation.namespace) || "pg_catalog"}.${text(relation.name)}`, operation };
  }

  private relation(oid: number): pgoutput.Relation {
    const relation = this.relations.get(oid);
    if (!relation) throw new Refusal(`no Relation describes ${oid}`);
    return relation;
  }
}

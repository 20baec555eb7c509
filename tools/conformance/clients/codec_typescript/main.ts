// Follows a slot with the TypeScript codec over node-postgres, and reports what was committed: pgoutput conformance.
//
// Arguments: URL SLOT PUBLICATION PROTO_VERSION STREAMING BINARY MESSAGES TWO_PHASE ORIGIN TIMEOUT. A lost connection is
// opened again, and what comes again is reported once. Lines are written in the background, so that statuses are sent
// while nobody reads them.

import { write, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { replication, WireError } from "./codec/src/index.js";
import type { Lsn, pgoutput } from "./codec/src/index.js";
import { Follower, Refusal } from "./transactions.js";
import type { Stored } from "./transactions.js";

const STATUS_MS = 1000;
const PAUSE_MS = 50;
/** Transactions that wait to be written; while there are more, nothing is read. */
const WAITING = 64;
/** Errors of servers that are over soon: a slot in use, too many clients, a server that stops or starts. */
const PASSING = ["55006", "53300", "57P01", "57P02", "57P03"];
const EPOCH_MS = Date.UTC(2000, 0, 1);
const LAYOUT: replication.Layout = {};

/** What @types/pg lacks. */
interface CopyBoth {
  sendCopyFromChunk(chunk: Uint8Array): void;
}

/** A connection that was lost, and may be opened again. */
class Lost extends Error {}

/** Writes lines to the standard output, one transaction after the other. */
class Writer {
  /** The LSN up to which everything is written. */
  lsn: Lsn = 0n;
  /** The number of tasks that are not written yet. */
  waiting = 0;
  /** Resolves once everything is written. */
  drained: Promise<void> = Promise.resolve();

  store(task: Stored): void {
    this.waiting += 1;
    this.drained = this.drained.then(() => this.write(task)).catch(fail);
  }

  private async write({ lines, end }: Stored): Promise<void> {
    let data = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    while (data.length) data = data.subarray((await promisify(write)(1, data)).bytesWritten);
    if (end) this.lsn = end;
    this.waiting -= 1;
  }
}

/** One connection. */
class Stream {
  private readonly client: pg.Client;
  private heard = Date.now();
  private sentAt = 0;
  private sent: Lsn = 0n;
  /** How far the server has sent its WAL. */
  private told: Lsn = 0n;
  private isStarted = false;
  private isOver = false;

  constructor(
    url: string,
    private readonly timeout: number,
    private readonly follower: Follower,
    private readonly writer: Writer,
  ) {
    const options = { connectionString: url, replication: "database", connectionTimeoutMillis: timeout };
    this.client = new pg.Client(options);
  }

  /** Read until the connection is lost, or something is refused; return why. */
  async follow(command: string): Promise<unknown> {
    const { connection } = this.client;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((end) => {
        const guarded = <T>(take: (given: T) => void) => (given: T): void => {
          if (this.isOver) return; // several messages come at once
          try {
            take(given);
          } catch (error) {
            this.isOver = true;
            end(error);
          }
        };
        this.client.on("error", end);
        connection.on("replicationStart", () => (this.isStarted = true));
        connection.on("copyDone", () => end(new Lost("the server has ended the stream")));
        connection.on("message", () => (this.heard = Date.now()));
        connection.on("copyData", guarded(({ chunk }: { chunk: Uint8Array }) => this.frame(chunk)));
        timer = setInterval(guarded(() => this.look()), PAUSE_MS);
        const started = this.client.connect().then(() => this.client.query(command));
        started.then(() => end(new Lost("the server has ended the stream")), end);
      });
    } finally {
      this.isOver = true;
      clearInterval(timer);
      connection.stream.destroy();
    }
  }

  private frame(data: Uint8Array): void {
    const frame = replication.parse(data, LAYOUT);
    if (frame.message === "PrimaryKeepalive") {
      if (frame.walEnd > this.told) this.told = frame.walEnd;
      if (frame.replyRequested === replication.PrimaryKeepaliveReplyRequested.REPLY_AT_ONCE) this.confirm();
    } else if (frame.message === "XLogData") {
      const task = this.follower.take(frame.data);
      if (task) this.writer.store(task);
    }
    if (this.writer.waiting > WAITING) this.client.connection.stream.pause();
  }

  /** Do what is due. */
  private look(): void {
    const { stream } = this.client.connection;
    if (stream.isPaused()) {
      this.heard = Date.now();
      if (this.writer.waiting <= WAITING) stream.resume();
    }
    if (Date.now() - this.heard > this.timeout) throw new Lost("nothing has come for longer than the timeout");
    const isDue = this.position !== this.sent || Date.now() - this.sentAt > STATUS_MS;
    if (this.isStarted && isDue) this.confirm();
  }

  /** The LSN up to which nothing is left to be written. */
  private get position(): Lsn {
    const isIdle = this.writer.waiting === 0 && !this.follower.isOpen;
    return isIdle && this.told > this.writer.lsn ? this.told : this.writer.lsn;
  }

  private confirm(): void {
    const lsn = this.position;
    const status: replication.StandbyStatusUpdate = {
      message: "StandbyStatusUpdate",
      writeLsn: lsn,
      flushLsn: lsn,
      applyLsn: lsn,
      sendTime: BigInt(Date.now() - EPOCH_MS) * 1000n,
      replyRequested: replication.StandbyStatusUpdateReplyRequested.NO_REPLY_IS_NEEDED,
    };
    [this.sent, this.sentAt] = [lsn, Date.now()];
    const connection: unknown = this.client.connection;
    (connection as CopyBoth).sendCopyFromChunk(Buffer.from(replication.build(status, LAYOUT)));
  }
}

/** Return the command; what is not requested is left out, since older servers do not know all options. */
function startCommand(slot: string, publication: string, version: string, asked: string[]): string {
  const names = ["streaming", "binary", "messages", "two_phase", "origin"];
  const defaults = ["off", "false", "false", "false", "any"];
  const option = (name: string, value: string): string => `${name} '${value.replaceAll("'", "''")}'`;
  const options = [option("proto_version", version)];
  options.push(option("publication_names", `"${publication.replaceAll('"', '""')}"`));
  asked.forEach((value, index) => {
    if (value !== defaults[index]) options.push(option(names[index] ?? "", value));
  });
  return `START_REPLICATION SLOT "${slot}" LOGICAL 0/0 (${options.join(", ")})`;
}

/** Return whether an error is one of the connection, which may be opened again. */
function isLost(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return PASSING.includes(error.code ?? "");
  if (error instanceof WireError || error instanceof Refusal || !(error instanceof Error)) return false;
  return error instanceof Lost || "syscall" in error || /^Connection terminated|^timeout expired/.test(error.message);
}

function fail(error: unknown): never {
  writeSync(2, `${String(error)}\n`);
  process.exit(1);
}

async function main(): Promise<never> {
  const [url = "", slot = "", publication = "", version = "", ...rest] = process.argv.slice(2);
  const timeout = 1000 * Number(rest.pop());
  const streaming = rest[0] as pgoutput.Options["streaming"];
  const follower = new Follower({ protoVersion: Number(version), streaming });
  const writer = new Writer();
  for (;;) {
    follower.connected();
    const stream = new Stream(url, timeout, follower, writer);
    const error = await stream.follow(startCommand(slot, publication, version, rest));
    if (!isLost(error)) {
      await writer.drained; // what was committed before is reported
      fail(error);
    }
    writeSync(2, `connecting again: ${String(error)}\n`);
    await sleep(PAUSE_MS);
  }
}

main().catch(fail);

// Follows a slot with pg-logical-replication, and reports what was committed: pgoutput conformance.
//
// Arguments: HOST PORT USER PASSWORD DATABASE SLOT PUBLICATION BINARY MESSAGES. The parser knows version 1. What the
// library leaves to its user is done here as PostgreSQL's documentation asks.
import { writeSync } from "node:fs";
import pg from "pg";
import { LogicalReplicationService, PgoutputPlugin } from "pg-logical-replication";

const [host, port, user, password, database, slot, publication, binary, messages] = process.argv.slice(2);
pg.types.getTypeParser = () => (text) => text; // values as they are

const service = new LogicalReplicationService(
  { host, port: Number(port), user, password, database },
  { acknowledge: { auto: false, timeoutSeconds: 0 } },
);
const plugin = new PgoutputPlugin({
  protoVersion: 1,
  publicationNames: [publication],
  binary: binary === "true",
  messages: messages === "true",
});
let open = null;
let stored = "0/0";

function number(lsn) {
  const [high, low] = lsn.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

function report(line) {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

function value(given) {
  return given instanceof Uint8Array ? { binary: Buffer.from(given).toString("hex") } : given;
}

function row(given) {
  if (!given) return null;
  const sent = Object.entries(given).filter(([, each]) => each !== undefined);
  return Object.fromEntries(sent.map(([name, each]) => [name, value(each)]));
}

function logical(transaction, message) {
  const content = Buffer.from(message.content);
  const isText = content.equals(Buffer.from(content.toString("utf8")));
  const text = isText ? content.toString("utf8") : `\\x${content.toString("hex")}`;
  return { transaction, operation: "message", prefix: message.prefix, content: text };
}

function lines(transaction, message) {
  if (message.tag === "message") return [logical(transaction, message)];
  const name = (relation) => `${relation.schema}.${relation.name}`;
  if (message.tag === "truncate") {
    return message.relations.map((each) => ({ transaction, table: name(each), operation: "truncate" }));
  }
  const old = row(message.key ?? message.old);
  const line = { transaction, table: name(message.relation), operation: message.tag, old };
  return [message.tag === "delete" ? line : { ...line, new: row(message.new) }];
}

function fail(error) {
  writeSync(2, `${error?.stack ?? error}\n`);
  process.exit(1);
}

service.on("data", async (lsn, message) => {
  if (message.tag === "begin") {
    if (!message.commitLsn) fail("a Begin without an LSN");
    open = { final: message.commitLsn, changes: [] };
  } else if (message.tag === "commit") {
    if (!open || message.commitLsn !== open.final) fail("a Commit that is not that of its Begin");
    if (message.flags) fail("a Commit with unknown flags");
    for (const change of open.changes) for (const line of lines(message.commitEndLsn, change)) report(line);
    open = null;
    stored = message.commitEndLsn;
    await service.acknowledge(stored);
  } else if (message.tag === "message" && !message.transactional) {
    report(logical(null, message));
  } else if (["insert", "update", "delete", "truncate", "message"].includes(message.tag)) {
    if (!open) fail("a change outside of a transaction");
    open.changes.push(message);
  }
});
service.on("heartbeat", async (lsn, timestamp, shouldRespond) => {
  if (shouldRespond) await service.acknowledge(open || number(stored) > number(lsn) ? stored : lsn);
});
service.on("error", fail);
service.subscribe(plugin, slot).then(() => fail("the stream has ended"), fail);

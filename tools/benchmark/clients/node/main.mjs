// Reads from a publisher with pg-logical-replication. See tools/benchmark/harness.py for its arguments.
import { LogicalReplicationService, PgoutputPlugin } from "pg-logical-replication";

const [host, port, user, database, slot, publication, version, count] = process.argv.slice(2);
const service = new LogicalReplicationService(
  { host, port: Number(port), user, database },
  { acknowledge: { auto: false, timeoutSeconds: 0 } },
);
const plugin = new PgoutputPlugin({ protoVersion: Number(version), publicationNames: [publication] });
const lines = [];

function printed(key, value) {
  return typeof value === "bigint" ? String(value) : value;
}

service.on("data", (lsn, message) => {
  if (lines.length === Number(count)) return;
  lines.push(`${lsn} ${JSON.stringify(message, printed)}\n`);
  if (lines.length === Number(count)) process.stdout.write(lines.join(""), () => process.exit(0));
});
service.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
await service.subscribe(plugin, slot);

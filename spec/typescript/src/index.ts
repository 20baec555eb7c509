/**
 * The messages of PostgreSQL's logical replication, versions 1 to 4: read and built by code that is generated from one
 * specification. Nothing of Node is used, so that it runs in a browser, too.
 *
 * - `pgoutput`: the messages themselves; its `Session` knows whether the next one is inside a stream.
 * - `replication`: the frames that carry them in CopyData.
 * - `connection`: the messages of the connection.
 * @module
 */

export * as connection from "./connection.js";
export * as pgoutput from "./pgoutput.js";
export * as replication from "./replication.js";
export { lsnText, stringify, timestampText, WireError } from "./wire.js";
export type { Float, Json, Lsn, Reason, Text, Timestamp, Trace } from "./wire.js";

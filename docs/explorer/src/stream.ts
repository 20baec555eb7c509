/** A stream of messages, read by the codec's Session, and the states that it goes through. */

import { pgoutput, replication, WireError } from "../../../spec/typescript/src/index.js";
import { specifications } from "./data.js";
import type { Reading } from "./reading.js";
import { layoutOf, optionsOf } from "./settings.js";
import type { Settings } from "./settings.js";

/** A message of a stream. */
export interface Entry {
  readonly payload: Uint8Array;
  /** How it is read: inside a stream or not, as the session had it. */
  readonly settings: Settings;
  /** Its name, or that of the frame that carries none. */
  readonly name: string;
  /** The states in which the stream may be before it and after it, by the specification. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** The table of a change, if it is known. */
  readonly table: string;
  /** What the session says against it; empty if nothing. */
  readonly error: string;
}

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/** The tables that Relation messages have described, by OID. */
export class Tables {
  private readonly known = new Map<number, Table>();

  take(message: pgoutput.PgoutputMessage): void {
    if (message.message !== "Relation") return;
    const name = `${text(message.namespace) || "pg_catalog"}.${text(message.name)}`;
    this.known.set(message.relationOid, { name, columns: message.columns.map((column) => text(column.name)) });
  }

  /** Return the names of the tables and columns in a message, by path. */
  labels(reading: Reading): Map<string, string> {
    const labels = reading.inner === null ? new Map<string, string>() : this.labels(reading.inner.reading);
    if (reading.settings.kind !== "message" || reading.name === "Relation") return labels;
    let table: Table | undefined;
    for (const { path, value } of reading.spans) {
      if (/\.relation_oids?(\[\d+\])?$/.test(path)) {
        table = this.known.get(Number(value));
        if (table !== undefined) labels.set(path, table.name);
      }
      const column = /^.*\.columns\[(\d+)\]/.exec(path);
      if (column !== null && table !== undefined) labels.set(column[0], table.columns[Number(column[1])] ?? "");
    }
    return labels;
  }

  /** Return the name of the table of a change; empty if it has none, or several. */
  tableOf(message: pgoutput.PgoutputMessage): string {
    this.take(message);
    return "relationOid" in message ? (this.known.get(message.relationOid)?.name ?? "") : "";
  }
}

function text(value: string | Uint8Array): string {
  return typeof value === "string" ? value : new TextDecoder().decode(value);
}

/** Read messages one after the other, by the session; messages of a connection have none. */
export function readStream(payloads: readonly Uint8Array[], settings: Settings): Entry[] {
  const follower = settings.kind === "connection" ? null : new Follower(settings);
  return payloads.map((payload) => follower?.take(payload) ?? entryAlone(payload, settings));
}

function entryAlone(payload: Uint8Array, settings: Settings): Entry {
  return { payload, settings, name: "", before: [], after: [], table: "", error: "" };
}

class Follower {
  private readonly session: pgoutput.Session | null;
  private readonly refused: string;
  private readonly tables = new Tables();
  private states: readonly string[];

  constructor(private readonly settings: Settings) {
    // As the session, it does not know whether a transaction is open, until the first message that says so.
    this.states = specifications.message.states.filter((state) => state.sets.length === 0).map((state) => state.name);
    [this.session, this.refused] = sessionOf(settings);
  }

  take(payload: Uint8Array): Entry {
    const settings = this.settingsNow();
    const before = this.states;
    let [name, table, error] = ["", "", this.refused];
    try {
      const carried = this.settings.kind === "frame" ? replication.parse(payload, layoutOf(settings)) : null;
      name = carried?.message ?? "";
      const data = carried === null ? payload : "data" in carried ? carried.data : null;
      if (data !== null && this.session !== null) {
        const message = this.session.parse(data);
        [name, table] = [message.message, this.tables.tableOf(message)];
        this.follow(name);
      }
    } catch (caught) {
      if (!(caught instanceof WireError)) throw caught;
      error = caught.message;
      name ||= caught.path.split(/[.[]/)[0] ?? "";
    }
    return { payload, settings, name, before, after: this.states, table, error };
  }

  /** Return the settings of the next message, with the parameters that the session's state sets. */
  private settingsNow(): Settings {
    const { kind, values } = this.settings;
    const layout = this.session?.layout;
    const set = specifications.message.settings.flatMap(({ name, property }) =>
      property === null || layout === undefined ? [] : [[name, String(layout[property])]],
    );
    return { kind, values: { ...values, ...(Object.fromEntries(set) as Settings["values"]) } };
  }

  private follow(name: string): void {
    const steps = specifications.message.messages[name]?.steps ?? {};
    const after = this.states.flatMap((state) => steps[state] ?? []);
    if (after.length > 0) this.states = [...new Set(after)];
  }
}

function sessionOf(settings: Settings): [pgoutput.Session | null, string] {
  try {
    return [new pgoutput.Session(optionsOf(settings)), ""];
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return [null, error.message];
  }
}

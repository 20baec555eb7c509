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
  /** The index of the Relation message. */
  readonly index: number;
  readonly name: string;
  readonly columns: readonly string[];
}

/** The tables that Relation messages have described, by OID, in the order of the messages. */
export class Tables {
  private readonly known = new Map<number, Table[]>();

  take(message: pgoutput.PgoutputMessage, index: number): void {
    if (message.message !== "Relation") return;
    const name = `${text(message.namespace) || "pg_catalog"}.${text(message.name)}`;
    const table = { index, name, columns: message.columns.map((column) => text(column.name)) };
    const tables = this.known.get(message.relationOid);
    if (tables === undefined) this.known.set(message.relationOid, [table]);
    else tables.push(table);
  }

  /** Return a table as it was described before a message, or by it. */
  private get(oid: number, index: number): Table | undefined {
    return this.known.get(oid)?.findLast((table) => table.index <= index);
  }

  /** Return the names of the tables and columns in a message, by path. */
  labels(reading: Reading, index: number): Map<string, string> {
    const labels = reading.inner === null ? new Map<string, string>() : this.labels(reading.inner.reading, index);
    if (reading.settings.kind !== "message" || reading.name === "Relation") return labels;
    let table: Table | undefined;
    for (const { path, value } of reading.spans) {
      if (/\.relation_oids?(\[\d+\])?$/.test(path)) {
        table = this.get(Number(value), index);
        if (table !== undefined) labels.set(path, table.name);
      }
      const column = /^.*\.columns\[(\d+)\]/.exec(path);
      if (column !== null && table !== undefined) labels.set(column[0], table.columns[Number(column[1])] ?? "");
    }
    return labels;
  }

  /** Return the name of the table of a change; empty if it has none, or several. */
  tableOf(message: pgoutput.PgoutputMessage, index: number): string {
    return "relationOid" in message ? (this.get(message.relationOid, index)?.name ?? "") : "";
  }
}

function text(value: string | Uint8Array): string {
  return typeof value === "string" ? value : new TextDecoder().decode(value);
}

/** Messages one after the other, read by the session; those of a connection have none. */
export class Stream {
  readonly entries: Entry[] = [];
  readonly tables = new Tables();
  private readonly session: pgoutput.Session | null;
  private readonly refused: string;
  private states: readonly string[];

  constructor(
    readonly payloads: readonly Uint8Array[],
    private readonly settings: Settings,
  ) {
    // As the session, it does not know whether a transaction is open, until the first message that says so.
    this.states = specifications.message.states.filter((state) => state.sets.length === 0).map((state) => state.name);
    [this.session, this.refused] = settings.kind === "connection" ? [null, ""] : sessionOf(settings);
  }

  /** Read messages for some milliseconds; return whether all are read. */
  read(milliseconds: number): boolean {
    const end = performance.now() + milliseconds;
    for (let index = this.entries.length; index < this.payloads.length; index++) {
      if (index % 100 === 0 && performance.now() > end) return false;
      this.entries.push(this.entry(this.payloads[index] ?? new Uint8Array(), index));
    }
    return true;
  }

  private entry(payload: Uint8Array, index: number): Entry {
    if (this.settings.kind === "connection")
      return { payload, settings: this.settings, name: "", before: [], after: [], table: "", error: "" };
    const settings = this.settingsNow();
    const before = this.states;
    let [name, table, error] = ["", "", this.refused];
    try {
      const carried = this.settings.kind === "frame" ? replication.parse(payload, layoutOf(settings)) : null;
      name = carried?.message ?? "";
      const data = carried === null ? payload : "data" in carried ? carried.data : null;
      if (data !== null && this.session !== null) {
        const message = this.session.parse(data);
        this.tables.take(message, index);
        [name, table] = [message.message, this.tables.tableOf(message, index)];
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

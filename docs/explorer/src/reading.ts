/** Reads bytes by the generated codec: which bytes are which field, and where and why reading ended. */

import { connection, pgoutput, replication, WireError } from "../../../spec/typescript/src/index.js";
import type { Reason, Trace } from "../../../spec/typescript/src/index.js";
import { describedAs } from "./data.js";
import type { Described, Kind } from "./data.js";
import { layoutOf, settingsOf } from "./settings.js";
import type { Settings } from "./settings.js";

/** The value of a field. */
export type Value = number | bigint | string | Uint8Array;

/** The object of a message. */
export type Message = pgoutput.PgoutputMessage | replication.Frame | connection.ConnectionMessage;

/** The bytes of one field. */
export interface Span {
  /** The path in the message, as in errors: Insert.new.columns[0].data. */
  readonly path: string;
  /** The key of its description: Insert.new.columns[]:t.data. */
  readonly key: string;
  readonly start: number;
  readonly end: number;
  readonly value: Value;
  readonly described: Described;
}

/** Why reading ended. */
export interface Fault {
  readonly reason: Reason;
  readonly text: string;
  readonly path: string;
  readonly key: string;
  /** The first byte that was not read. */
  readonly offset: number;
}

/** What was read. */
export interface Reading {
  readonly data: Uint8Array;
  readonly settings: Settings;
  /** The message's name; empty if the bytes begin no message. */
  readonly name: string;
  /** The fields in the order of the bytes, without gaps up to the fault. */
  readonly spans: readonly Span[];
  readonly fault: Fault | null;
  /** The codec's object; null after a fault. */
  readonly message: Message | null;
  /** The message that a field of this one carries. */
  readonly inner: { readonly reading: Reading; readonly span: Span } | null;
}

interface Read {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly value: unknown;
}

/** Read a message. */
export function read(data: Uint8Array, settings: Settings): Reading {
  const found: Read[] = [];
  const trace: Trace = (path, start, end, value) => void found.push({ path, start, end, value });
  let [message, error]: [Message | null, WireError | null] = [null, null];
  try {
    message = parse(data, settings, trace);
  } catch (caught) {
    if (!(caught instanceof WireError)) throw caught;
    error = caught;
  }
  // A value that is refused was read before: it ends after the offset of the error.
  const offset = error === null ? data.length : (error.offset ?? 0);
  const spans = found.filter((each) => each.end <= offset);
  const keys = new Keys(settings.kind);
  const described = spans.map((each) => spanOf(each, data, keys));
  const name = (error?.path ?? found[0]?.path ?? "").split(/[.[]/)[0] ?? "";
  const fault = error === null ? null : faultOf(error, offset, keys);
  return { data, settings, name, spans: described, fault, message, inner: carried(described, settings) };
}

function parse(data: Uint8Array, settings: Settings, trace: Trace): Message {
  const { kind, values } = settings;
  switch (kind) {
    case "message":
      return pgoutput.parse(data, layoutOf(settings), trace);
    case "frame":
      return replication.parse(data, layoutOf(settings), trace);
    case "connection":
      return connection.parse(data, values["sender"] as connection.Sender, values["state"] as connection.State, trace);
  }
}

/** Build the bytes of a message; throw a WireError for one that cannot be built. */
export function build(message: Message, settings: Settings): Uint8Array {
  switch (settings.kind) {
    case "message":
      return pgoutput.build(message as pgoutput.PgoutputMessage, layoutOf(settings));
    case "frame":
      return replication.build(message as replication.Frame, layoutOf(settings));
    case "connection":
      return connection.build(message as connection.ConnectionMessage);
  }
}

const END: Described = { notation: "Byte1(0)", description: "Ends the list.", written: "a constant" };

function spanOf(each: Read, data: Uint8Array, keys: Keys): Span {
  const key = keys.of(each.path);
  const described = each.value === null ? END : describedAs(keys.kind, key);
  const value = valueOf(each, described, data);
  if (described.notation === "Byte1") keys.tags.set(each.path, String(value));
  return { path: each.path, key, start: each.start, end: each.end, value, described };
}

/** Return a value as Python's has it: a tag is a letter, a constant its bytes. */
function valueOf(each: Read, described: Described, data: Uint8Array): Value {
  if (described.notation === "Byte1") return String.fromCharCode(Number(each.value));
  if (described.written === "a constant") return data.subarray(each.start, each.end);
  return each.value as Value;
}

function faultOf(error: WireError, offset: number, keys: Keys): Fault {
  return { reason: error.reason, text: error.message, path: error.path, key: keys.of(error.path), offset };
}

/** Read the message that a field carries, if its bytes begin one. */
function carried(spans: readonly Span[], settings: Settings): Reading["inner"] {
  const span = spans.find((each) => each.described.carries !== undefined);
  if (span === undefined || !(span.value instanceof Uint8Array)) return null;
  const reading = read(span.value, settingsOf(span.described.carries ?? settings.kind, settings.values));
  return reading.name === "" ? null : { reading, span };
}

/** Finds the keys of paths: without indexes, and with the tag of the branch after each choice. */
class Keys {
  /** The tags of the choices, by path. */
  readonly tags = new Map<string, string>();

  constructor(readonly kind: Kind) {}

  of(path: string): string {
    const [name = "", ...steps] = path.match(/[^.[\]]+|\[\d+\]/g) ?? [];
    let [key, at] = [name, name];
    for (const step of steps) {
      at += step.startsWith("[") ? step : `.${step}`;
      key += step.startsWith("[") ? "[]" : `.${step}`;
      for (const choice of [`${at}_kind`, at]) {
        const tag = choice === path ? undefined : this.tags.get(choice);
        if (tag !== undefined) key += `:${tag}`;
      }
    }
    return key;
  }
}

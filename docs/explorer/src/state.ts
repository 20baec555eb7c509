/** What the page shows, and its address: the fragment of the URL has all of it. */

import { connection } from "../../../spec/typescript/src/index.js";
import { examples, recordings } from "./data.js";
import type { Example, Recording } from "./data.js";
import { DEFAULTS } from "./reading.js";
import type { Settings } from "./reading.js";
import { bytes, hex, ValueError } from "./values.js";

/** What the page shows. */
export interface State {
  /** Where the messages come from; null for pasted ones. */
  readonly example: Example | null;
  readonly recording: Recording | null;
  readonly payloads: readonly Uint8Array[];
  readonly settings: Settings;
  /** The number of the chosen message, from 0. */
  readonly index: number;
  /** The bytes that this message has after changes; null without any. */
  readonly edited: Uint8Array | null;
  /** The id of the selected node of the tree; empty for the message itself. */
  readonly field: string;
}

const NAMES = {
  kind: "kind",
  version: "protoVersion",
  streaming: "streaming",
  in_stream: "inStream",
  sender: "sender",
  state: "state",
} as const;

const FIRST = "Update";

/** Return what an example shows. */
export function ofExample(example: Example): State {
  const settings = { ...DEFAULTS, ...example.settings, kind: example.kind };
  return { ...EMPTY, example, payloads: [bytes(example.hex)], settings };
}

/** Return what a recorded stream shows. */
export function ofRecording(recording: Recording): State {
  const settings = { ...DEFAULTS, ...recording.settings };
  return { ...EMPTY, recording, payloads: recording.messages.map(bytes), settings };
}

/**
 * Return what pasted text shows: a message a line; a line of # and JSON has the options, as in recorded streams. Throws
 * a ValueError with the number of the line.
 */
export function ofText(text: string, settings: Settings): State {
  let given = settings;
  const payloads: Uint8Array[] = [];
  text.split("\n").forEach((line, number) => {
    try {
      if (line.trim().startsWith("#")) given = { ...given, ...options(line.trim().slice(1)) };
      else if (line.trim() !== "") payloads.push(bytes(line));
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw new ValueError(`Line ${number + 1}: ${error.message}`);
    }
  });
  return { ...EMPTY, payloads: payloads.length === 0 ? [new Uint8Array()] : payloads, settings: given };
}

function options(line: string): Partial<Settings> {
  try {
    const found = JSON.parse(line) as Record<string, unknown>;
    return checked({ protoVersion: found["proto_version"], streaming: found["streaming"] });
  } catch {
    return {}; // a comment
  }
}

const EMPTY = { example: null, recording: null, index: 0, edited: null, field: "" };

/** Return what an address shows: the default for one that says nothing. */
export function ofFragment(fragment: string): State {
  const words = new URLSearchParams(fragment.replace(/^#/, ""));
  const given = checked(
    Object.fromEntries(
      Object.entries(NAMES).flatMap(([word, name]) => {
        const value = words.get(word);
        if (value === null) return [];
        return [[name, name === "protoVersion" ? Number(value) : name === "inStream" ? value === "1" : value]];
      }),
    ),
  );
  const found = source(words, given);
  const index = Math.min(Math.max(Number(words.get("index") ?? 1) - 1 || 0, 0), found.payloads.length - 1);
  const edited = words.get("edited");
  return {
    ...found,
    settings: { ...found.settings, ...given },
    index,
    edited: edited === null ? null : orEmpty(edited),
    field: words.get("field") ?? "",
  };
}

function source(words: URLSearchParams, given: Partial<Settings>): State {
  const recording = recordings.find((each) => each.id === words.get("recording"));
  if (recording !== undefined) return ofRecording(recording);
  const digits = words.get("hex");
  if (digits !== null) {
    const payloads = digits.split(",").map(orEmpty);
    return { ...EMPTY, payloads, settings: { ...DEFAULTS, ...given } };
  }
  const named = (name: string | null) => examples.find((each) => each.id === name);
  const example = named(words.get("example")) ?? named(FIRST) ?? examples[0];
  if (example === undefined) throw new Error("the page was built without examples");
  return ofExample(example);
}

function orEmpty(digits: string): Uint8Array {
  try {
    return bytes(digits);
  } catch {
    return new Uint8Array(); // an address that was cut
  }
}

/** Return those of some settings that are possible. */
function checked(given: Readonly<Record<string, unknown>>): Partial<Settings> {
  const possible: Record<string, (value: never) => boolean> = {
    kind: (value) => ["message", "frame", "connection"].includes(value),
    protoVersion: (value) => Number.isInteger(value) && value > 0,
    streaming: (value) => ["off", "on", "parallel"].includes(value),
    inStream: (value) => typeof value === "boolean",
    sender: (value) => ["server", "client"].includes(value),
    state: (value) => (connection.STATES as readonly string[]).includes(value),
  };
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => possible[name]?.(value as never) === true));
}

/** Return the address of what is shown. */
export function fragmentOf(state: State): string {
  const words = new URLSearchParams();
  const start =
    state.example !== null ? ofExample(state.example) : state.recording !== null ? ofRecording(state.recording) : null;
  if (state.example !== null) words.set("example", state.example.id);
  else if (state.recording !== null) words.set("recording", state.recording.id);
  else words.set("hex", state.payloads.map(hex).join(","));
  if (state.payloads.length > 1) words.set("index", String(state.index + 1));
  const known: Settings = start?.settings ?? DEFAULTS;
  for (const [word, name] of Object.entries(NAMES)) {
    const value = state.settings[name];
    if (value !== known[name]) words.set(word, typeof value === "boolean" ? String(Number(value)) : String(value));
  }
  if (state.edited !== null) words.set("edited", hex(state.edited));
  if (state.field !== "") words.set("field", state.field);
  return `#${words}`;
}

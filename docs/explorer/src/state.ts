/** What the page shows, and its address: the fragment of the URL has all of it. */

import { examples, recordings } from "./data.js";
import type { Example, Recording } from "./data.js";
import { KINDS, settingsOf, withValues } from "./settings.js";
import type { Settings } from "./settings.js";
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
  /** What is wrong with the address; empty if nothing. */
  readonly problem: string;
}

const FIRST = "Update";
/** Bytes that an address can have. */
const LONGEST = 30_000;

/** Return what an example shows. */
export function ofExample(example: Example): State {
  const settings = withValues(settingsOf(example.kind), example.settings);
  return { ...EMPTY, example, payloads: [bytes(example.hex)], settings };
}

/** Return what a recorded stream shows. */
export function ofRecording(recording: Recording): State {
  const settings = withValues(DEFAULTS, recording.settings);
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
      if (line.trim().startsWith("#")) given = withValues(given, options(line.trim().slice(1)));
      else if (line.trim() !== "") payloads.push(bytes(line));
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      throw new ValueError(`Line ${number + 1}: ${error.message}`);
    }
  });
  return { ...EMPTY, payloads: payloads.length === 0 ? [new Uint8Array()] : payloads, settings: given };
}

function options(line: string): object {
  try {
    return Object(JSON.parse(line)) as object;
  } catch {
    return {}; // a comment
  }
}

const DEFAULTS = settingsOf("message");
const EMPTY = { example: null, recording: null, index: 0, edited: null, field: "", problem: "" };

/** Return what an address shows: the default for one that says nothing. */
export function ofFragment(fragment: string): State {
  const words = new URLSearchParams(fragment.replace(/^#/, ""));
  const found = source(words);
  const index = Math.min(Math.max(Math.trunc(Number(words.get("index") ?? 1)) - 1 || 0, 0), found.payloads.length - 1);
  const edited = words.get("edited");
  return {
    ...found,
    ...given(words, found.settings),
    index,
    edited: edited === null ? null : orEmpty(edited),
    field: words.get("field") ?? "",
  };
}

function given(words: URLSearchParams, settings: Settings): Partial<State> {
  const kind = KINDS.find((each) => each === words.get("kind")) ?? settings.kind;
  const start = kind === settings.kind ? settings : settingsOf(kind, settings.values);
  try {
    return { settings: withValues(start, Object.fromEntries(words)) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    return { settings: start, problem: `The address: ${error.message}` };
  }
}

function source(words: URLSearchParams): State {
  const recording = recordings.find((each) => each.id === words.get("recording"));
  if (recording !== undefined) return ofRecording(recording);
  const digits = words.get("hex");
  if (digits !== null) {
    return { ...EMPTY, payloads: digits.split(",").map(orEmpty), settings: DEFAULTS };
  }
  const named = (name: string | null) => examples.find((each) => each.id === name);
  if (words.has("pasted"))
    return {
      ...EMPTY,
      payloads: [new Uint8Array()],
      settings: DEFAULTS,
      problem: "The address has no bytes: there were too many.",
    };
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

/** Return the address of what is shown. */
export function fragmentOf(state: State): string {
  const words = new URLSearchParams();
  const start =
    state.example !== null ? ofExample(state.example) : state.recording !== null ? ofRecording(state.recording) : null;
  if (state.example !== null) words.set("example", state.example.id);
  else if (state.recording !== null) words.set("recording", state.recording.id);
  else if (state.payloads.reduce((sum, payload) => sum + payload.length, 0) > LONGEST) return "#pasted=";
  else words.set("hex", state.payloads.map(hex).join(","));
  if (state.payloads.length > 1) words.set("index", String(state.index + 1));
  const { kind, values } = state.settings;
  let known = start?.settings ?? DEFAULTS;
  if (kind !== known.kind) {
    words.set("kind", kind);
    known = settingsOf(kind, known.values);
  }
  for (const [name, value] of Object.entries(values)) if (value !== known.values[name]) words.set(name, value);
  if (state.edited !== null && state.edited.length <= LONGEST) words.set("edited", hex(state.edited));
  if (state.field !== "") words.set("field", state.field);
  return `#${words}`;
}

/** What the page knows of the specification, its examples and the recorded streams: data.js has it (tools/explorer). */

import type { pgoutput } from "../../../spec/typescript/src/index.js";

/** Which specification the bytes follow: pgoutput's messages, the frames around them, or the connection's messages. */
export type Kind = "message" | "frame" | "connection";

/** What the specification says of a field, a group of fields, or a message. */
export interface Described {
  readonly notation: string;
  readonly description: string;
  /** The permitted values, or the permitted bits, with their meanings. */
  readonly values?: Readonly<Record<string, string>>;
  readonly bits?: Readonly<Record<string, string>>;
  /** Under which it is present, in words; absent: always. */
  readonly condition?: string;
  /** The first release of PostgreSQL with it, where it is newer than its message. */
  readonly server?: number;
  /** Whether a choice may be left out, which the next tag shows. */
  readonly optional?: boolean;
  /** The type of its values in Python: Lsn, Timestamp, int, str, bytes. */
  readonly python?: string;
  /** The properties that lead to its value in the codec's object; "[]" is an item of a list. */
  readonly change?: readonly string[];
  /** What the codec writes by itself, in a field that cannot be changed. */
  readonly written?: string;
  /** Of a tag: the type of what follows each letter. */
  readonly contents?: Readonly<Record<string, string>>;
  /** The kind of the message that its bytes are. */
  readonly carries?: Kind;
}

/** What the specification says of a message besides its fields. */
export interface About {
  readonly since: string;
  readonly sender: string | null;
  readonly unasked: string | null;
  /** The states in which it is permitted, each with the one that follows. */
  readonly steps: Readonly<Record<string, string>>;
}

/** An option, a parameter that states of a stream set, or what determines the layout of a connection's messages. */
export interface Setting {
  readonly name: string;
  readonly description: string;
  readonly values: readonly { readonly name: string; readonly description: string; readonly server: number | null }[];
  readonly default: string;
  /** Of a parameter that states set: its property in the codec's layouts. */
  readonly property: keyof pgoutput.Layout | null;
}

/** One specification. */
export interface Specification {
  readonly kind: Kind;
  readonly title: string;
  /** The page of the reference. */
  readonly reference: string;
  readonly settings: readonly Setting[];
  readonly states: readonly { readonly name: string; readonly sets: readonly string[] }[];
  readonly messages: Readonly<Record<string, About>>;
  readonly fields: Readonly<Record<string, Described>>;
}

/** A message that the page offers. */
export interface Example {
  readonly id: string;
  readonly message: string;
  readonly title: string;
  readonly kind: Kind;
  readonly hex: string;
  readonly settings: object;
  /** The Relation messages of its tables, as they are outside of a stream. */
  readonly before: readonly string[];
}

/** A recorded stream. */
export interface Recording {
  readonly id: string;
  readonly title: string;
  readonly settings: object;
  readonly messages: readonly string[];
}

interface Data {
  readonly specifications: Readonly<Record<Kind, Specification>>;
  readonly examples: readonly Example[];
  readonly recordings: readonly Recording[];
}

declare global {
  var explorerData: Data;
}

export const { specifications, examples, recordings } = globalThis.explorerData;

const UNDESCRIBED: Described = { notation: "", description: "" };

/** Return what the specification says of a key. */
export function describedAs(kind: Kind, key: string): Described {
  return specifications[kind].fields[key] ?? UNDESCRIBED;
}

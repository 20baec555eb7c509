/** Changes of fields: the codec builds the bytes of the changed message. */

import { build } from "./reading.js";
import type { Message, Reading, Span, Value } from "./reading.js";

type Part = Record<string, unknown> | unknown[];

/** Return the bytes of a message after a change of a field, in it or in the message that it carries. */
export function changed(reading: Reading, span: Span, value: Value): Uint8Array {
  const { message, inner, settings } = reading;
  if (message === null) throw new Error("bytes that are no message cannot be changed");
  if (inner !== null && !reading.spans.includes(span))
    return changed(reading, inner.span, changed(inner.reading, span, value));
  const copy = structuredClone(message);
  assign(copy, span, value);
  return build(copy, settings);
}

/** Return the letters that a tag may become: those whose content can be made of the present one, or is empty. */
export function possibleTags(span: Span): string[] {
  const contents = span.described.contents ?? {};
  const present = contents[String(span.value)];
  return Object.keys(contents).filter((letter) => ["", present, "Uint8Array"].includes(contents[letter]));
}

function assign(message: Message, span: Span, value: Value): void {
  const indexes = Array.from(span.path.matchAll(/\[(\d+)\]/g), (match) => Number(match[1]));
  const steps = (span.described.change ?? []).map((step) => (step === "[]" ? (indexes.shift() ?? 0) : step));
  const last = steps.pop();
  if (last === undefined) throw new Error(`${span.path} cannot be changed`);
  let part: Part = message as unknown as Part;
  for (const step of steps) part = at(part, step) as Part;
  if (span.described.contents !== undefined) retag(part as Record<string, unknown>, span, String(value));
  else set(part, last, value);
}

/** Give an object of a choice another tag, with the content that it needs. */
function retag(part: Record<string, unknown>, span: Span, letter: string): void {
  const content = span.described.contents?.[letter] ?? "";
  part["kind"] = letter;
  if (content === "") delete part["value"];
  else part["value"] ??= new Uint8Array();
}

function at(part: Part, step: string | number): unknown {
  return Array.isArray(part) ? part[Number(step)] : part[step];
}

function set(part: Part, step: string | number, value: unknown): void {
  if (Array.isArray(part)) part[Number(step)] = value;
  else part[step] = value;
}

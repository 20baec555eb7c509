/** Values as text, and text as values. */

import { lsnText, timestampText } from "../../../spec/typescript/src/index.js";
import type { Described } from "./data.js";
import type { Value } from "./reading.js";

/** Text that is no value of a field. */
export class ValueError extends Error {}

/** Return a value as it is shown: text in quotes, unless it is to be changed; of long values those characters at most. */
export function shown(value: Value, described: Described, quoted = true, most = Infinity): string {
  if (typeof value === "bigint" && described.python === "Lsn") return lsnText(value);
  if (typeof value === "bigint" && described.python === "Timestamp") return timestampText(value);
  if (typeof value === "number" || typeof value === "bigint") return Object.is(value, -0) ? "-0" : String(value);
  if (described.python === "Float") return `\\x${hex(value as Uint8Array)}`; // a NaN that is not PostgreSQL's own
  const data = typeof value === "string" ? new TextEncoder().encode(value) : value;
  const text = textOf(data);
  if (text !== null && quoted) return `'${text}'`;
  const isAmbiguous = text !== null && /[\r\n]|^\\x[0-9a-f]*$/i.test(text); // an input has no lines
  return text === null || isAmbiguous ? `\\x${hex(data.subarray(0, most))}` : text;
}

/** Return the meaning of a value, such as the names of its bits; empty if the specification gives none. */
export function meaning(value: Value, described: Described): string {
  if (described.bits !== undefined && (typeof value === "number" || typeof value === "bigint")) {
    const set = Object.entries(described.bits).filter(([bit]) => (BigInt(value) & BigInt(bit)) !== 0n);
    return set.map(([, name]) => name).join(", ") || "none";
  }
  return described.values?.[String(value)] ?? "";
}

const UNIX_DAYS = 10_957n;

/** Return the value that text stands for, of the type of the value that is there; throw a ValueError. */
export function parsed(text: string, described: Described, current: Value): Value {
  if (described.python === "Lsn") return lsn(text);
  if (described.python === "Timestamp") return timestamp(text);
  if (described.python === "Float") return float(text);
  if (typeof current === "bigint") return whole(text);
  if (typeof current === "number") return Number(whole(text));
  if (/^\\x[0-9a-f]*$/i.test(text)) return bytes(text.slice(2));
  return typeof current === "string" || described.python === "str" ? text : new TextEncoder().encode(text);
}

function whole(text: string): bigint {
  if (!/^-?(\d+|0x[0-9a-f]+)$/i.test(text.trim())) throw new ValueError("Write a whole number.");
  return BigInt(text.trim());
}

/** Return a number in floating point, in the words of PostgreSQL's float8; digits of its bytes are those of a NaN. */
function float(text: string): number | Uint8Array {
  const plain = text.trim().toLowerCase();
  if (/^\\x([0-9a-f]{2}){8}$/.test(plain)) return bytes(plain);
  if (plain === "nan") return NaN;
  const far = /^([+-]?)inf(inity)?$/.exec(plain);
  if (far !== null) return far[1] === "-" ? -Infinity : Infinity;
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Number(plain) : NaN;
  if (!Number.isFinite(value))
    throw new ValueError("Write a number as PostgreSQL's float8 has it: -1.5e3, NaN, Infinity.");
  return value;
}

function lsn(text: string): bigint {
  const found = /^\s*([0-9a-f]{1,8})\/([0-9a-f]{1,8})\s*$/i.exec(text);
  if (found === null) throw new ValueError("Write an LSN as PostgreSQL does: 16/B374D848.");
  return (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}

function timestamp(text: string): bigint {
  if (/^\s*-?\d+\s*$/.test(text)) return BigInt(text.trim());
  const far = /^\s*(-?)infinity\s*$/.exec(text);
  if (far !== null) return far[1] === "-" ? -(2n ** 63n) : 2n ** 63n - 1n;
  const found = /^\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|\+00:00)?\s*$/.exec(text);
  const seconds = found === null ? NaN : Date.parse(`${found[1]?.replace(" ", "T")}Z`);
  if (Number.isNaN(seconds)) throw new ValueError("Write a time in UTC: 2024-05-01T12:00:00.123456+00:00.");
  const micros = BigInt((found?.[2] ?? "").padEnd(6, "0"));
  return BigInt(seconds) * 1000n + micros - UNIX_DAYS * 86_400_000_000n;
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Return bytes as hexadecimal digits. */
export function hex(data: Uint8Array): string {
  let digits = "";
  for (const byte of data) digits += PAIRS[byte];
  return digits;
}

/** Return the bytes of hexadecimal digits; blanks and \x are ignored. Throws a ValueError. */
export function bytes(digits: string): Uint8Array {
  const plain = digits.replace(/\\x|0x|[\s,:]/gi, "");
  const wrong = /[^0-9a-f]/i.exec(plain);
  if (wrong !== null) throw new ValueError(`“${wrong[0]}” is no hexadecimal digit.`);
  if (plain.length % 2 !== 0) throw new ValueError("The number of digits is odd: each byte has two.");
  const found = new Uint8Array(plain.length / 2);
  for (let at = 0; at < found.length; at++) found[at] = 16 * digit(plain, 2 * at) + digit(plain, 2 * at + 1);
  return found;
}

function digit(digits: string, at: number): number {
  const code = digits.charCodeAt(at);
  return (code & 15) + (code > 57 ? 9 : 0); // letters follow the digits, in both cases with the same four bits
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Return bytes as text; null if they are not text that can be shown. */
function textOf(data: Uint8Array): string | null {
  try {
    const text = decoder.decode(data);
    return /[\x00-\x08\x0b-\x1f\x7f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** Values with a meaning of their own, their JSON, and errors. */

/** A position in the WAL (XLogRecPtr), of 64 bits. */
export type Lsn = bigint;

/** Microseconds since 2000-01-01 00:00 UTC (TimestampTz). */
export type Timestamp = bigint;

/** A number in floating point (float8); the eight bytes of a NaN whose bits are not those of PostgreSQL's own. */
export type Float = number | Uint8Array;

/** The bits of the NaN that PostgreSQL's get_float8_nan() returns; numbers do not keep those of others. */
export const QUIET_NAN = 0x7ff8n << 48n;

/** Text; its bytes, if they are not UTF-8. */
export type Text = string | Uint8Array;

/** A value of JSON; a bigint is a number of 64 bits. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Why bytes are refused, or why a message cannot be built. */
export type Reason =
  | "empty"
  | "tag"
  | "version"
  | "option"
  | "length"
  | "truncated"
  | "constant"
  | "value"
  | "bits"
  | "kind"
  | "trailing"
  | "state"
  | "build";

const TEXTS: Record<Reason, string> = {
  empty: "there are no bytes",
  tag: "no message begins with this tag here",
  version: "the protocol version does not have this",
  option: "this comes only under other options, or in another state",
  length: "the length is not that of the bytes",
  truncated: "the bytes end here",
  constant: "must be another constant",
  value: "a value that is not defined",
  bits: "a bit that is not defined",
  kind: "the tag of no branch",
  trailing: "the message ends here, and bytes follow",
  state: "not permitted in this state",
  build: "the message cannot carry this value",
};

/** Return the number that the text of an option is: digits, for a number of 32 bits. */
export function optionNumber(name: string, value: string): number {
  if (!/^[0-9]+$/.test(value) || Number(value) > 0xffffffff) throw unknownOption(name);
  return Number(value);
}

/** Return the boolean that the text of an option is, in the words that PostgreSQL accepts (defGetBoolean). */
export function optionFlag(name: string, value: string): boolean {
  const isOn = ["true", "on", "1"].includes(value.toLowerCase());
  if (!isOn && !["false", "off", "0"].includes(value.toLowerCase())) throw unknownOption(name);
  return isOn;
}

/** Return the value of an option that its text is. */
export function optionValue<const T extends string>(name: string, value: string, values: readonly T[]): T {
  const found = values.find((each) => each === value);
  if (found === undefined) throw unknownOption(name);
  return found;
}

/** Return the error for an option, or a value of it, that determines no layout. */
export function unknownOption(name: string): WireError {
  return new WireError("value", name, null);
}

/** Bytes that are not a message, or a message that cannot be built. */
export class WireError extends Error {
  override readonly name = "WireError";

  /**
   * @param reason What is wrong.
   * @param path The path of the field, such as `Relation.columns[3].name`.
   * @param offset The offset of its first byte; null if the error is not in bytes.
   */
  constructor(
    readonly reason: Reason,
    readonly path: string,
    readonly offset: number | null,
  ) {
    super(`${path}${offset === null ? "" : ` at byte ${offset}`}: ${TEXTS[reason]}`.trimStart());
  }
}

/** Throw an error unless an option is one that this protocol version has. */
export function check(isRight: boolean, option: string): void {
  if (!isRight) throw new WireError("version", option, null);
}

/** Return whether a bit is set. */
export function hasBit(value: number | bigint, bit: number): boolean {
  return (BigInt(value) & BigInt(bit)) !== 0n;
}

/** Return whether a number has no bits beyond those of a mask. */
export function hasOnly(value: number | bigint, mask: number | bigint): boolean {
  return (BigInt(value) & ~BigInt(mask)) === 0n;
}

/** Collects the steps to a field; they are printed for errors and traces only. */
export class Path {
  private readonly names: string[] = [];
  private readonly indexes: number[] = [];
  private depth = 0;

  push(name: string): void {
    this.names[this.depth] = name;
    this.indexes[this.depth] = -1;
    this.depth++;
  }

  /** Enter an item of the list that was entered last; -1: the list itself. */
  index(index: number): void {
    this.indexes[this.depth - 1] = index;
  }

  pop(): void {
    this.depth--;
  }

  to(name: string): string {
    let text = "";
    for (let step = 0; step <= this.depth; step++) {
      const [own, index] = step < this.depth ? [this.names[step] ?? "", this.indexes[step] ?? -1] : [name, -1];
      if (own !== "") text += (text === "" ? "" : ".") + own;
      if (index >= 0) text += `[${index}]`;
    }
    return text;
  }
}

/** Return an LSN as PostgreSQL prints it, such as 16/B374D848. */
export function lsnText(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffffffffn).toString(16)}`.toUpperCase();
}

const DAY = 86_400_000_000n;
const UNIX = 10_957n * DAY;

/** Return ISO 8601 in UTC, infinity, or the number itself if its year is not in the range 1 to 9999. */
export function timestampText(time: Timestamp): string {
  if (time === 2n ** 63n - 1n) return "infinity";
  if (time === -(2n ** 63n)) return "-infinity";
  if (time < -63_082_281_600_000_000n || time > 252_455_615_999_999_999n) return String(time);
  const micros = ((time % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((time - micros + UNIX) / 1000n));
  const fraction = micros === 0n ? "" : `.${String(micros).padStart(6, "0")}`;
  return `${date.toISOString().slice(0, 19)}${fraction}+00:00`;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Return bytes as text; themselves if they are not UTF-8. */
export function textOf(data: Uint8Array): Text {
  try {
    return decoder.decode(data);
  } catch {
    return data;
  }
}

/** Return the bytes of text; undefined for lone surrogates, which have none. */
export function bytesOf(text: Text): Uint8Array | undefined {
  if (typeof text !== "string") return text;
  const data = encoder.encode(text);
  return textOf(data) === text ? data : undefined;
}

/** Return bytes as an object with their hexadecimal digits. */
export function jsonHex(name: string, data: Uint8Array): Json {
  return { [name]: jsonDigits(data) };
}

/** Return the hexadecimal digits of bytes. */
export function jsonDigits(data: Uint8Array): string {
  let digits = "";
  for (const byte of data) digits += byte.toString(16).padStart(2, "0");
  return digits;
}

/** Return bytes as text, or an object with their digits if they are not UTF-8. */
export function jsonTextOrHex(name: string, data: Uint8Array): Json {
  const text = textOf(data);
  return typeof text === "string" ? text : jsonHex(name, data);
}

/** Return a number in floating point; one that JSON does not have is text, or an object with the digits of its bytes. */
export function jsonFloat(value: Float): Json {
  if (typeof value !== "number") return jsonHex("hex", value);
  return Number.isFinite(value) ? value : String(value);
}

/** Return text, or an object with the digits of its bytes if they are not UTF-8. */
export function jsonText(text: Text): Json {
  return typeof text === "string" ? text : jsonHex("hex", text);
}

/** Return a value as the text of JSON: a bigint as a number with all of its digits, a large number with an exponent. */
export function stringify(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}:${stringify(each)}`)
      .join(",")}}`;
  }
  if (typeof value === "bigint") return String(value);
  if (Object.is(value, -0)) return "-0.0";
  if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) return value.toExponential();
  return JSON.stringify(value);
}

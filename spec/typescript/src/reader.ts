/** Reading bytes: whatever is read is compared with the bytes that are left first. */

import { hasOnly, Path, QUIET_NAN, textOf, WireError } from "./values.js";
import type { Float, Reason, Text } from "./values.js";

/** Is called for each field that was read, with its path, the range of its bytes, and its value. */
export type Trace = (path: string, start: number, end: number, value: unknown) => void;

/** Reads fields one after the other; errors have the path of the field and the offset of its first byte. */
export class Reader {
  private readonly path = new Path();
  private readonly view: DataView;
  private at = 0;

  constructor(
    private data: Uint8Array,
    private readonly trace?: Trace,
  ) {
    this.view = new DataView(data.buffer, data.byteOffset, data.length);
  }

  /** Return the first byte, -1 if no bytes remain. */
  first(): number {
    return this.data[0] ?? -1;
  }

  /** Begin a message. */
  begin(name: string): void {
    this.path.push(name);
  }

  /** Throw the error for bytes that begin no message. */
  unknownTag(): never {
    throw new WireError(this.data.length === 0 ? "empty" : "tag", "", 0);
  }

  fail(reason: Reason, name: string, offset: number): never {
    throw new WireError(reason, this.path.to(name), offset);
  }

  /** Refuse a tag, just read, that does not come under these options. */
  refuse(name: string, isOld: boolean): never {
    return this.fail(isOld ? "version" : "option", name, this.at - 1);
  }

  /** Return whether a byte comes next. */
  next(value: number): boolean {
    return this.data[this.at] === value;
  }

  private take(name: string, size: number): number {
    const start = this.at;
    if (!(size >= 0 && size <= this.data.length - start)) this.fail("truncated", name, start);
    this.at = start + size;
    return start;
  }

  private note<T>(name: string, start: number, value: T): T {
    if (this.trace !== undefined) this.trace(this.path.to(name), start, this.at, value);
    return value;
  }

  uint8(name: string): number {
    const start = this.take(name, 1);
    return this.note(name, start, this.view.getUint8(start));
  }

  uint16(name: string): number {
    const start = this.take(name, 2);
    return this.note(name, start, this.view.getUint16(start));
  }

  uint32(name: string): number {
    const start = this.take(name, 4);
    return this.note(name, start, this.view.getUint32(start));
  }

  uint64(name: string): bigint {
    const start = this.take(name, 8);
    return this.note(name, start, this.view.getBigUint64(start));
  }

  int8(name: string): number {
    const start = this.take(name, 1);
    return this.note(name, start, this.view.getInt8(start));
  }

  int16(name: string): number {
    const start = this.take(name, 2);
    return this.note(name, start, this.view.getInt16(start));
  }

  int32(name: string): number {
    const start = this.take(name, 4);
    return this.note(name, start, this.view.getInt32(start));
  }

  int64(name: string): bigint {
    const start = this.take(name, 8);
    return this.note(name, start, this.view.getBigInt64(start));
  }

  float64(name: string): Float {
    const start = this.take(name, 8);
    const value = this.view.getFloat64(start);
    const isOther = Number.isNaN(value) && this.view.getBigUint64(start) !== QUIET_NAN;
    return this.note(name, start, isOther ? this.data.subarray(start, this.at) : value);
  }

  /** Check a number of some bytes, which ends here. */
  oneOf<T extends number | bigint>(name: string, size: number, value: T, ...values: T[]): T {
    if (!values.includes(value)) this.fail("value", name, this.at - size);
    return value;
  }

  /** Check the bits of a number of some bytes, which ends here. */
  bits<T extends number | bigint>(name: string, size: number, value: T, mask: T): T {
    if (!hasOnly(value, mask)) this.fail("bits", name, this.at - size);
    return value;
  }

  letter(name: string, letters: string): string {
    const start = this.take(name, 1);
    const letter = String.fromCharCode(this.data[start] as number);
    if (!letters.includes(letter)) this.fail("value", name, start);
    return this.note(name, start, letter);
  }

  /** Throw the error for the tag of no branch, which was just read. */
  unknownKind(name: string): never {
    return this.fail("kind", name, this.at - 1);
  }

  /** Read a byte that is always the same. */
  byte(name: string, value: number): void {
    const start = this.take(name, 1);
    if (this.data[start] !== value) this.fail("constant", name, start);
    this.note(name, start, value);
  }

  constant(name: string, value: readonly number[]): void {
    const start = this.take(name, value.length);
    if (value.some((byte, index) => byte !== this.data[start + index])) this.fail("constant", name, start);
    this.note(name, start, value);
  }

  /** Read the length of the message, from its own first byte on. */
  length(name: string, size: number): void {
    const left = this.data.length - this.at;
    const start = this.take(name, size);
    let length = 0;
    for (let index = start; index < this.at; index++) length = 256 * length + (this.data[index] as number);
    if (length !== left) this.fail("length", name, start);
    this.note(name, start, length);
  }

  text(name: string): Text {
    const end = this.data.indexOf(0, this.at);
    if (end < 0) this.fail("truncated", name, this.at);
    const start = this.take(name, end + 1 - this.at);
    return this.note(name, start, textOf(this.data.subarray(start, end)));
  }

  bytes(name: string, size: number): Uint8Array {
    const start = this.take(name, size);
    return this.note(name, start, this.data.subarray(start, this.at));
  }

  /** Read bytes, none if the length stands for their absence. */
  nullable(name: string, size: number, absent: number): Uint8Array | null {
    return size === absent ? null : this.bytes(name, size);
  }

  rest(name: string): Uint8Array {
    return this.bytes(name, this.data.length - this.at);
  }

  inside<T>(name: string, read: () => T): T {
    this.path.push(name);
    const value = read();
    this.path.pop();
    return value;
  }

  /** Read a part that has as many bytes as a length says: they end as those of a message do. */
  area<T>(name: string, size: number, read: () => T): T {
    const data = this.data;
    if (size > data.length - this.at) this.fail("truncated", name, this.at);
    this.data = data.subarray(0, this.at + size);
    const value = this.inside(name, read);
    this.data = data;
    return value;
  }

  /** Read items whose number was read before. */
  items<T>(name: string, count: number, read: () => T): T[] {
    const found: T[] = [];
    this.path.push(name);
    for (let index = 0; index < count; index++) {
      this.path.index(index);
      found.push(read());
    }
    this.path.pop();
    return found;
  }

  itemsToEnd<T>(name: string, read: () => T): T[] {
    const found: T[] = [];
    this.path.push(name);
    while (this.at < this.data.length) {
      this.path.index(found.length);
      found.push(read());
    }
    this.path.pop();
    return found;
  }

  itemsUntilZero<T>(name: string, read: () => T): T[] {
    const found: T[] = [];
    this.path.push(name);
    while (!this.next(0)) {
      this.path.index(-1);
      if (this.at === this.data.length) this.fail("truncated", "", this.at);
      this.path.index(found.length);
      found.push(read());
    }
    this.path.index(-1);
    this.note("", this.take("", 1), null);
    this.path.pop();
    return found;
  }

  end(): void {
    if (this.at < this.data.length) this.fail("trailing", "", this.at);
  }
}

/** Return which of some messages of a connection bytes begin, by tags and constants after the length; -1 if none. */
export function begins(
  data: Uint8Array,
  can: readonly (readonly [number, number])[],
  begins: readonly (readonly [readonly number[], readonly number[]])[],
  length: number,
): number {
  for (const [number] of can) {
    const [tag, code] = begins[number] as readonly [readonly number[], readonly number[]];
    const at = tag.length + length;
    const has = (bytes: readonly number[], from: number) => bytes.every((byte, index) => data[from + index] === byte);
    if (data.length > 0 && has(tag, 0) && has(code, at)) return number;
  }
  return -1;
}

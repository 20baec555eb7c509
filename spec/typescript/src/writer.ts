/** Writing bytes: values that a message cannot carry are errors. */

import { bytesOf, hasOnly, Path, QUIET_NAN, WireError } from "./values.js";
import type { Float, Text } from "./values.js";

/** Collects the bytes of a message. */
export class Writer {
  private readonly path = new Path();
  private data = new Uint8Array(64);
  private view = new DataView(this.data.buffer);
  private size = 0;
  /** The room for lengths of parts that are not written yet: the name of each, its offset and its size. */
  private readonly blanks: [string, number, number][] = [];

  constructor(name: string) {
    this.path.push(name);
  }

  finish(): Uint8Array {
    return this.data.subarray(0, this.size);
  }

  /** Throw an error unless a value is possible. */
  possible(name: string, isPossible: boolean): void {
    if (!isPossible) throw new WireError("build", this.path.to(name), null);
  }

  /** Return a value that must be present under these options. */
  present<T>(name: string, value: T | null | undefined): T {
    this.possible(name, value !== null && value !== undefined);
    return value as T;
  }

  /** Throw an error if a value is present that these options do not carry. */
  absent(name: string, value: unknown): void {
    this.possible(name, value === null || value === undefined);
  }

  private room(size: number): number {
    const start = this.size;
    this.size += size;
    if (this.size > this.data.length) {
      const data = new Uint8Array(2 * this.size);
      data.set(this.data);
      this.data = data;
      this.view = new DataView(data.buffer);
    }
    return start;
  }

  raw(data: ArrayLike<number>): void {
    const start = this.room(data.length); // before this.data is read: it may be another one afterwards
    this.data.set(data, start);
  }

  bytes(name: string, data: ArrayLike<number>, size = data.length): void {
    this.possible(name, data.length === size);
    this.raw(data);
  }

  uint(name: string, size: number, value: number | bigint): void {
    this.number(name, size, value, 0n, 1n << BigInt(8 * size));
  }

  int(name: string, size: number, value: number | bigint): void {
    const limit = 1n << BigInt(8 * size - 1);
    this.number(name, size, value, -limit, limit);
  }

  private number(name: string, size: number, value: number | bigint, least: bigint, end: bigint): void {
    this.possible(name, typeof value === "bigint" || Number.isInteger(value));
    const whole = BigInt(value);
    this.possible(name, whole >= least && whole < end);
    const start = this.room(size);
    if (size === 8) this.view.setBigUint64(start, BigInt.asUintN(64, whole));
    else if (size === 4) this.view.setUint32(start, Number(BigInt.asUintN(32, whole)));
    else if (size === 2) this.view.setUint16(start, Number(BigInt.asUintN(16, whole)));
    else this.view.setUint8(start, Number(BigInt.asUintN(8, whole)));
  }

  float64(name: string, value: Float): void {
    if (typeof value !== "number") {
      this.possible(name, value instanceof Uint8Array);
      this.bytes(name, value, 8);
      return;
    }
    const start = this.room(8);
    if (Number.isNaN(value)) this.view.setBigUint64(start, QUIET_NAN);
    else this.view.setFloat64(start, value);
  }

  oneOf<T extends number | bigint>(name: string, value: T, ...values: T[]): T {
    this.possible(name, values.includes(value));
    return value;
  }

  bits<T extends number | bigint>(name: string, value: T, mask: T): T {
    this.possible(name, typeof value === "bigint" || Number.isInteger(value));
    this.possible(name, hasOnly(value, mask));
    return value;
  }

  letter(name: string, value: string, letters: string): void {
    this.possible(name, value.length === 1 && letters.includes(value));
    this.raw([value.charCodeAt(0)]);
  }

  text(name: string, text: Text): void {
    const data = bytesOf(text);
    this.possible(name, data !== undefined && !data.includes(0));
    this.raw(data ?? []);
    this.raw([0]);
  }

  inside(name: string, write: () => void): void {
    this.path.push(name);
    write();
    this.path.pop();
  }

  /** Leave room for the length of a part, which follows. */
  blank(name: string, size: number): void {
    this.blanks.push([name, this.room(size), size]);
  }

  /** Write a part, and its length into the room that was left for it. */
  area(name: string, length: string, write: () => void): void {
    const start = this.size;
    this.inside(name, write);
    const index = this.blanks.map(([each]) => each).lastIndexOf(length);
    for (const [, at, size] of this.blanks.splice(index, 1)) this.fill(length, at, size, this.size - start);
  }

  /** Return a list after the check that it has as many items as it must have. */
  counted<T>(name: string, items: readonly T[], count: number): readonly T[] {
    this.possible(name, items.length === count);
    return items;
  }

  /** Write the items of a list; none may begin with a zero byte if that ends the list. */
  items<T>(name: string, items: readonly T[], write: (item: T) => void, isTerminated = false): void {
    this.path.push(name);
    items.forEach((item, index) => {
      this.path.index(index);
      const start = this.size;
      write(item);
      this.possible("", !isTerminated || start === this.size || this.data[start] !== 0);
    });
    this.path.pop();
  }

  /** Write the length of all that follows its own first byte, which is at an offset. */
  close(at: number, size: number): void {
    this.fill("length", at, size, this.size - at);
  }

  /** Write a length into the room that was left for it at an offset. */
  private fill(name: string, at: number, size: number, length: number): void {
    const end = this.size;
    this.size = at;
    this.uint(name, size, length);
    this.size = end;
  }
}

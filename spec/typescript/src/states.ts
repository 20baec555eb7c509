/** The state of a stream, as the specification's table of transitions moves it. */

import { WireError } from "./values.js";

type Transitions = readonly (readonly (readonly [number, number])[])[];

/**
 * The states in which a stream may be: those with the same parameters are not told apart, since a reader that begins in
 * the middle of a stream does not know whether a transaction is open.
 */
export class StreamState {
  private possible: readonly number[];
  /** The states after each message, for the possible ones that were met. */
  private readonly known = new Map<readonly number[], (readonly number[] | undefined)[]>();
  private readonly alike: readonly (readonly number[])[];

  constructor(
    private readonly setsOf: readonly number[],
    private readonly transitions: Transitions,
  ) {
    const groups = new Map<number, number[]>();
    setsOf.forEach((sets, state) => groups.set(sets, [...(groups.get(sets) ?? []), state]));
    this.alike = setsOf.map((sets) => groups.get(sets) ?? []);
    this.possible = this.alike[0] ?? [];
  }

  /** The parameters that the state sets, as bits. */
  get sets(): number {
    return this.setsOf[this.possible[0] ?? 0] ?? 0;
  }

  /** Move to the state after a message; throw a WireError if it is not permitted. */
  advance(message: number, name: string): void {
    let after = this.known.get(this.possible);
    if (after === undefined) this.known.set(this.possible, (after = []));
    const reached = (after[message] ??= this.reached(message));
    if (reached.length === 0) throw new WireError("state", name, null);
    this.possible = reached;
  }

  private reached(message: number): readonly number[] {
    // From states that are alike a message leads to states that are alike: the specification is checked for that.
    const step = (this.transitions[message] ?? []).find(([before]) => this.possible.includes(before));
    return step === undefined ? [] : (this.alike[step[1]] ?? []);
  }
}

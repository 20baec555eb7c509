/** The pane of a stream: its messages, with the state of each, and what the session says against it. */

import { specifications } from "./data.js";
import { colourOf, element } from "./dom.js";
import { Rows } from "./rows.js";
import type { Entry } from "./stream.js";

const STATES = specifications.message.states.map(({ name }) => name);
/** The first state, between transactions. */
const IDLE = STATES[0] ?? "";

export class StreamView {
  private entries: readonly Entry[] = [];
  private readonly rows: Rows;
  private index = 0;

  constructor(
    pane: HTMLElement,
    private readonly choose: (index: number, isStep: boolean) => void,
  ) {
    this.rows = new Rows(pane, (index) => this.row(index));
    pane.addEventListener("click", (event) => {
      const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
      if (row !== null) this.choose(Number(row.dataset["index"]), false);
    });
    pane.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show the messages of a stream. */
  show(entries: readonly Entry[]): void {
    this.entries = entries;
    this.rows.show(entries.length);
  }

  private row(index: number): HTMLElement {
    const entry = this.entries[index] as Entry;
    const state = stateOf(entry);
    const earlier = this.entries[index - 1];
    const isNew = earlier === undefined || stateOf(earlier) !== state || (state !== IDLE && isIdle(entry.before));
    const row = element(
      "div",
      {
        role: "option",
        id: `message-${index}`,
        "data-index": index,
        "aria-selected": String(index === this.index),
        "aria-posinset": index + 1,
        "aria-setsize": this.entries.length,
        style: colourOf(STATES.indexOf(state) - 1),
        class: `${isNew ? "new-state" : ""} ${entry.error === "" ? "" : "refused"}`,
        title: entry.error === "" ? about(entry) : entry.error,
      },
      element("span", { class: "number" }, String(index + 1)),
      element("span", { class: "name" }, entry.name || "?"),
      element("span", { class: "table" }, entry.table),
      element("span", { class: "state" }, isNew ? state : ""),
    );
    if (entry.error !== "") row.append(element("span", { class: "error" }, entry.error));
    return row;
  }

  /** Choose a message. */
  select(index: number): void {
    this.rows.get(this.index)?.setAttribute("aria-selected", "false");
    this.index = index;
    const row = this.rows.reveal(index);
    row?.setAttribute("aria-selected", "true");
    this.rows.pane.setAttribute("aria-activedescendant", row?.id ?? "");
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const end = this.entries.length - 1;
    const steps: Record<string, number> = {
      ArrowDown: this.index + 1,
      ArrowUp: this.index - 1,
      PageDown: this.index + 10,
      PageUp: this.index - 10,
      Home: 0,
      End: end,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(step, 0), end), true);
  }
}

/** Return the state that a message belongs to: the one that it enters, or the one that it ends. */
function stateOf({ before, after }: Entry): string {
  const states = isIdle(after) ? before : after;
  return states.length > 1 ? "unknown" : (states[0] ?? "");
}

function isIdle(states: readonly string[]): boolean {
  return states.length === 1 && states[0] === IDLE;
}

/** Say between which states a message is. */
export function about({ before, after, settings }: Entry): string {
  if (before.length === 0) return "";
  const [from, to] = [before.join(" or "), after.join(" or ")];
  const set = specifications.message.settings.filter(
    ({ name, property }) => property !== null && settings.values[name] === "true",
  );
  const state = [`State: ${from}`, ...set.map(({ name }) => name)].join(", ");
  return from === to ? state : `${state}; then ${to}`;
}

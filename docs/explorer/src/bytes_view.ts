/** The pane of bytes: rows of hexadecimal digits and characters, coloured by field. */

import { colourOf, element } from "./dom.js";
import { Rows } from "./rows.js";
import type { Node, Tree } from "./tree.js";

/** What a pane reports. */
export interface Choices {
  select(node: Node): void;
  hover(node: Node | null): void;
}

type Mark = "selected" | "hovered";

/** The width of a pane, in pixels, from which rows have 16 bytes. */
const WIDE = 650;

export class BytesView {
  private tree: Tree | null = null;
  private width = 8;
  private marked: Record<Mark, Node | null> = { selected: null, hovered: null };
  private before: Uint8Array | null = null;
  /** The range of the bytes that differ from those before a change. */
  private difference: readonly [number, number] = [0, 0];
  private readonly rows: Rows;

  constructor(
    private readonly pane: HTMLElement,
    private readonly choices: Choices,
  ) {
    this.rows = new Rows(pane, (index) => this.row(this.tree as Tree, index));
    const nodeAt = (event: Event) => {
      const at = (event.target as HTMLElement).dataset["at"];
      return at === undefined ? undefined : this.nodeAt(Number(at));
    };
    pane.addEventListener("click", (event) => {
      const node = nodeAt(event);
      if (node !== undefined) this.choices.select(node);
    });
    pane.addEventListener("mouseover", (event) => this.choices.hover(nodeAt(event) ?? null));
    pane.addEventListener("mouseleave", () => this.choices.hover(null));
    pane.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => {
      const width = pane.clientWidth >= WIDE ? 16 : 8;
      if (width === this.width) return;
      this.width = width;
      const { selected } = this.marked;
      if (this.tree !== null) this.show(this.tree, this.before);
      if (selected !== null) this.select(selected);
    }).observe(pane);
  }

  /** Show the bytes of a tree; those that differ from the bytes before a change are marked. */
  show(tree: Tree, before: Uint8Array | null): void {
    this.tree = tree;
    this.before = before;
    this.marked = { selected: null, hovered: null };
    const { data } = tree.reading;
    this.difference = before === null ? [0, 0] : difference(before, data);
    this.rows.show(Math.max(Math.ceil(data.length / this.width), 1));
    this.pane.scrollTop = 0;
    this.pane.style.setProperty("--width", String(this.width));
  }

  private row(tree: Tree, index: number): HTMLElement {
    const { data } = tree.reading;
    const start = index * this.width;
    const [digits, letters] = [element("span", { class: "digits" }), element("span", { class: "letters" })];
    const end = Math.min(start + this.width, data.length);
    for (let at = start; at < end; at++) {
      const byte = data[at] ?? 0;
      const attributes = { class: this.classOf(tree, at), "data-at": at, style: colourOf(tree.at(at)?.colour ?? -1) };
      digits.append(element("span", attributes, byte.toString(16).padStart(2, "0")));
      letters.append(element("span", attributes, byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·"));
    }
    if (end === data.length && tree.fault !== null && faultAt(tree.fault) === end && end < start + this.width) {
      digits.append(element("span", { class: "end", "data-at": end, title: "The bytes end here" }, "▮"));
    }
    const row = element("div", { class: "row" }, element("span", { class: "offset" }, String(start)), digits, letters);
    this.paint("selected", row);
    this.paint("hovered", row);
    return row;
  }

  private classOf(tree: Tree, at: number): string {
    const node = tree.at(at);
    const names = node === undefined ? ["unread"] : [];
    if (node !== undefined && node !== tree.at(at - 1)) names.push("first");
    if (tree.fault !== null && faultAt(tree.fault) === at) names.push("at-fault");
    if (at >= this.difference[0] && at < this.difference[1]) names.push("changed");
    return names.join(" ");
  }

  private nodeAt(at: number): Node | undefined {
    return this.tree?.at(at) ?? this.tree?.fault ?? undefined;
  }

  /** Mark the bytes of a node: its own, and more lightly those in it. */
  select(node: Node): void {
    this.mark("selected", node);
    const first = node.kind === "fault" ? faultAt(node) : node.start;
    if (first >= 0) this.rows.reveal(Math.floor(first / this.width));
  }

  /** Mark the bytes of the node that the pointer is at. */
  hover(node: Node | null): void {
    this.mark("hovered", node);
  }

  private mark(name: Mark, node: Node | null): void {
    for (const each of this.pane.querySelectorAll(`.${name}, .${name}-in`)) each.classList.remove(name, `${name}-in`);
    this.marked[name] = node;
    if (node === null) return;
    const [start, end] = rangeOf(node);
    for (const index of this.rows.made(Math.floor(start / this.width), Math.floor(end / this.width))) {
      this.paint(name, this.rows.get(index) as HTMLElement);
    }
  }

  /** Mark the bytes of a row that belong to the node that has a mark. */
  private paint(name: Mark, row: HTMLElement): void {
    const node = this.marked[name];
    if (node === null || (node.parent === null && node.children.length > 0)) return;
    const [start, end] = rangeOf(node);
    const isOwn = (at: number) =>
      node.kind === "fault" ||
      (node.span !== null && at >= node.base + node.span.start && at < node.base + node.span.end);
    for (const cell of row.querySelectorAll<HTMLElement>("[data-at]")) {
      const at = Number(cell.dataset["at"]);
      if (at >= start && at < end) cell.classList.add(isOwn(at) ? name : `${name}-in`);
    }
  }

  /** Left and right lead to the previous and the next field, up and down to the one in the row above or below. */
  private key(event: KeyboardEvent): void {
    if (this.tree === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const { fault } = this.tree;
    const { selected } = this.marked;
    const fields = fault === null ? this.tree.fields : [...this.tree.fields, fault];
    const index = selected === null ? -1 : fields.indexOf(selected);
    const [from, end] = [selected === null ? 0 : Math.max(rangeOf(selected)[0], 0), fields.length - 1];
    const below = this.nodeAt(from + this.width);
    const steps: Record<string, () => Node | undefined> = {
      ArrowRight: () => fields[Math.min(index + 1, end)],
      ArrowLeft: () => fields[Math.max(index - 1, 0)],
      ArrowDown: () => (below === selected && selected !== null ? this.nodeAt(selected.end) : below),
      ArrowUp: () => (from < this.width ? undefined : this.nodeAt(from - this.width)),
      Home: () => fields[0],
      End: () => fields[end],
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const node = step();
    if (node !== undefined) this.choices.select(node);
  }
}

/** Return the range of the bytes that are not alike before and after it. */
function difference(before: Uint8Array, after: Uint8Array): [number, number] {
  const size = Math.min(before.length, after.length);
  let [start, alike] = [0, 0];
  while (start < size && before[start] === after[start]) start++;
  while (alike < size - start && before.at(-1 - alike) === after.at(-1 - alike)) alike++;
  return [start, after.length - alike];
}

/** Return the offset of the first byte that was not read. */
export function faultAt(node: Node): number {
  return node.base + (node.fault?.offset ?? 0);
}

/** Return the range of the bytes of a node and of what is in it; of a fault that of the byte after those that were read. */
function rangeOf(node: Node): [number, number] {
  return node.kind === "fault" ? [faultAt(node), faultAt(node) + 1] : [node.start, node.end];
}

/** The pane of bytes: rows of hexadecimal digits and characters, coloured by field. */

import { element, reveal } from "./dom.js";
import type { Node, Tree } from "./tree.js";

/** What a pane reports. */
export interface Choices {
  select(node: Node): void;
  hover(node: Node | null): void;
}

/** The width of a pane, in pixels, from which rows have 16 bytes. */
const WIDE = 650;

export class BytesView {
  private tree: Tree | null = null;
  private width = 8;
  private selected: Node | null = null;
  private before: Uint8Array | null = null;
  /** The range of the bytes that differ from those before a change. */
  private difference: readonly [number, number] = [0, 0];
  private cells: HTMLElement[][] = [];

  constructor(
    private readonly pane: HTMLElement,
    private readonly choices: Choices,
  ) {
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
      if (this.tree !== null) this.show(this.tree, this.before);
      if (this.selected !== null) this.select(this.selected);
    }).observe(pane);
  }

  /** Show the bytes of a tree; those that differ from the bytes before a change are marked. */
  show(tree: Tree, before: Uint8Array | null): void {
    this.tree = tree;
    this.before = before;
    const { data } = tree.reading;
    this.difference = before === null ? [0, 0] : difference(before, data);
    this.cells = [];
    const rows: HTMLElement[] = [];
    for (let at = 0; at === 0 || at < data.length; at += this.width) rows.push(this.row(tree, data, at));
    this.pane.replaceChildren(...rows);
    this.pane.style.setProperty("--width", String(this.width));
  }

  private row(tree: Tree, data: Uint8Array, start: number): HTMLElement {
    const [digits, letters] = [element("span", { class: "digits" }), element("span", { class: "letters" })];
    const end = Math.min(start + this.width, data.length);
    for (let at = start; at < end; at++) {
      const byte = data[at] ?? 0;
      const attributes = { class: this.classOf(tree, at), "data-at": at };
      const cell = element("span", attributes, byte.toString(16).padStart(2, "0"));
      const letter = element("span", attributes, byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·");
      this.cells[at] = [cell, letter];
      digits.append(cell);
      letters.append(letter);
    }
    if (end === data.length && tree.fault !== null && faultAt(tree.fault) === end && end < start + this.width) {
      const mark = element("span", { class: "end", "data-at": end, title: "The bytes end here" }, "▮");
      this.cells[end] = [mark];
      digits.append(mark);
    }
    return element("div", { class: "row" }, element("span", { class: "offset" }, String(start)), digits, letters);
  }

  private classOf(tree: Tree, at: number): string {
    const node = tree.byByte[at];
    const names = node === undefined ? ["unread"] : [`c${node.colour}`];
    if (node !== undefined && node !== tree.byByte[at - 1]) names.push("first");
    if (tree.fault !== null && faultAt(tree.fault) === at) names.push("at-fault");
    if (at >= this.difference[0] && at < this.difference[1]) names.push("changed");
    return names.join(" ");
  }

  private nodeAt(at: number): Node | undefined {
    const node = this.tree?.byByte[at];
    return node ?? this.tree?.fault ?? undefined;
  }

  /** Mark the bytes of a node: its own, and more lightly those in it. */
  select(node: Node): void {
    this.selected = node;
    this.mark("selected", node);
    const first = this.cells[node.kind === "fault" ? faultAt(node) : node.start]?.[0];
    if (first !== undefined) reveal(this.pane, first);
  }

  /** Mark the bytes of the node that the pointer is at. */
  hover(node: Node | null): void {
    this.mark("hovered", node);
  }

  private mark(name: "selected" | "hovered", node: Node | null): void {
    for (const each of this.pane.querySelectorAll(`.${name}, .${name}-in`)) each.classList.remove(name, `${name}-in`);
    if (node === null || (node.parent === null && node.children.length > 0)) return;
    if (node.kind === "fault") this.cells[faultAt(node)]?.forEach((cell) => cell.classList.add(name));
    const own = node.span;
    for (let at = Math.max(node.start, 0); at < node.end; at++) {
      const isOwn = own !== null && at >= node.base + own.start && at < node.base + own.end;
      this.cells[at]?.forEach((cell) => cell.classList.add(isOwn ? name : `${name}-in`));
    }
  }

  /** Left and right lead to the previous and the next field, up and down to the one in the row above or below. */
  private key(event: KeyboardEvent): void {
    if (this.tree === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const { nodes } = this.tree;
    const fields = nodes.filter((node) => (node.span !== null && node.colour >= 0) || node.kind === "fault");
    fields.sort((one, other) => startOf(one) - startOf(other));
    const index = this.selected === null ? -1 : fields.indexOf(this.selected);
    const [from, end] = [this.selected === null ? 0 : Math.max(startOf(this.selected), 0), fields.length - 1];
    const steps: Record<string, () => Node | undefined> = {
      ArrowRight: () => fields[Math.min(index + 1, end)],
      ArrowLeft: () => fields[Math.max(index - 1, 0)],
      ArrowDown: () => this.nodeAt(from + this.width),
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

function startOf(node: Node): number {
  return node.kind === "fault" ? faultAt(node) : node.start;
}

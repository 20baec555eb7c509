/** The pane of fields: a tree that the keyboard can walk, and a search in it. */

import type { Choices } from "./bytes_view.js";
import { colourOf, element } from "./dom.js";
import { Rows } from "./rows.js";
import type { Node, Tree } from "./tree.js";
import { meaningOf, valueOf } from "./tree.js";

/** Characters of a value that a row shows. */
const LONGEST = 48;

export class TreeView {
  private tree: Tree | null = null;
  private selected: Node | null = null;
  private readonly closed = new Set<string>();
  /** The nodes that are in no closed group, and the index of each. */
  private visible: Node[] = [];
  private indexes = new Map<Node, number>();
  private matches = new Set<Node>();
  private readonly rows: Rows;

  constructor(
    private readonly pane: HTMLElement,
    private readonly choices: Choices,
  ) {
    this.rows = new Rows(pane, (index) => this.row(this.visible[index] as Node, index));
    const nodeOf = (event: Event) => {
      const id = (event.target as HTMLElement).closest<HTMLElement>("[data-id]")?.dataset["id"];
      return id === undefined ? undefined : this.tree?.get(id);
    };
    pane.addEventListener("click", (event) => {
      const node = nodeOf(event);
      if (node === undefined) return;
      if ((event.target as HTMLElement).classList.contains("twisty")) this.toggle(node, this.closed.has(node.id));
      else this.choices.select(node);
    });
    pane.addEventListener("mouseover", (event) => this.choices.hover(nodeOf(event) ?? null));
    pane.addEventListener("mouseleave", () => this.choices.hover(null));
    pane.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show a tree. */
  show(tree: Tree): void {
    this.tree = tree;
    this.matches.clear();
    this.unfold();
    this.pane.scrollTop = 0;
  }

  private row(node: Node, index: number): HTMLElement {
    const value = valueOf(node, LONGEST + 1);
    const short = value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value;
    const isOpen = node.children.length > 0 && String(!this.closed.has(node.id));
    const row = element(
      "div",
      {
        role: "treeitem",
        id: `row-${index}`,
        class: `${node.kind} ${this.matches.has(node) ? "match" : ""}`,
        "data-id": node.id,
        "aria-level": depthOf(node) + 1,
        "aria-selected": String(node === this.selected),
        style: `--depth: ${depthOf(node)}; ${colourOf(node.colour)}`,
        title: node.described.description,
        "aria-expanded": isOpen,
      },
      element("span", { class: "twisty", "aria-hidden": "true" }),
      element("span", { class: "name" }, node.name),
    );
    if (node.label !== "") row.append(element("span", { class: "label" }, node.label));
    if (short !== "") row.append(element("span", { class: "value" }, short));
    const meaning = meaningOf(node) || (node.parent === null ? node.described.description : "");
    if (meaning !== "") row.append(element("span", { class: "meaning" }, meaning));
    return row;
  }

  /** Select a node; the groups that it is in are opened. */
  select(node: Node): void {
    if (this.selected !== null) this.element(this.selected)?.setAttribute("aria-selected", "false");
    this.selected = node;
    for (let outer = node.parent; outer !== null; outer = outer.parent) this.toggle(outer, true);
    const row = this.rows.reveal(this.indexes.get(node) ?? -1);
    row?.setAttribute("aria-selected", "true");
    this.pane.setAttribute("aria-activedescendant", row?.id ?? "");
  }

  /** Mark the node that the pointer is at. */
  hover(node: Node | null): void {
    for (const row of this.pane.querySelectorAll(".hovered")) row.classList.remove("hovered");
    if (node !== null) this.element(node)?.classList.add("hovered");
  }

  /** Mark the nodes that have some words, in names and values, or else in descriptions; return them. */
  search(words: string): Node[] {
    const wanted = words.trim().toLowerCase();
    const all = wanted === "" ? [] : (this.tree?.nodes ?? []);
    const shown = all.filter((node) => textOf(node).includes(wanted));
    const nodes =
      shown.length > 0 ? shown : all.filter((node) => node.described.description.toLowerCase().includes(wanted));
    this.matches = new Set(nodes);
    for (const index of this.rows.made()) {
      this.rows.get(index)?.classList.toggle("match", this.matches.has(this.visible[index] as Node));
    }
    return nodes;
  }

  private element(node: Node): HTMLElement | undefined {
    return this.rows.get(this.indexes.get(node) ?? -1);
  }

  private toggle(node: Node, isOpen: boolean): void {
    if (node.children.length === 0 || this.closed.has(node.id) === !isOpen) return;
    if (isOpen) this.closed.delete(node.id);
    else this.closed.add(node.id);
    this.unfold();
  }

  /** Show the rows that are in no closed group. */
  private unfold(): void {
    const { scrollTop } = this.pane;
    this.visible = this.tree?.nodes.filter((node) => !this.isHidden(node)) ?? [];
    this.indexes = new Map(this.visible.map((node, index) => [node, index]));
    this.rows.show(this.visible.length);
    this.pane.scrollTop = scrollTop;
  }

  private isHidden(node: Node): boolean {
    return node.parent !== null && (this.closed.has(node.parent.id) || this.isHidden(node.parent));
  }

  private key(event: KeyboardEvent): void {
    if (this.tree === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const { visible } = this;
    const node = this.selected ?? this.tree.root;
    const index = this.indexes.get(node) ?? -1;
    const isOpen = node.children.length > 0 && !this.closed.has(node.id);
    const steps: Record<string, () => Node | null | undefined> = {
      ArrowDown: () => visible[index + 1],
      ArrowUp: () => visible[index - 1],
      Home: () => visible[0],
      End: () => visible.at(-1),
      ArrowRight: () => {
        if (isOpen) return node.children[0];
        this.toggle(node, true);
        return null;
      },
      ArrowLeft: () => {
        if (!isOpen) return node.parent;
        this.toggle(node, false);
        return null;
      },
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = step();
    if (next !== null && next !== undefined) this.choices.select(next);
  }
}

function depthOf(node: Node): number {
  return node.parent === null ? 0 : depthOf(node.parent) + 1;
}

function textOf(node: Node): string {
  return [node.path, node.label, valueOf(node), meaningOf(node)].join(" ").toLowerCase();
}

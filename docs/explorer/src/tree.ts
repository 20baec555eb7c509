/** The tree of what was read: fields in groups, what is absent under these options, and where reading ended. */

import { describedAs, specifications } from "./data.js";
import type { Described, Kind } from "./data.js";
import type { Fault, Reading, Span } from "./reading.js";
import { meaning, shown } from "./values.js";

/** A field, a group of fields, a field that is absent, or the fault. */
export interface Node {
  /** Unique in the tree: the path, after those of the messages that carry this one. */
  readonly id: string;
  readonly path: string;
  /** The last step of the path. */
  readonly name: string;
  readonly described: Described;
  readonly kind: "field" | "group" | "absent" | "fault";
  /** The field's own bytes; null for a group without any. */
  readonly span: Span | null;
  /** The reading that it is in, and the offset of that in all bytes. */
  readonly reading: Reading;
  readonly base: number;
  readonly fault: Fault | null;
  readonly parent: Node | null;
  readonly children: Node[];
  /** The range of its own bytes and of those in it. */
  start: number;
  end: number;
  /** The number of its colour; -1 without bytes of its own. */
  colour: number;
  /** The name of its table or column, if that is known. */
  label: string;
}

/** The tree of a message. */
export class Tree {
  /** All nodes, in the order in which they are shown. */
  readonly nodes: Node[] = [];
  readonly root: Node;
  /** The fields that have bytes, by the first of these; after each field that carries a message those of that message. */
  readonly fields: readonly Node[];
  readonly fault: Node | null;
  private readonly byId = new Map<string, Node>();
  private colours = 0;

  constructor(
    readonly reading: Reading,
    labels: ReadonlyMap<string, string>,
  ) {
    this.root = this.message(reading, 0, null, "");
    this.number(this.root);
    this.fault = this.nodes.find((node) => node.kind === "fault") ?? null;
    for (const node of this.nodes) node.label = labels.get(node.path) ?? "";
    this.fields = this.nodes.filter((node) => node.colour >= 0).sort((one, other) => one.start - other.start);
  }

  /** Return the field that a byte belongs to; undefined after the fault. */
  at(byte: number): Node | undefined {
    let [first, end] = [0, this.fields.length];
    while (first < end) {
      const middle = (first + end) >> 1;
      if ((this.fields[middle]?.start ?? 0) <= byte) first = middle + 1;
      else end = middle;
    }
    let node: Node | null = this.fields[first - 1] ?? null;
    while (node !== null && (node.span === null || byte >= node.base + node.span.end)) node = node.parent;
    return node ?? undefined;
  }

  /** Return a node by its id, or undefined. */
  get(id: string): Node | undefined {
    return this.byId.get(id);
  }

  private message(reading: Reading, base: number, parent: Node | null, prefix: string): Node {
    const { name, fault, settings } = reading;
    const root = this.add(reading, base, parent, prefix, name === "" ? "No message" : name, "group", name, null);
    for (const span of reading.spans) {
      const group = this.group(root, span.path, span.key, prefix);
      const node = this.add(reading, base, group, prefix, span.path, "field", span.key, span);
      node.colour = span.end > span.start ? this.colours++ : -1;
      const inner = reading.inner;
      if (inner?.span === span) this.message(inner.reading, base + span.start, node, `${prefix}${span.path}/`);
    }
    if (fault === null) for (const key of absentIn(settings.kind, reading)) this.absent(root, key, prefix);
    else this.addFault(root, fault, prefix);
    return root;
  }

  /** Return the node of the group that a path is in; groups without a node get one. */
  private group(root: Node, path: string, key: string, prefix: string): Node {
    const at = path.length - nameOf(path).length;
    if (at === 0) return root;
    const above = path.slice(0, at).replace(/\.$/, "");
    if (above === root.path) return root;
    const aboveKey = parentKey(key);
    const known = this.byId.get(prefix + above);
    if (known !== undefined) return known;
    const outer = this.group(root, above, aboveKey, prefix);
    return this.add(root.reading, root.base, outer, prefix, above, "group", aboveKey, null);
  }

  private absent(root: Node, key: string, prefix: string): void {
    const node = this.add(root.reading, root.base, root, prefix, key, "absent", key, null);
    // It stands where its bytes would: before what follows it in the specification.
    const keys = Object.keys(specifications[root.reading.settings.kind].fields);
    const after = root.children.findIndex((each) => each !== node && keys.indexOf(each.path) > keys.indexOf(key));
    if (after >= 0) root.children.splice(after, 0, ...root.children.splice(root.children.indexOf(node), 1));
  }

  private addFault(root: Node, fault: Fault, prefix: string): void {
    const isRoot = fault.path === "" || fault.path === root.path;
    const group = isRoot ? root : this.group(root, fault.path, fault.key, prefix);
    const path = isRoot ? `${root.path}!` : fault.path;
    this.add(root.reading, root.base, group, prefix, path, "fault", fault.key, null, fault);
  }

  private add(
    reading: Reading,
    base: number,
    parent: Node | null,
    prefix: string,
    path: string,
    kind: Node["kind"],
    key: string,
    span: Span | null,
    fault: Fault | null = null,
  ): Node {
    const described = span?.described ?? describedAs(reading.settings.kind, key);
    const id = prefix + path;
    const at = span === null ? -1 : base + span.start;
    const name = parent === null || path === reading.name ? path : nameOf(path);
    const node: Node = {
      id: this.byId.has(id) ? `${id}!` : id,
      path,
      name,
      described,
      kind,
      span,
      reading,
      base,
      fault,
      parent,
      children: [],
      start: at,
      end: span === null ? -1 : base + span.end,
      colour: -1,
      label: "",
    };
    this.byId.set(node.id, node);
    parent?.children.push(node);
    return node;
  }

  /** Put a node and what is in it into the order, with the range of the bytes of all. */
  private number(node: Node): void {
    this.nodes.push(node);
    for (const child of node.children) {
      this.number(child);
      if (child.start < 0) continue;
      node.start = node.start < 0 ? child.start : Math.min(node.start, child.start);
      node.end = Math.max(node.end, child.end);
    }
  }
}

/** Return the last step of a path, with its index if it has one: columns[3]. */
function nameOf(path: string): string {
  return /(^|(?<=\.))[^.]*$/.exec(path)?.[0] ?? path;
}

function parentKey(key: string): string {
  return key.replace(/\.(?:[^.:]|:.)*$/s, "").replace(/:.$/s, "");
}

/** Return the keys of the fields of a message itself that are absent under its options, or by the next tag. */
function absentIn(kind: Kind, reading: Reading): string[] {
  const read = new Set(reading.spans.map((span) => span.key));
  return Object.entries(specifications[kind].fields)
    .filter(([key, { condition, optional, notation }]) => {
      const isOwn = key.startsWith(`${reading.name}.`) && !/[.:[]/.test(key.slice(reading.name.length + 1));
      return isOwn && !read.has(key) && (condition !== undefined || (optional === true && notation === "Byte1"));
    })
    .map(([key]) => key);
}

/** Return the type of a node, as the specification writes it. */
export function typeOf(node: Node): string {
  const { notation } = node.described;
  if (notation.startsWith("repeat")) return "list";
  if (notation.startsWith("choice")) return "one of several";
  if (notation === "Byte1" && node.span !== null) return `Byte1(${shown(node.span.value, node.described)})`;
  return node.kind === "group" && node.parent === null ? "" : notation;
}

/** Say under which conditions a field is present; empty if it always is. */
export function presenceOf({ condition, server, optional }: Described): string {
  if (condition !== undefined)
    return `if ${condition}${server === undefined ? "" : ` (PostgreSQL ${server} and newer)`}`;
  return optional === true ? "if its tag comes next" : "";
}

/** Return the value of a node, as text; empty without one. Long text and bytes can be cut. */
export function valueOf(node: Node, most = Infinity): string {
  if (node.kind === "fault") return "fault";
  if (node.kind === "absent") return "absent";
  if (node.span === null || node.span.described.carries !== undefined) return "";
  return shown(node.span.value, node.described, true, most);
}

/** Return the meaning of the value of a node, or what is wrong with it. */
export function meaningOf(node: Node): string {
  if (node.fault !== null) return node.fault.text;
  if (node.kind === "absent") return presenceOf(node.described);
  return node.span === null ? "" : meaning(node.span.value, node.described);
}

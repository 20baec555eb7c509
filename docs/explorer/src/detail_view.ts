/** The pane of details: what the specification says of a field, where it is, and how to change it. */

import { specifications } from "./data.js";
import type { Described } from "./data.js";
import { element } from "./dom.js";
import { possibleTags } from "./editing.js";
import type { Fault, Span, Value } from "./reading.js";
import { presenceOf, typeOf, valueOf } from "./tree.js";
import type { Node } from "./tree.js";
import { meaning, parsed, shown, ValueError } from "./values.js";

/** Changes a field; throws a ValueError or a WireError for a value that it cannot have. */
export type Change = (node: Node, value: Value) => void;

/** Characters of a value that are shown. */
const LONGEST = 4000;

export class DetailView {
  constructor(
    private readonly pane: HTMLElement,
    private readonly select: (node: Node) => void,
    private readonly change: Change,
  ) {}

  /** Show a node. */
  show(node: Node): void {
    const { described, fault, span } = node;
    const type = typeOf(node);
    const title = element("h2", {}, node.label === "" ? node.name : `${node.name} (${node.label})`);
    if (type !== "") title.append(" ", element("code", {}, type));
    const parts: HTMLElement[] = [this.path(node), title];
    if (fault !== null) parts.push(element("p", { class: "fault", role: "alert" }, sentence(fault.text)));
    if (described.description !== "") parts.push(element("p", {}, sentence(described.description)));
    parts.push(facts(node));
    if (span !== null && node.reading.message !== null) parts.push(this.form(node, span));
    this.pane.replaceChildren(...parts);
    this.pane.scrollTop = 0;
  }

  /** Set the cursor into the form, if there is one. */
  edit(): void {
    this.pane.querySelector<HTMLElement>("form :is(input, select)")?.focus();
  }

  /** Return the steps that lead to a node, each a button. */
  private path(node: Node): HTMLElement {
    const steps: Node[] = [];
    for (let each: Node | null = node; each !== null; each = each.parent) steps.unshift(each);
    const list = element("nav", { "aria-label": "Path of the field" });
    for (const each of steps) {
      const button = element("button", { type: "button", "aria-current": each === node && "true" }, each.name);
      button.addEventListener("click", () => this.select(each));
      list.append(button);
    }
    return list;
  }

  private form(node: Node, span: Span): HTMLElement {
    const { described } = span;
    if (described.written !== undefined) {
      return element("p", { class: "note" }, `It cannot be changed by itself: the codec writes ${described.written}.`);
    }
    if (described.change === undefined || described.carries !== undefined) return element("div");
    const problem = element("p", { class: "fault", role: "alert" });
    const [input, current] = inputOf(span);
    const form = element("form", {}, element("label", { for: "value" }, "Change to"), input);
    if (!(input instanceof HTMLSelectElement)) form.append(element("button", {}, "Build"));
    form.append(problem);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      try {
        this.change(node, current());
      } catch (error) {
        if (!(error instanceof ValueError) && !(error instanceof Error && error.name === "WireError")) throw error;
        problem.textContent = error.message;
      }
    });
    if (input instanceof HTMLSelectElement) input.addEventListener("change", () => form.requestSubmit());
    return form;
  }
}

/** Return the control for the value of a field, and what returns the value that it has. */
function inputOf(span: Span): [HTMLElement, () => Value] {
  const { described, value } = span;
  const letters = described.contents === undefined ? Object.keys(described.values ?? {}) : possibleTags(span);
  if (letters.length > 0) {
    const options = letters.map((letter) => {
      const text = `${letter}: ${described.values?.[letter] ?? ""}`;
      return element("option", { value: letter, selected: letter === String(value) }, text);
    });
    const input = element("select", { id: "value" }, ...options);
    return [input, () => (typeof value === "string" ? input.value : parsed(input.value, described, value))];
  }
  if (described.bits !== undefined) return bitsOf(described, value);
  const text = shown(value, described, false);
  const given: Record<string, string | boolean> =
    text.length > LONGEST
      ? { required: true, placeholder: "too long to be shown: write another value" }
      : { value: text };
  const input = element("input", { id: "value", spellcheck: "false", autocomplete: "off", ...given });
  return [input, () => parsed(input.value, described, value)];
}

/** Return boxes for the bits of a field. */
function bitsOf(described: Described, value: Value): [HTMLElement, () => Value] {
  const boxes = Object.entries(described.bits ?? {}).map(([bit, name], number) => {
    const checked = (BigInt(value as number) & BigInt(bit)) !== 0n;
    const attributes = { type: "checkbox", value: bit, checked, ...(number === 0 ? { id: "value" } : {}) };
    const box = element("input", attributes);
    return [box, element("label", { class: "bit" }, box, ` ${name}`)] as const;
  });
  const sum = () => boxes.reduce((all, [box]) => all | (box.checked ? BigInt(box.value) : 0n), 0n);
  return [
    element("span", {}, ...boxes.map(([, label]) => label)),
    () => (typeof value === "bigint" ? sum() : Number(sum())),
  ];
}

function facts(node: Node): HTMLElement {
  const { span, described, fault } = node;
  const rows: [string, ...(string | HTMLElement)[]][] = [];
  if (node.kind === "field" && span !== null) {
    const value = valueOf(node, LONGEST + 1);
    const shown = value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value;
    if (value !== "") rows.push(["Value", element("code", {}, shown)]);
    const said = meaning(span.value, described);
    if (said !== "") rows.push(["Meaning", sentence(said)]);
  }
  if (fault !== null) rows.push(["Reading ended", endOf(node, fault)]);
  else if (node.start >= 0) rows.push(["Bytes", rangeOf(node)]);
  const presence = presenceOf(described);
  if (presence !== "") rows.push(["Present", node.kind === "absent" ? `${presence}; here it is absent` : presence]);
  if (node.parent === null) rows.push(...aboutMessage(node));
  if (node.path !== "") rows.push(["Path", element("code", {}, fault?.path ?? node.path)]);
  const list = element("dl");
  for (const [term, ...words] of rows) list.append(element("dt", {}, term), element("dd", {}, ...words));
  return list;
}

function endOf(node: Node, fault: Fault): string {
  const left = node.reading.data.length - fault.offset;
  const rest = left === 0 ? "no byte is left" : left === 1 ? "one byte is left" : `${left} bytes are left`;
  return `at byte ${node.base + fault.offset}, before which all was read; ${rest}`;
}

function rangeOf(node: Node): string {
  const own = node.span;
  const [start, end] = own === null ? [node.start, node.end] : [node.base + own.start, node.base + own.end];
  const size = end - start;
  const range =
    size > 1 ? `${start} to ${end - 1}, ${size} bytes` : size === 1 ? `${start}, one byte` : `none, at ${start}`;
  const all = node.end - node.start;
  return all > size ? `${range}; with what is in it ${node.start} to ${node.end - 1}, ${all} bytes` : range;
}

function aboutMessage(node: Node): [string, ...(string | HTMLElement)[]][] {
  const specification = specifications[node.reading.settings.kind];
  const about = specification.messages[node.reading.name];
  if (about === undefined) return [];
  const title = node.described.notation;
  const link = element("a", { href: `${specification.reference}#${title.toLowerCase().replaceAll(" ", "-")}` });
  link.append(`${title} in the reference`);
  const rows: [string, ...(string | HTMLElement)[]][] = [["Since", about.since]];
  if (about.sender !== null) rows.push(["Sent by", `the ${about.sender}`]);
  if (about.unasked !== null) rows.push(["Unasked", about.unasked]);
  return [...rows, ["Reference", link]];
}

function sentence(text: string): string {
  const end = /[.!?]$/.test(text) ? "" : ".";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${end}`;
}

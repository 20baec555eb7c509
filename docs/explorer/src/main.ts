/** The page: its panes, its controls, and its address. */

import { pgoutput } from "../../../spec/typescript/src/index.js";
import { BytesView } from "./bytes_view.js";
import type { Choices } from "./bytes_view.js";
import { Controls } from "./controls.js";
import { DetailView } from "./detail_view.js";
import { found } from "./dom.js";
import { changed } from "./editing.js";
import { read } from "./reading.js";
import type { Reading, Value } from "./reading.js";
import { settingsOf, withValues } from "./settings.js";
import { fragmentOf, ofFragment } from "./state.js";
import type { State } from "./state.js";
import { Stream, Tables } from "./stream.js";
import { about, StreamView } from "./stream_view.js";
import { Tree } from "./tree.js";
import type { Node } from "./tree.js";
import { TreeView } from "./tree_view.js";
import { bytes, hex } from "./values.js";

/** Milliseconds of work between which the page answers. */
const SLICE = 50;

class Page {
  private state: State = ofFragment(location.hash);
  private tree!: Tree;
  private stream: Stream | null = null;
  /** The states that the history of the browser leads to: an address has no long messages. */
  private readonly states = new Map<unknown, State>();
  private matches: Node[] = [];
  private readonly bytesView: BytesView;
  private readonly treeView: TreeView;
  private readonly detail: DetailView;
  private readonly list: StreamView;
  private readonly controls: Controls;

  constructor() {
    const choices: Choices = { select: (node) => this.select(node), hover: (node) => this.hover(node) };
    this.bytesView = new BytesView(found("bytes"), choices);
    this.treeView = new TreeView(found("tree"), choices);
    this.detail = new DetailView(found("detail"), choices.select, (node, value) => this.change(node, value));
    this.list = new StreamView(found("stream"), (index, isStep) =>
      this.go({ ...this.state, index, edited: null, field: "" }, isStep),
    );
    this.controls = new Controls((state, isStep) => this.go(state, isStep));
    window.addEventListener("popstate", ({ state }) => this.show(this.states.get(state) ?? ofFragment(location.hash)));
    document.addEventListener("keydown", (event) => this.key(event));
    found("undo").addEventListener("click", () => this.go({ ...this.state, edited: null }));
    const search = found<HTMLInputElement>("search");
    search.addEventListener("input", () => this.search(search.value, 0));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.search(search.value, 1);
    });
  }

  /** Show something else, which the history of the browser leads back from, unless it is only a step. */
  private go(state: State, isStep = false): void {
    this.record(state, isStep);
    this.show(state);
  }

  private record(state: State, isStep: boolean): void {
    const key = isStep && history.state !== null ? history.state : `${performance.timeOrigin} ${this.states.size}`;
    this.states.set(key, state);
    history[isStep ? "replaceState" : "pushState"](key, "", fragmentOf(state));
  }

  /** Show a state of the page. */
  show(state: State): void {
    const isOther = state.payloads !== this.state.payloads || state.settings !== this.state.settings;
    const isChanged = state.edited !== this.state.edited;
    this.state = state;
    const isStream = state.payloads.length > 1;
    document.body.classList.toggle("has-stream", isStream);
    if (!isStream) this.stream = null;
    else if (isOther || isChanged || this.stream === null) {
      this.stream = new Stream(state.payloads.with(state.index, this.payload), state.settings);
      this.readStream(this.stream);
      return;
    } else this.list.select(state.index);
    this.showMessage();
  }

  /** Read a stream in slices, between which the page answers. */
  private readStream(stream: Stream): void {
    if (stream !== this.stream) return;
    const isRead = stream.read(SLICE);
    this.list.show(isRead ? stream.entries : []);
    if (isRead) this.list.select(this.state.index);
    else setTimeout(() => this.readStream(stream));
    this.showMessage();
    if (!isRead)
      found("session").textContent = `Reading: ${stream.entries.length} of ${stream.payloads.length} messages`;
  }

  private get payload(): Uint8Array {
    return this.state.edited ?? this.state.payloads[this.state.index] ?? new Uint8Array();
  }

  private showMessage(): void {
    const { state } = this;
    const entry = this.stream?.entries[state.index];
    const reading = read(this.payload, entry?.settings ?? state.settings);
    this.tree = new Tree(reading, this.labels(reading));
    this.controls.show(state, reading.settings);
    const original = state.payloads[state.index] ?? null;
    this.bytesView.show(this.tree, state.edited === null ? null : original);
    this.treeView.show(this.tree);
    found("status").textContent = statusOf(reading);
    found("status").classList.toggle("fault", this.tree.fault !== null);
    found("session").textContent = entry === undefined ? "" : entry.error === "" ? about(entry) : entry.error;
    found("session").classList.toggle("fault", entry !== undefined && entry.error !== "");
    found("edited").hidden = state.edited === null;
    this.mark(this.tree.get(state.field) ?? this.tree.fault ?? this.tree.root);
  }

  /** Return the names of tables and columns, from Relation messages before this one. */
  private labels(reading: Reading): Map<string, string> {
    const { example, index } = this.state;
    if (this.stream !== null) return this.stream.tables.labels(reading, index);
    const tables = new Tables();
    for (const payload of example?.before.map(bytes) ?? [])
      tables.take(pgoutput.parse(payload, pgoutput.layoutOf({ protoVersion: 1 }, 0)), index);
    return tables.labels(reading, index);
  }

  private select(node: Node): void {
    this.state = { ...this.state, field: node === this.tree.root ? "" : node.id };
    this.record(this.state, true);
    this.mark(node);
  }

  private mark(node: Node): void {
    this.bytesView.select(node);
    this.treeView.select(node);
    this.detail.show(node);
  }

  private hover(node: Node | null): void {
    this.bytesView.hover(node);
    this.treeView.hover(node);
  }

  private change(node: Node, value: Value): void {
    if (node.span === null) return;
    this.go({ ...this.state, edited: changed(this.tree.reading, node.span, value), field: node.id });
    this.detail.edit();
  }

  private search(words: string, step: number): void {
    const matches = this.treeView.search(words);
    const isSame = matches.length === this.matches.length && matches.every((node, at) => node === this.matches[at]);
    const current = matches.findIndex((node) => node.id === this.state.field);
    this.matches = matches;
    const count = words.trim() === "" ? "" : `${matches.length} found`;
    found("matches").textContent = count;
    const next = matches[isSame && step > 0 ? (current + 1) % matches.length : 0];
    if (next !== undefined) this.select(next);
  }

  /** A slash leads to the search, e to the form of a field, Escape back to the fields. */
  private key(event: KeyboardEvent): void {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (event.key === "Escape" && isTyping) found("tree").focus();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") found("search").focus();
    else if (event.key === "e" || (event.key === "Enter" && event.target === found("tree"))) this.detail.edit();
    else return;
    event.preventDefault();
  }
}

function statusOf({ data, name, fault, inner }: Reading): string {
  const size = `${data.length} ${data.length === 1 ? "byte" : "bytes"}`;
  const what = name === "" ? "No message" : inner === null ? name : `${name} with ${inner.reading.name}`;
  if (fault === null)
    return inner?.reading.fault ? `${what}, ${size}. ${inner.reading.fault.text}` : `${what}, ${size}`;
  return `${what}, ${size}: ${fault.offset} read. ${fault.text}`;
}

/** Read bytes as the page does; tests compare what it returns. */
export { read, changed, hex, bytes, settingsOf, withValues };

new Page().show(ofFragment(location.hash));

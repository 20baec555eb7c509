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
import { readStream, Tables } from "./stream.js";
import type { Entry } from "./stream.js";
import { about, StreamView } from "./stream_view.js";
import { Tree } from "./tree.js";
import type { Node } from "./tree.js";
import { TreeView } from "./tree_view.js";
import { bytes, hex } from "./values.js";

class Page {
  private state: State = ofFragment(location.hash);
  private tree!: Tree;
  private entries: readonly Entry[] = [];
  private matches: Node[] = [];
  private readonly bytesView: BytesView;
  private readonly treeView: TreeView;
  private readonly detail: DetailView;
  private readonly stream: StreamView;
  private readonly controls: Controls;

  constructor() {
    const choices: Choices = { select: (node) => this.select(node), hover: (node) => this.hover(node) };
    this.bytesView = new BytesView(found("bytes"), choices);
    this.treeView = new TreeView(found("tree"), choices);
    this.detail = new DetailView(found("detail"), choices.select, (node, value) => this.change(node, value));
    this.stream = new StreamView(found("stream"), (index) =>
      this.go({ ...this.state, index, edited: null, field: "" }),
    );
    this.controls = new Controls((state) => this.go(state));
    window.addEventListener("popstate", () => this.show(ofFragment(location.hash)));
    document.addEventListener("keydown", (event) => this.key(event));
    found("undo").addEventListener("click", () => this.go({ ...this.state, edited: null }));
    const search = found<HTMLInputElement>("search");
    search.addEventListener("input", () => this.search(search.value, 0));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.search(search.value, 1);
    });
  }

  /** Show something else, which the history of the browser leads back from. */
  private go(state: State): void {
    history.pushState(null, "", fragmentOf(state));
    this.show(state);
  }

  /** Show a state of the page. */
  show(state: State): void {
    const isOther = state.payloads !== this.state.payloads || state.settings !== this.state.settings;
    const isChanged = state.edited !== this.state.edited;
    this.state = state;
    const payloads = state.payloads.with(state.index, this.payload);
    const isStream = payloads.length > 1;
    if (isOther || isChanged || this.entries.length === 0) {
      this.entries = isStream ? readStream(payloads, state.settings) : [];
      this.stream.show(this.entries);
    }
    document.body.classList.toggle("has-stream", isStream);
    if (isStream) this.stream.select(state.index);
    this.showMessage();
  }

  private get payload(): Uint8Array {
    return this.state.edited ?? this.state.payloads[this.state.index] ?? new Uint8Array();
  }

  private showMessage(): void {
    const { state } = this;
    const entry = this.entries[state.index];
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
    const tables = new Tables();
    const before = this.state.example?.before.map(bytes) ?? [];
    for (const payload of before) tables.take(pgoutput.parse(payload, pgoutput.layoutOf({ protoVersion: 1 }, 0)));
    for (const { payload, settings } of this.entries.slice(0, this.state.index)) {
      const earlier = read(payload, settings);
      const { message } = earlier.inner?.reading ?? earlier;
      if (message?.message === "Relation") tables.take(message);
    }
    return tables.labels(reading);
  }

  private select(node: Node): void {
    this.state = { ...this.state, field: node === this.tree.root ? "" : node.id };
    history.replaceState(null, "", fragmentOf(this.state));
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

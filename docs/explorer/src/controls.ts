/** The controls: which messages, and how they are read. */

import { connection, pgoutput, WireError } from "../../../spec/typescript/src/index.js";
import { examples, recordings, specifications } from "./data.js";
import { element, found } from "./dom.js";
import type { Settings } from "./reading.js";
import { ofExample, ofRecording, ofText } from "./state.js";
import type { State } from "./state.js";
import { hex, ValueError } from "./values.js";

const GROUPS = {
  message: "Messages of pgoutput",
  frame: "Frames around them",
  connection: "Messages of the connection",
};

export class Controls {
  private state: State | null = null;
  private readonly source = found<HTMLSelectElement>("source");
  private readonly text = found<HTMLTextAreaElement>("text");
  private readonly kind = found<HTMLSelectElement>("kind");
  private readonly version = found<HTMLSelectElement>("version");
  private readonly streaming = found<HTMLSelectElement>("streaming");
  private readonly inStream = found<HTMLInputElement>("in-stream");
  private readonly sender = found<HTMLSelectElement>("sender");
  private readonly states = found<HTMLSelectElement>("state");

  constructor(private readonly onChoice: (state: State) => void) {
    this.fill();
    this.source.addEventListener("change", () => this.choose(this.source.value));
    this.text.addEventListener("input", () => this.paste());
    for (const control of [this.kind, this.version, this.streaming, this.inStream, this.sender, this.states]) {
      control.addEventListener("change", () => this.set());
    }
  }

  private fill(): void {
    const streams = element("optgroup", { label: "Recorded streams" });
    for (const { id, title } of recordings) streams.append(element("option", { value: `recording ${id}` }, title));
    this.source.append(element("option", { value: "", hidden: true }, "Pasted bytes"), streams);
    for (const [kind, label] of Object.entries(GROUPS)) {
      const group = element("optgroup", { label });
      for (const each of examples.filter((example) => example.kind === kind)) {
        group.append(element("option", { value: `example ${each.id}` }, `${each.message}: ${each.title}`));
      }
      this.source.append(group);
      this.kind.append(element("option", { value: kind }, kind));
    }
    for (const { version, server } of specifications.message.versions) {
      this.version.append(element("option", { value: version }, `${version} (PostgreSQL ${server})`));
    }
    this.states.append(...connection.STATES.map((state) => element("option", { value: state }, state)));
  }

  /** Show what is chosen; ``used`` is how the message is read, as a session may have decided. */
  show(state: State, used: Settings): void {
    const isOther = state.payloads !== this.state?.payloads || state.edited !== this.state.edited;
    this.state = state;
    const { example, recording, payloads } = state;
    this.source.value =
      example !== null ? `example ${example.id}` : recording !== null ? `recording ${recording.id}` : "";
    if (isOther && document.activeElement !== this.text) {
      const shown = state.edited === null ? payloads : payloads.with(state.index, state.edited);
      this.text.value = shown.map(hex).join("\n");
    }
    this.kind.value = used.kind;
    this.version.value = String(used.protoVersion);
    this.streaming.value = used.streaming;
    this.inStream.checked = used.inStream;
    this.inStream.disabled = payloads.length > 1;
    this.sender.value = used.sender;
    this.states.value = used.state;
    for (const each of document.querySelectorAll<HTMLElement>("[data-kinds]")) {
      each.hidden = !(each.dataset["kinds"] ?? "").split(" ").includes(used.kind);
    }
    this.say(problemOf(used));
  }

  private choose(value: string): void {
    const [what, id] = value.split(" ");
    const example = examples.find((each) => each.id === id);
    const recording = recordings.find((each) => each.id === id);
    if (what === "example" && example !== undefined) this.onChoice(ofExample(example));
    if (what === "recording" && recording !== undefined) this.onChoice(ofRecording(recording));
  }

  private paste(): void {
    if (this.state === null) return;
    try {
      this.onChoice(ofText(this.text.value, this.state.settings));
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      this.say(error.message);
    }
  }

  private set(): void {
    if (this.state === null) return;
    const settings: Settings = {
      kind: this.kind.value as Settings["kind"],
      protoVersion: Number(this.version.value),
      streaming: this.streaming.value as Settings["streaming"],
      inStream: this.inStream.checked,
      sender: this.sender.value as Settings["sender"],
      state: this.states.value as Settings["state"],
    };
    this.onChoice({ ...this.state, settings });
  }

  private say(problem: string): void {
    found("problem").textContent = problem;
  }
}

/** Return what a server says against options; empty if nothing. */
function problemOf(settings: Settings): string {
  if (settings.kind === "connection") return "";
  try {
    pgoutput.checkOptions(settings);
    return "";
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return `PostgreSQL refuses these options: streaming ${settings.streaming} needs a newer protocol version.`;
  }
}

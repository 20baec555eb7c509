/** The controls: which messages, and how they are read. */

import { pgoutput, WireError } from "../../../spec/typescript/src/index.js";
import { examples, recordings, specifications } from "./data.js";
import type { Kind, Setting } from "./data.js";
import { element, found } from "./dom.js";
import { optionsOf, settingsOf } from "./settings.js";
import type { Settings } from "./settings.js";
import { ofExample, ofRecording, ofText } from "./state.js";
import type { State } from "./state.js";
import { hex, ValueError } from "./values.js";

const GROUPS = {
  message: "Messages of pgoutput",
  frame: "Frames around them",
  connection: "Messages of the connection",
};

/** Characters of digits that are shown. */
const LONGEST = 200_000;

export class Controls {
  private state: State | null = null;
  private shown: readonly Setting[] = [];
  /** The messages of the text that was written. */
  private taken: State["payloads"] | null = null;
  /** What is wrong with this text, of which nothing is shown then; empty if nothing. */
  private wrong = "";
  private readonly source = found<HTMLSelectElement>("source");
  private readonly text = found<HTMLTextAreaElement>("text");
  private readonly kind = found<HTMLSelectElement>("kind");
  private readonly settings = found("settings");

  constructor(private readonly onChoice: (state: State, isStep?: boolean) => void) {
    this.fill();
    this.source.addEventListener("change", () => this.choose(this.source.value));
    this.text.addEventListener("input", (event) => {
      this.take(this.text.value, this.taken !== null && (event as InputEvent).inputType !== "insertFromPaste");
    });
    this.text.addEventListener("beforeinput", (event) => {
      if (event.data === null || event.data.length <= LONGEST) return;
      event.preventDefault(); // the browser would lay out what is pasted, for minutes
      this.text.value = "";
      this.take(event.data, false);
    });
    this.kind.addEventListener("change", () =>
      this.set(settingsOf(this.kind.value as Kind, this.state?.settings.values)),
    );
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
  }

  /** Show what is chosen; ``used`` is how the message is read, as a session may have decided. */
  show(state: State, used: Settings): void {
    const isOther = state.payloads !== this.state?.payloads || state.edited !== this.state.edited;
    this.state = state;
    const { example, recording, payloads } = state;
    if (isOther) this.showText(state);
    this.source.value =
      example !== null ? `example ${example.id}` : recording !== null ? `recording ${recording.id}` : "";
    this.kind.value = used.kind;
    this.showSettings(used, payloads.length > 1);
    this.say(this.wrong || state.problem || problemOf(used));
  }

  private choose(value: string): void {
    const [what, id] = value.split(" ");
    const example = examples.find((each) => each.id === id);
    const recording = recordings.find((each) => each.id === id);
    if (what === "example" && example !== undefined) this.onChoice(ofExample(example));
    if (what === "recording" && recording !== undefined) this.onChoice(ofRecording(recording));
  }

  /** Show the digits of messages, unless there are too many, or they are what was written. */
  private showText({ payloads, index, edited }: State): void {
    if (payloads === this.taken && edited === null) return;
    this.taken = null;
    this.wrong = "";
    const shown = edited === null ? payloads : payloads.with(index, edited);
    const size = shown.reduce((sum, payload) => sum + payload.length, 0);
    this.text.value = 2 * size > LONGEST ? "" : shown.map(hex).join("\n");
    this.text.placeholder =
      2 * size > LONGEST ? `${size} bytes: too many to be shown here` : "Paste here: 49 00 00 40 …";
  }

  /** Take text that was written; ``isStep`` if the history of the browser has what was there before. */
  private take(text: string, isStep: boolean): void {
    if (this.state === null) return;
    try {
      const state = ofText(text, this.state.settings);
      this.taken = text.length > LONGEST ? null : state.payloads;
      this.wrong = "";
      this.onChoice(state, isStep);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      this.wrong = error.message;
      this.say(this.wrong);
    }
  }

  /** Show the settings; a session knows those that states set. */
  private showSettings({ kind, values }: Settings, isStream: boolean): void {
    const own = specifications[kind].settings;
    if (this.shown !== own) this.settings.replaceChildren(...own.map((setting) => this.control(setting)));
    this.shown = own;
    for (const { name, property } of own) {
      const control = found<HTMLInputElement | HTMLSelectElement>(`setting-${name}`);
      if (control instanceof HTMLInputElement) control.checked = values[name] === "true";
      else control.value = values[name] ?? "";
      control.disabled = isStream && property !== null;
    }
  }

  private control({ name, description, values }: Setting): HTMLElement {
    const isSwitch = values[0]?.name === "false";
    const options = values.map(({ name, description, server }) =>
      element("option", { value: name, title: description }, server === null ? name : `${name} (PostgreSQL ${server})`),
    );
    const attributes = { id: `setting-${name}`, title: description };
    const control = isSwitch
      ? element("input", { ...attributes, type: "checkbox" })
      : element("select", attributes, ...options);
    control.addEventListener("change", () => {
      const value = control instanceof HTMLInputElement ? String(control.checked) : control.value;
      const { kind, values } = this.state?.settings ?? settingsOf("message");
      this.set({ kind, values: { ...values, [name]: value } });
    });
    return element("label", { class: isSwitch && "check" }, ...(isSwitch ? [control, ` ${name}`] : [name, control]));
  }

  private set(settings: Settings): void {
    if (this.state !== null) this.onChoice({ ...this.state, settings, problem: "" });
  }

  private say(problem: string): void {
    found("problem").textContent = problem;
  }
}

/** Return what a server says against options; empty if nothing. */
function problemOf(settings: Settings): string {
  if (settings.kind === "connection") return "";
  try {
    pgoutput.checkOptions(optionsOf(settings));
    return "";
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return `PostgreSQL refuses these options: ${error.message}.`;
  }
}

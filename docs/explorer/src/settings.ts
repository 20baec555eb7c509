/** How bytes are read: as which kind of messages, and under which values of the specification's settings. */

import { pgoutput } from "../../../spec/typescript/src/index.js";
import { specifications } from "./data.js";
import type { Kind, Setting } from "./data.js";
import { ValueError } from "./values.js";

/** What determines how bytes are read. */
export interface Settings {
  readonly kind: Kind;
  /** The values of the kind's settings, as text, by name. */
  readonly values: Readonly<Record<string, string>>;
}

export const KINDS = Object.keys(specifications) as Kind[];

/** Return the settings of a kind: of others those that it has, too, and defaults. */
export function settingsOf(kind: Kind, others: Settings["values"] = {}): Settings {
  const pairs = specifications[kind].settings.map((setting) => {
    const value = others[setting.name];
    return [setting.name, value !== undefined && has(setting, value) ? value : setting.default];
  });
  return { kind, values: Object.fromEntries(pairs) as Settings["values"] };
}

/** Return settings with other values, of which those without a setting are left out; throw a ValueError for wrong ones. */
export function withValues({ kind, values }: Settings, given: object): Settings {
  const found = new Map(Object.entries(given).map(([name, value]) => [name, String(value)]));
  for (const setting of specifications[kind].settings) {
    const value = found.get(setting.name);
    if (value === undefined) continue;
    if (!has(setting, value)) throw new ValueError(`${setting.name} is one of ${names(setting)}, and not “${value}”.`);
    values = { ...values, [setting.name]: value };
  }
  return { kind, values };
}

function has({ values }: Setting, value: string): boolean {
  return values.some(({ name }) => name === value);
}

function names({ values }: Setting): string {
  return values.map(({ name }) => name).join(", ");
}

/** Return the options of a stream, as the codec has them. */
export function optionsOf({ values }: Settings): pgoutput.Options {
  const options: pgoutput.Options = { protoVersion: 0 };
  for (const { name, property } of specifications.message.settings) {
    if (property === null) pgoutput.setOption(options, name, values[name] ?? "");
  }
  return options;
}

/** Return the layout of a message inside of frames. */
export function layoutOf(settings: Settings): pgoutput.Layout {
  const sets = pgoutput.STATE_PARAMETERS.map((name, bit) => (settings.values[name] === "true" ? 1 << bit : 0));
  return pgoutput.layoutOf(
    optionsOf(settings),
    sets.reduce((all, bit) => all | bit, 0),
  );
}

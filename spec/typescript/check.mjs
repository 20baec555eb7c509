// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

// Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
// bytes are refused, or what is wrong with the line.
//
//     message NAME=VALUE ... HEX     with options and the parameters that states set
//     frame HEX
//     connection SENDER STATE HEX

import { createInterface } from "node:readline";
import { connection, pgoutput, replication, stringify, WireError } from "./dist/index.js";

class LineError extends Error {
  constructor(what, text) {
    super("not a " + what + ": " + text);
  }
}

function answer(line) {
  const words = line.split(" ");
  const [kind, last, hex] = [words[0], words.length - 1, words.at(-1)];
  if (last > 0 && !/^([0-9a-f]{2})*$/i.test(hex)) {
    throw new LineError("number of hexadecimal digits for whole bytes", hex);
  }
  const data = new Uint8Array(Buffer.from(hex, "hex"));
  if (kind === "message" && last > 0) return readMessage(words.slice(1, -1), data);
  if (kind === "frame" && last === 1) return readFrame(data);
  if (kind === "connection" && last === 3) return readConnection(words[1], words[2], data);
  throw new LineError("line", line);
}

function readMessage(settings, data) {
  const options = { protoVersion: 1 };
  let sets = 0;
  for (const setting of settings) {
    const [name, value = ""] = setting.split("=");
    const bit = pgoutput.STATE_PARAMETERS.indexOf(name);
    if (bit < 0) pgoutput.setOption(options, name, value);
    else if (value === "true") sets |= 1 << bit;
    else if (value !== "false") throw new LineError("setting", setting);
  }
  const layout = pgoutput.layoutOf(options, sets);
  const message = pgoutput.parse(data, layout);
  return found(pgoutput.toJson(message, layout), pgoutput.build(message, layout), data);
}

function readFrame(data) {
  const message = replication.parse(data, {});
  return found(replication.toJson(message, {}), replication.build(message, {}), data);
}

function readConnection(sender, state, data) {
  if (!["server", "client"].includes(sender)) throw new LineError("sender", sender);
  if (!connection.STATES.includes(state)) throw new LineError("state", state);
  const message = connection.parse(data, sender, state);
  return found(connection.toJson(message, {}), connection.build(message), data);
}

function found(json, built, data) {
  return Buffer.compare(built, data) === 0 ? stringify(json) : stringify({ built: false, was: json });
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(answer(line));
  } catch (error) {
    if (error instanceof LineError) console.log(JSON.stringify({ error: error.message }));
    else if (!(error instanceof WireError)) throw error;
    else console.log(JSON.stringify({ refuse: error.reason, offset: error.offset, path: error.path }));
  }
}

// Reads lines of a kind, settings and hex, and answers each with a line of JSON: the fields, or why and where the bytes
// are refused.
//
//     message NAME=VALUE ... HEX     with options and the parameters that states set
//     frame HEX
//     connection SENDER STATE HEX

import { createInterface } from "node:readline";
import { connection, pgoutput, replication, stringify, WireError } from "./dist/index.js";

function answer(line) {
  const words = line.split(" ");
  const data = new Uint8Array(Buffer.from(words.at(-1), "hex"));
  if (words[0] === "message") {
    const layout = layoutOf(words.slice(1, -1));
    const message = pgoutput.parse(data, layout);
    return found(pgoutput.toJson(message, layout), pgoutput.build(message, layout), data);
  }
  if (words[0] === "frame") {
    const message = replication.parse(data, {});
    return found(replication.toJson(message, {}), replication.build(message, {}), data);
  }
  const message = connection.parse(data, words[1], words[2]);
  return found(connection.toJson(message, {}), connection.build(message), data);
}

function layoutOf(settings) {
  const options = { protoVersion: 1 };
  let sets = 0;
  for (const setting of settings) {
    const [name, value] = setting.split("=");
    const bit = pgoutput.STATE_PARAMETERS.indexOf(name);
    if (bit < 0) pgoutput.setOption(options, name, value);
    else if (value === "true") sets |= 1 << bit;
  }
  return pgoutput.layoutOf(options, sets);
}

function found(json, built, data) {
  return Buffer.compare(built, data) === 0 ? stringify(json) : stringify({ built: false, was: json });
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(answer(line));
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    console.log(JSON.stringify({ refuse: error.reason, offset: error.offset, path: error.path }));
  }
}

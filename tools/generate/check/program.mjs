// Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
// bytes are refused.
//
//     message NAME=VALUE ... HEX
//     connection SENDER STATE HEX     for messages with a length

import { createInterface } from "node:readline";
import { messages, stringify, WireError } from "./dist/index.js";

$read
function found(json, built, data) {
  return Buffer.compare(built, data) === 0 ? stringify(json) : stringify({ built: false, was: json });
}

for await (const line of createInterface({ input: process.stdin })) {
  const words = line.split(" ");
  const data = new Uint8Array(Buffer.from(words.at(-1), "hex"));
  try {
    console.log(answer(words.slice(1, -1), data));
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    console.log(JSON.stringify({ refuse: error.reason, offset: error.offset, path: error.path }));
  }
}

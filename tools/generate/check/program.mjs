// Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
// bytes are refused, or what is wrong with the line.
//
$usage

import { createInterface } from "node:readline";
import { $modules, stringify, WireError } from "./dist/index.js";

class LineError extends Error {
  constructor(what, text) {
    super("not a " + what + ": " + text);
  }
}

function answer(line) {
  const words = line.split(" ");
  const [kind, last, hex] = [words[0], words.length - 1, words.at(-1)];
  if (last > 0 && !/^([0-9a-f]{2})*$$/i.test(hex)) {
    throw new LineError("number of hexadecimal digits for whole bytes", hex);
  }
  const data = new Uint8Array(Buffer.from(hex, "hex"));
$cases
  throw new LineError("line", line);
}

$readers
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

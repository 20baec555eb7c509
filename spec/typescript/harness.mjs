// Parses a file of payloads, each after its length, again and again: node harness.mjs FILE VERSION [STREAMING].
//
// It prints "ready COUNT", then answers each line "pass" with nanoseconds, the number of messages, and a number that
// depends on them; "allocated" with "-" and the bytes allocated in a pass; and "tally" with JSON of what they hold.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pgoutput } from "./dist/index.js";

function read(path) {
  const data = readFileSync(path);
  const payloads = [];
  for (let at = 0; at < data.length;) {
    const start = at + 4;
    at = start + data.readUInt32BE(at);
    payloads.push(data.subarray(start, at));
  }
  return payloads;
}

function pass() {
  const session = new pgoutput.Session(options);
  let [count, sum] = [0, 0];
  const began = process.hrtime.bigint();
  for (const payload of payloads) {
    sum += session.parse(payload).message.length;
    count += 1;
  }
  return `${process.hrtime.bigint() - began} ${count} ${sum}`;
}

// The heap grows by what is allocated until a collection, which some of these groups of messages meet: the median does
// not. Objects are not counted.
function allocated() {
  const session = new pgoutput.Session(options);
  const size = Math.min(100, payloads.length);
  const grown = [];
  for (let at = 0; at + size <= payloads.length; at += size) {
    const group = payloads.slice(at, at + size);
    const before = process.memoryUsage().heapUsed;
    for (const payload of group) session.parse(payload);
    grown.push((process.memoryUsage().heapUsed - before) / size);
  }
  grown.sort((one, other) => one - other);
  return `- ${Math.round(grown[grown.length >> 1] * payloads.length)}`;
}

function tally() {
  const session = new pgoutput.Session(options);
  const found = { messages: payloads.length, kinds: {}, values: 0, bytes: 0 };
  for (const payload of payloads) {
    const letter = String.fromCharCode(payload[0]);
    found.kinds[letter] = (found.kinds[letter] ?? 0) + 1;
    const message = session.parse(payload);
    for (const row of [message.old?.value, message.new]) {
      found.values += row?.length ?? 0;
      for (const value of row ?? []) found.bytes += value.value?.length ?? 0;
    }
  }
  return JSON.stringify(found);
}

const payloads = read(process.argv[2]);
const options = { protoVersion: Number(process.argv[3]), streaming: process.argv[4] ?? "off" };
const answers = { pass, allocated, tally };
console.log(`ready ${payloads.length}`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line in answers) console.log(answers[line]());
}

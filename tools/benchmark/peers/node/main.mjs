// Parses a file of payloads with pg-logical-replication. See tools/benchmark/harness.py for what is said on stdin and
// stdout. Values become JavaScript's in its parser, so the tally has kinds alone.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);
const inside = dirname(require.resolve("pg-logical-replication"));
const { PgoutputParser } = require(join(inside, "output-plugins", "pgoutput", "pgoutput-parser.js"));

const LETTERS = {
  begin: "B", commit: "C", relation: "R", type: "Y", origin: "O", message: "M",
  insert: "I", update: "U", delete: "D", truncate: "T",
};

function read(path) {
  const data = readFileSync(path);
  const payloads = [];
  for (let at = 0; at < data.length; ) {
    const start = at + 4;
    at = start + data.readUInt32BE(at);
    payloads.push(data.subarray(start, at));
  }
  return payloads;
}

function pass(payloads) {
  const parser = new PgoutputParser();
  let [count, sum] = [0, 0];
  const began = process.hrtime.bigint();
  for (const payload of payloads) {
    sum += parser.parse(payload).tag.length;
    count += 1;
  }
  return `${process.hrtime.bigint() - began} ${count} ${sum}`;
}

// The heap grows by what is allocated until a collection, which some of these groups of messages meet: the median does
// not. Objects are not counted.
function allocated(payloads) {
  const parser = new PgoutputParser();
  const size = Math.min(100, payloads.length);
  const grown = [];
  for (let at = 0; at + size <= payloads.length; at += size) {
    const group = payloads.slice(at, at + size);
    const before = process.memoryUsage().heapUsed;
    for (const payload of group) parser.parse(payload);
    grown.push((process.memoryUsage().heapUsed - before) / size);
  }
  grown.sort((one, other) => one - other);
  return `- ${Math.round(grown[grown.length >> 1] * payloads.length)}`;
}

function tally(payloads) {
  const parser = new PgoutputParser();
  const kinds = {};
  for (const payload of payloads) {
    const letter = LETTERS[parser.parse(payload).tag];
    kinds[letter] = (kinds[letter] ?? 0) + 1;
  }
  return JSON.stringify({ messages: payloads.length, kinds });
}

const payloads = read(process.argv[2]);
const answers = { pass, allocated, tally };
console.log(`ready ${payloads.length}`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line in answers) console.log(answers[line](payloads));
}

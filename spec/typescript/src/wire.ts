/** What the generated modules share. */

export * from "./reader.js";
export * from "./states.js";
export * from "./values.js";
export * from "./writer.js";

import type { Case } from "../case.ts";
import { bodyCases } from "./bodies.ts";
import { extensionCases } from "./extensions.ts";
import { floodCases } from "./floods.ts";
import { http1Cases } from "./http1.ts";
import { http2Cases } from "./http2.ts";
import { nodeCases } from "./nodes.ts";

/** Run sequentially, in this order. */
export const cases: readonly Case[] = [
  ...http2Cases,
  ...http1Cases,
  ...floodCases,
  ...bodyCases,
  ...nodeCases,
  ...extensionCases,
];

const everyRunNames: readonly string[] = [
  "each wrong frame that ends a stream or the connection",
  "rapid reset",
  "CONTINUATION without end",
  "HPACK: a large field that thousands refer to",
  "100 lists of 5 MB without a window",
  "300 connections without a TLS handshake",
  "heads that say two things",
  "pipelined requests without end",
  "GET with forged tokens of service accounts",
  "LIST of 500 objects",
  "conflicting writes of one object",
  "watches that begin and end",
  "/openapi/v2",
  "JSON: 100,000 unknown fields",
  "gzip of 100 MB",
  "YAML: nine levels of aliases",
  "strategic merge patch: 30,000 directives",
  "exec, attach and port-forward to a kubelet that floods",
  "a pattern that backtracks",
  "definitions with rules that cost too much",
  "a webhook that hangs",
  "an aggregated server that floods",
];

/** The cases that differ most, for every run of the tests. */
export const everyRun: readonly Case[] = everyRunNames.map((name) => {
  const found = cases.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found;
});

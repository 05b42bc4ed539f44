import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions } from "./options.ts";

for (const { name, argv, want } of [
  { name: "measures 5,000 pods by default", argv: ["api"], want: { pods: 5000, rounds: 4 } },
  { name: "is short on demand", argv: ["api", "--quick"], want: { pods: 1000, rounds: 1 } },
  {
    name: "takes a second server on this machine",
    argv: ["api", "--against", "https://127.0.0.1:6443/", "--token", "t", "--pid", "12"],
    want: { against: { url: "https://127.0.0.1:6443", token: "t", pid: 12 } },
  },
]) {
  test(name, () => assert.partialDeepStrictEqual(parseOptions(argv), want));
}

for (const { name, argv, message } of [
  {
    name: "refuses a server on another machine",
    argv: ["api", "--against", "https://10.0.0.1:6443", "--token", "t", "--pid", "1"],
    message: /loopback/,
  },
  {
    name: "refuses a name that only begins as a loopback address",
    argv: ["api", "--against", "https://127.0.0.1.example.com", "--token", "t", "--pid", "1"],
    message: /loopback/,
  },
  {
    name: "refuses plain HTTP",
    argv: ["api", "--against", "http://127.0.0.1:8080", "--token", "t", "--pid", "1"],
    message: /https/,
  },
  {
    name: "needs the process of the second server",
    argv: ["api", "--against", "https://127.0.0.1:6443", "--token", "t"],
    message: /--pid/,
  },
  { name: "refuses lists without bound", argv: ["api", "--pods", "1000000"], message: /--pods/ },
  { name: "knows nothing but the API", argv: ["objects"], message: /usage/ },
]) {
  test(name, () => assert.throws(() => parseOptions(argv), message));
}

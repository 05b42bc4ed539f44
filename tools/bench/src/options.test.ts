import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions, parseReasonsOptions } from "./options.ts";

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

const api = { pods: 5_000, rowSeconds: 8, rounds: 4, isQuick: false, limitSeconds: 1_200, only: "", fairness: false };
for (const [argv, want] of [
  [["api"], api],
  [["start"], api],
  [["api", "--quick"], { ...api, pods: 1_000, rowSeconds: 0.8, rounds: 1, isQuick: true, limitSeconds: 120 }],
  [
    ["api", "--quick", "--pods", "100", "--seconds", "1"],
    { ...api, pods: 100, rowSeconds: 1, rounds: 1, isQuick: true, limitSeconds: 120 },
  ],
  [
    ["api", "--pods", "20000", "--seconds", "60", "--only", "x", "--fairness", "--cpu-prof", "d"],
    { ...api, pods: 20_000, rowSeconds: 60, only: "x", fairness: true, cpuProfileFolder: "d" },
  ],
  [
    ["api", "--against", "https://localhost:1/x", "--token", "t", "--pid", "1", "--etcd-pid", "2147483648", "--ca", "f"],
    { ...api, against: { url: "https://localhost:1", token: "t", pid: 1, etcdPid: 2 ** 31, caFile: "f" } },
  ],
  [
    ["api", "--against", "https://[::1]:1", "--token", "t", "--pid", "7"],
    { ...api, against: { url: "https://[::1]:1", token: "t", pid: 7 } },
  ],
] as const)
  test(`all options of ${argv.join(" ")}`, () => assert.deepEqual(parseOptions(argv), want));

const numbers = (flag: string, min: number, max: number, text: string): string =>
  `${flag} must be a whole number from ${min} to ${max}, not ${text}`;
const local = ["--against", "https://127.0.0.1:1"];
for (const [argv, message] of [
  [["api", "--pods", "99"], numbers("--pods", 100, 20_000, "99")],
  [["api", "--pods", "20001"], numbers("--pods", 100, 20_000, "20001")],
  [["api", "--seconds", "0"], numbers("--seconds", 1, 60, "0")],
  [["api", "--seconds", "61"], numbers("--seconds", 1, 60, "61")],
  [["api", "--seconds", "1.5"], numbers("--seconds", 1, 60, "1.5")],
  [["api", ...local, "--pid", "1"], "--against needs --token"],
  [["api", ...local, "--token", "", "--pid", "1"], "--against needs --token"],
  [["api", ...local, "--token", "t", "--pid", "0"], numbers("--pid", 1, 2 ** 31, "0")],
  [["api", ...local, "--token", "t", "--pid", "1", "--etcd-pid", "x"], numbers("--etcd-pid", 1, 2 ** 31, "x")],
] as const)
  test(`refuses ${argv.join(" ")}`, () => assert.throws(() => parseOptions(argv), { message }));

test("the options of bench reasons", () => {
  assert.deepEqual(parseReasonsOptions(["reasons"]), { rounds: 200, pods: 1_000, only: "" });
  assert.deepEqual(parseReasonsOptions(["reasons", "--rounds", "2", "--pods", "10", "--only", "x"]), {
    rounds: 2,
    pods: 10,
    only: "x",
  });
  assert.deepEqual(parseReasonsOptions(["reasons", "--rounds", "10000", "--pods", "5000"]), {
    rounds: 10_000,
    pods: 5_000,
    only: "",
  });
  for (const [flag, text, min, max] of [
    ["--rounds", "1", 2, 10_000],
    ["--rounds", "10001", 2, 10_000],
    ["--pods", "9", 10, 5_000],
    ["--pods", "5001", 10, 5_000],
  ] as const)
    assert.throws(() => parseReasonsOptions(["reasons", flag, text]), { message: numbers(flag, min, max, text) });
  for (const argv of [[], ["reasons", "more"]]) assert.throws(() => parseReasonsOptions(argv), /^Error: usage: /);
  for (const argv of [[], ["api", "start"]]) assert.throws(() => parseOptions(argv), /^Error: usage: /);
});

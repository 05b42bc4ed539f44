import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenTargets, optionsOf, UsageError } from "./options.ts";

const defaults = { targets: [], seconds: 10, seed: 1, blind: false, save: false, list: false, help: false };

for (const [argv, want] of [
  [[], {}],
  [["codec/json", "node"], { targets: ["codec/json", "node"] }],
  [["--seconds", "1", "--seed", "0"], { seconds: 1, seed: 0 }],
  [["--seconds", "1000000", "--seed", "2147483648", "--save"], { seconds: 1_000_000, seed: 2 ** 31, save: true }],
  [["--blind"], { blind: true }],
  [["--list"], { list: true }],
  [["--help"], { help: true }],
  [["codec/json", "--input", "f"], { targets: ["codec/json"], input: "f" }],
] as const)
  test(`the flags ${JSON.stringify(argv)}`, () => assert.deepEqual(optionsOf(argv), { ...defaults, ...want }));

for (const [argv, message] of [
  [["--blind", "--save"], /^--save needs coverage, which --blind leaves out$/],
  [["--input", "f"], /^--input needs one target$/],
  [["a", "b", "--input", "f"], /^--input needs one target$/],
  [["--seconds", "0"], /^--seconds has to be a whole number of at least 1, not "0"$/],
  [["--seconds", "1000001"], /^--seconds has to be a whole number of at least 1, not "1000001"$/],
  [["--seconds", "1.5"], /^--seconds has to be/],
  [["--seed=-1"], /^--seed has to be a whole number of at least 0, not "-1"$/],
  [["--seed", "2147483649"], /^--seed has to be/],
  [["--nope"], /--nope/],
] as const)
  test(`the flags ${JSON.stringify(argv)} are refused`, () =>
    assert.throws(
      () => optionsOf(argv),
      (err) => err instanceof UsageError && message.test(err.message),
    ));

test("targets are chosen by their names and by their modules, in their own order", () => {
  const all = ["codec/json", "codec/yaml", "codecs/x", "node/log"];
  assert.deepEqual(chosenTargets([], all), all);
  assert.deepEqual(chosenTargets(["node/log", "codec"], all), ["codec/json", "codec/yaml", "node/log"]);
  assert.deepEqual(chosenTargets(["codec/json"], all), ["codec/json"]);
  for (const unknown of ["code", "codec/js", "x"])
    assert.throws(() => chosenTargets(["codec", unknown], all), { message: `there is no target ${unknown}; --list shows them` });
});

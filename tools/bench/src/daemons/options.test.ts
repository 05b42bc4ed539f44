import assert from "node:assert/strict";
import { test } from "node:test";
import { helpOf, parseDaemonOptions, type SizeFlags } from "./options.ts";

const sizes: SizeFlags = { nodes: { help: "nodes", normal: [100, 1000], quick: [5], most: 5000 } };

for (const { name, argv, want } of [
  { name: "has the sizes of the table by default", argv: [], want: { rounds: 3, sizes: { nodes: [100, 1000] } } },
  { name: "is short on demand", argv: ["--quick"], want: { rounds: 1, sizes: { nodes: [5] } } },
  { name: "takes several sizes", argv: ["--quick", "--nodes", "7,8"], want: { sizes: { nodes: [7, 8] } } },
  { name: "takes several flags of Node", argv: ["--node-flag=--a", "--node-flag=--b"], want: { nodeFlags: ["--a", "--b"] } },
]) {
  test(name, () => assert.partialDeepStrictEqual(parseDaemonOptions(argv, sizes), want));
}

for (const { name, argv, message } of [
  { name: "refuses a size of 0", argv: ["--nodes", "0"], message: /--nodes must be a whole number from 1 to 5000, not 0/ },
  { name: "refuses a second size that is too large", argv: ["--nodes", "5,5001"], message: /not 5001/ },
  { name: "refuses an unknown flag", argv: ["--pods", "5"], message: /Unknown option '--pods'/ },
  { name: "refuses rounds that are no number", argv: ["--rounds", "x"], message: /--rounds/ },
]) {
  test(name, () => assert.throws(() => parseDaemonOptions(argv, sizes), message));
}

test("explains each flag with its default", () => {
  const help = helpOf("scheduler", "About.", sizes);
  assert.match(help, /^usage: .* scheduler \[flags\]\n\nAbout\.\n/);
  assert.match(help, / --nodes <n> +nodes; default 100,1000\n/);
});

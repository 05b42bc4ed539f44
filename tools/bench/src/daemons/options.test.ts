import assert from "node:assert/strict";
import { test } from "node:test";
import { helpOf, isChosen, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";

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

const normal = {
  ...{ rounds: 3, isQuick: false, isHelp: false, isJson: false, only: [], warmsUp: true, nodeFlags: [] },
  sizes: { nodes: [100, 1000] },
};
for (const [argv, want] of [
  [[], normal],
  [["--quick"], { ...normal, rounds: 1, isQuick: true, warmsUp: false, sizes: { nodes: [5] } }],
  [["--quick", "--rounds", "20"], { ...normal, rounds: 20, isQuick: true, warmsUp: false, sizes: { nodes: [5] } }],
  [["--no-warm-up", "--help", "--json"], { ...normal, warmsUp: false, isHelp: true, isJson: true }],
  [
    ["--svg", "s", "--peer-bin", "p", "--cpu-prof", "c", "--nodes", "1,5000"],
    { ...normal, svgFile: "s", peerBin: "p", cpuProfileFolder: "c", sizes: { nodes: [1, 5000] } },
  ],
] as const)
  test(`all options of ${argv.join(" ")}`, () => assert.deepEqual(parseDaemonOptions(argv, sizes), want));

test("rounds are at most twenty", () => {
  for (const rounds of ["0", "21", "1.5"])
    assert.throws(() => parseDaemonOptions(["--rounds", rounds], sizes), {
      message: `usage: --rounds must be a whole number from 1 to 20, not ${rounds}`,
    });
});

test("a row is chosen by any of the texts, all rows without one", () => {
  const chosen = (...only: string[]): boolean =>
    isChosen(
      parseDaemonOptions(
        only.flatMap((text) => ["--only", text]),
        {},
      ),
      "a row",
    );
  assert.deepEqual([chosen(), chosen("row"), chosen("x", "a"), chosen("x")], [true, true, true, false]);
});

test("a flag of one size takes one, and is known", () => {
  const of = (...argv: string[]) => parseDaemonOptions(argv, sizes);
  assert.equal(sizeOf(of("--quick"), "nodes"), 5);
  for (const options of [of(), { ...of(), sizes: {} }])
    assert.throws(() => sizeOf(options, "nodes"), { message: "--nodes takes one number" });
});

test("help names the warm-up only where there is one", () => {
  assert.match(helpOf("x", "y", sizes), /rounds of each row, after one of warm-up; default 3[\s\S]*--no-warm-up/);
  const without = helpOf("x", "y", sizes, false);
  assert.match(without, /rounds of each row; default 3/);
  assert.doesNotMatch(without, /warm-up/);
});

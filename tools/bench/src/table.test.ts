import assert from "node:assert/strict";
import { test } from "node:test";
import { quantities } from "./limits.ts";
import { noSamples, type Result, type Samples } from "./load.ts";
import { measure } from "./measure.ts";
import { median } from "./median.ts";
import type { Row } from "./row.ts";
import { rowsFor } from "./rows.ts";
import type { Stage } from "./stage.ts";
import { header, lines } from "./table.ts";

const result = (more: Partial<Result> = {}): Result => ({
  ...noSamples(),
  ...{ operations: 200, seconds: 2, latencies: [1, 2, 3, 10], firstBytes: [5, 7], cpuSeconds: 0.1, etcdCpuSeconds: 0.05 },
  ...{ clientCpuSeconds: 0.2, residentMb: 99.6 },
  ...more,
});
/** The name in 46 characters, and the cells in 14 each. */
const cells = (line: string): string[] => [
  line.slice(0, 46).trimEnd(),
  ...(line.slice(46).match(/.{14}/g) ?? []).map((cell) => cell.trimStart()),
];
const row: Row = { name: "get", run: () => undefined };

test("the table has a column for each quantity, right-aligned", () => {
  assert.deepEqual(cells(header()), [
    ...["", "per s", "p50 ms", "p99 ms", "1st byte ms", "CPU s/1000", "etcd s/1000", "client s/1000", "RSS MB"],
  ]);
  const [line = ""] = lines(row, ["ours"], [result()]);
  assert.equal(line.length, header().length);
  assert.deepEqual(cells(line), ["get", "100", "2.00", "10.00", "5.00", "0.5000", "0.2500", "1.0000", "100"]);
});

test("two servers have a line each, their ratio, and a verdict for each limit", () => {
  const limits = [
    { quantity: quantities.cpu, atMost: 0.5 },
    { quantity: quantities.perSecond, atLeast: 3 },
  ];
  const theirs = result({ cpuSeconds: 0.2, etcdCpuSeconds: 0, firstBytes: [], operations: 100 });
  const shown = lines({ ...row, limits }, ["ours", "peer"], [result(), theirs]);
  assert.deepEqual(shown.slice(0, 3).map(cells), [
    ["get (ours)", "100", "2.00", "10.00", "5.00", "0.5000", "0.2500", "1.0000", "100"],
    ["get (peer)", "50", "2.00", "10.00", "-", "2.0000", "0.0000", "2.0000", "100"],
    ["  ratio", "2.00x", "1.00x", "1.00x", "-", "0.25x", "-", "0.50x", "1.00x"],
  ]);
  assert.deepEqual(shown.slice(3), [
    "  CPU s/1000: ours 0.5000, theirs 2.0000, ratio 0.25, limit at most 0.5: ok",
    "  per s: ours 100, theirs 50, ratio 2.00, limit at least 3: NOT OK",
  ]);
  const one = lines({ ...row, limits }, ["ours", "peer"], [undefined, result()]);
  assert.deepEqual(
    one.map((line) => cells(line)[0]),
    ["get (peer)"],
  );
});

test("CPU with etcd is the sum of both", () => {
  assert.equal(quantities.allCpu.of(result()).toFixed(4), "0.7500");
});

test("a median is the middle value, the lower of two; none without values", () => {
  assert.deepEqual([median([10, 9, 1]), median([4, 1, 3, 2]), median([7])], [9, 2, 7]);
  assert.throws(() => median([]), { message: "a median needs at least one value" });
});

test("rounds alternate between the servers after a warm-up of each, which does not count", async () => {
  const calls: string[] = [];
  const stage = (name: string) =>
    ({ name, target: { pid: process.pid, ...(name === "a" && { etcdPid: process.pid }) } }) as unknown as Stage; // cast: what a row of this test reads
  const nameOf = (one: Stage): string => (one as unknown as { name: string }).name; // cast: made above
  const samples = (): Samples => ({ operations: 10, seconds: 1, latencies: [1, 2], firstBytes: [3] });
  const measured: Row = {
    name: "r",
    prepare: async (one, seconds) => void calls.push(`prepare ${nameOf(one)} ${seconds}`),
    async run(one, seconds) {
      calls.push(`run ${nameOf(one)} ${seconds}`);
      return samples();
    },
  };
  const results = await measure(measured, ["a", "b"].map(stage), { seconds: 6, rounds: 3, warmSeconds: 0.5 });
  const round = (name: string, seconds: number): string[] => [`prepare ${name} ${seconds}`, `run ${name} ${seconds}`];
  assert.deepEqual(calls, [
    ...["a", "b"].flatMap((name) => round(name, 0.5)),
    ...[1, 2, 3].flatMap(() => ["a", "b"].flatMap((name) => round(name, 2))),
  ]);
  for (const one of results) {
    assert.deepEqual([one?.operations, one?.seconds, one?.latencies, one?.firstBytes], [30, 3, [1, 2, 1, 2, 1, 2], [3, 3, 3]]);
    assert.ok((one?.residentMb ?? 0) > 10);
  }
  assert.equal(results[1]?.etcdCpuSeconds, 0);
  const only = await measure(
    { ...measured, run: (one, seconds) => (nameOf(one) === "a" ? undefined : measured.run(one, seconds)) },
    ["a", "b"].map(stage),
    {
      ...{ seconds: 1, rounds: 2, warmSeconds: 1 },
    },
  );
  assert.deepEqual([only[0], only[1]?.operations], [undefined, 20]);
});

test("rows have names of their own, reads of lists name the number of pods", () => {
  const names = rowsFor(1234).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(
    names.some((name) => /1,?234/.test(name)),
    names.join("\n"),
  );
});

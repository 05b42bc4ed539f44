import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { sumOfSamples } from "./metrics-text.ts";
import { parseDaemonOptions } from "./options.ts";
import { OwnCalls } from "./own-calls.ts";
import { ReportPrinter } from "./printer.ts";
import { medianOf, reportHeader, reportLines, reportsOf } from "./report.ts";
import type { RoundResult } from "./scenario.ts";
import { svgOf } from "./svg.ts";

const round = (more: Partial<RoundResult> = {}): RoundResult => ({
  operations: 10,
  seconds: 1,
  cpuSeconds: 1,
  serverCpuSeconds: 1,
  apiCalls: 20,
  residentMb: 100,
  proportionalMb: 90,
  ...more,
});

test("takes the median of each figure separately", () => {
  const rounds = [
    round({ seconds: 5, cpuSeconds: 1 }),
    round({ seconds: 1, cpuSeconds: 9 }),
    round({ seconds: 2, cpuSeconds: 3 }),
  ];
  assert.partialDeepStrictEqual(medianOf(rounds), { seconds: 2, cpuSeconds: 3 });
});

test("a median of no rounds is an error", () => assert.throws(() => medianOf([]), /at least one/));

test("incomplete rows: without a round of ours there is no row, without one of the second implementation only our figures", () => {
  const row = (name: string, rounds: RoundResult[][]) => ({ name, limits: {}, rounds });
  const reports = reportsOf([
    row("both", [[round()], [round({ seconds: 3 })]]),
    row("ours", [[round({ seconds: 2 })], []]),
    row("neither", [[], []]),
    row("no second", [[round()]]),
  ]);
  assert.deepEqual(
    reports.map(({ name, ours, peer }) => [name, ours.seconds, peer?.seconds]),
    [
      ["both", 1, 3],
      ["ours", 2, undefined],
      ["no second", 1, undefined],
    ],
  );
});

for (const { name, isEndedBySignal } of [
  { name: "prints the rows that it has when it is ended by a signal, once", isEndedBySignal: true },
  { name: "prints its rows at the end, and none on a signal after that", isEndedBySignal: false },
]) {
  test(name, (t) => {
    const exits = (): void => {}; // as of a cluster that has to be removed: when there is another listener, the printer does not exit
    process.on("SIGTERM", exits);
    t.after(() => process.off("SIGTERM", exits));
    const print = t.mock.method(console, "log", () => {});
    const rows = [{ name: "row", limits: {}, rounds: [[] as RoundResult[]] }];
    const printer = new ReportPrinter(parseDaemonOptions(["--json"], {}), () => reportsOf(rows));
    rows[0]?.rounds[0]?.push(round());
    if (!isEndedBySignal) printer.end("kubelet");
    process.emit("SIGTERM");
    process.emit("SIGTERM");
    const printed = print.mock.calls.map(({ arguments: [text] }) => JSON.parse(text) as { reports: { name: string }[] });
    assert.deepEqual(
      printed.map(({ reports }) => reports.map((report) => report.name)),
      [["row"]],
    );
  });
}

test("reports for each limit whether the ratio meets it, a ratio at the limit included", () => {
  const limits = { seconds: 0.5, cpu: 0.5, apiCalls: 1 };
  const ours = round({ seconds: 1, cpuSeconds: 1.2, apiCalls: 21 });
  const peer = round({ seconds: 2, cpuSeconds: 2, apiCalls: 20 });
  assert.deepEqual(reportLines({ name: "row", limits, ours, peer }).slice(-3), [
    "  s: ratio 0.50, limit 0.5: ok",
    "  CPU s: ratio 0.60, limit 0.5: NOT OK",
    "  API calls: ratio 1.05, limit 1: NOT OK",
  ]);
});

test("has no ratios without a second implementation", () => {
  assert.equal(reportLines({ name: "row", limits: { cpu: 0.5 }, ours: round() }).length, 2);
});

test("sums the samples of one metric only", () => {
  const text = '# TYPE a counter\na{x="1"} 2\na{x="2 }"} 3\na_total{x="1"} 50\na 4\n';
  assert.equal(sumOfSamples(text, "a"), 9);
  assert.equal(sumOfSamples(text, "b"), 0);
});

test("draws CPU and memory of a row, and its time where that has a limit, cut at the end of the scale, and marks those above their limit", () => {
  const rows = [{ name: "a < b", limits: { cpu: 0.5 }, ours: round({ cpuSeconds: 9 }), peer: round({ cpuSeconds: 1 }) }];
  const svg = svgOf("kubelet", [...rows, { name: "alone", limits: {}, ours: round() }]);
  assert.match(svg, /a &lt; b: CPU/);
  assert.match(svg, /9\.00 \(9\.00 to 1\.00 s\)/);
  assert.match(svg, /width="300\.0" height="16" fill="#c98a2b"/);
  assert.match(svg, /width="150\.0" height="16" fill="#3b7dc4"/);
  assert.doesNotMatch(svg, /alone/);
  const labels = (limits: object): string[] => {
    const drawn = svgOf("kubelet", [{ name: "row", limits, ours: round(), peer: round() }]);
    return [...drawn.matchAll(/row: (\w+)/g)].map(([, label = ""]) => label);
  };
  assert.deepEqual(
    [labels({ cpu: 0.5 }), labels({ seconds: 1 })],
    [
      ["CPU", "memory"],
      ["time", "CPU", "memory"],
    ],
  );
});

test("requests of the benchmark and requests for metrics are not counted as the daemon's", async () => {
  const own = new OwnCalls();
  const request = (): void => own.observer.requested("GET", "127.0.0.1", "200", 1);
  let answered = 10;
  const client = {
    async raw() {
      request();
      return { status: 200, headers: {}, body: Buffer.from(`apiserver_request_total{verb="GET"} ${answered}\n`) };
    },
  } as unknown as Client;
  for (let count = 0; count < 4; count++) request();
  assert.equal(await own.othersOf(client), 6);
  answered = 13;
  request();
  assert.equal(await own.othersOf(client), 8);
});

test("a row has a line for each implementation and one of their ratios, in the columns of the heading", () => {
  const ours = round({ operations: 20, seconds: 2, cpuSeconds: 0.5, serverCpuSeconds: 0.25 });
  const peer = round({ cpuSeconds: 2, apiCalls: 0 });
  const cells = (line: string): string[] =>
    line
      .slice(6)
      .match(/.{13}/g)
      ?.map((cell) => cell.trim()) ?? [];
  assert.deepEqual(cells(reportHeader()), [
    "per s",
    "s",
    "CPU s",
    "CPU ms each",
    "API calls",
    "server CPU s",
    "RSS MB",
    "PSS MB",
  ]);
  const [name, first = "", second = "", ratio = "", ...rest] = reportLines({ name: "row", limits: {}, ours, peer });
  assert.deepEqual([name, rest], ["row", []]);
  assert.deepEqual(
    [first, second, ratio].map((line) => line.slice(0, 6)),
    ["ours  ", "peer  ", "ratio "],
  );
  assert.deepEqual(cells(first), ["10", "2.00", "0.50", "25.000", "20", "0.25", "100", "90"]);
  assert.deepEqual(cells(second), ["10", "1.00", "2.00", "200.000", "0", "1.00", "100", "90"]);
  assert.deepEqual(cells(ratio), ["1.00", "2.00", "0.25", "0.13", "-", "0.25", "1.00", "1.00"]);
});

import { percentile } from "./load.ts";
import type { Result } from "./measure.ts";

/** The columns in order: title, value of a result, digits after the point. Times in ms. */
const columns: readonly [title: string, value: (result: Result) => number, digits: number][] = [
  ["per s", (result) => result.operations / result.seconds, 0],
  ["p50 ms", (result) => percentile(result.latencies, 0.5), 2],
  ["p99 ms", (result) => percentile(result.latencies, 0.99), 2],
  ["1st byte ms", (result) => percentile(result.firstBytes, 0.5), 2],
  ["CPU s/1000", (result) => (result.cpuSeconds / result.operations) * 1000, 4],
  ["etcd s/1000", (result) => (result.etcdCpuSeconds / result.operations) * 1000, 4],
  ["RSS MB", (result) => result.residentMb, 0],
];
const nameWidth = 46;
const width = 12;

export function header(): string {
  return ["".padEnd(nameWidth), ...columns.map(([title]) => title.padStart(width))].join("");
}

/** A line for each server that was measured, and with two of them one of ratios, first to second. */
export function lines(row: string, servers: readonly string[], results: readonly (Result | undefined)[]): string[] {
  const shown: string[] = [];
  for (const [index, result] of results.entries()) {
    if (result === undefined) continue;
    const name = servers.length === 1 ? row : `${row} (${servers[index]})`;
    shown.push(
      line(
        name,
        columns.map(([, value, digits]) => number(value(result), digits)),
      ),
    );
  }
  const [first, second] = results;
  if (first !== undefined && second !== undefined) {
    shown.push(
      line(
        "  ratio",
        columns.map(([, value]) => ratio(value(first), value(second))),
      ),
    );
  }
  return shown;
}

function line(name: string, cells: readonly string[]): string {
  return [name.padEnd(nameWidth), ...cells.map((cell) => cell.padStart(width))].join("");
}

function number(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}

function ratio(first: number, second: number): string {
  return Number.isFinite(first / second) ? `${(first / second).toFixed(2)}x` : "-";
}

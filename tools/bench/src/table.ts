import { quantities, verdict } from "./limits.ts";
import type { Result } from "./load.ts";
import type { Row } from "./row.ts";

const { perSecond, p50, p99, firstByte, cpu, etcdCpu, clientCpu, memory } = quantities;
const columns = [perSecond, p50, p99, firstByte, cpu, etcdCpu, clientCpu, memory];
const nameWidth = 46;
const width = 14;

export function header(): string {
  return ["".padEnd(nameWidth), ...columns.map(({ title }) => title.padStart(width))].join("");
}

/** One line per server; with two servers also the ratios of first to second, and one line per limit. */
export function lines(row: Row, servers: readonly string[], results: readonly (Result | undefined)[]): string[] {
  const shown: string[] = [];
  for (const [index, result] of results.entries()) {
    if (result === undefined) continue;
    const name = servers.length === 1 ? row.name : `${row.name} (${servers[index]})`;
    shown.push(
      line(
        name,
        columns.map(({ of, digits }) => number(of(result), digits)),
      ),
    );
  }
  const [first, second] = results;
  if (first !== undefined && second !== undefined) {
    shown.push(
      line(
        "  ratio",
        columns.map(({ of }) => ratio(of(first), of(second))),
      ),
    );
    for (const limit of row.limits ?? [])
      shown.push(`  ${verdict(limit, limit.quantity.of(first), limit.quantity.of(second)).text}`);
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

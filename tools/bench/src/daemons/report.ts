import { median } from "../median.ts";
import type { RoundResult, ScenarioLimits } from "./scenario.ts";

/** Medians of one row, for one or both implementations. */
export interface RowReport {
  readonly name: string;
  readonly limits: ScenarioLimits;
  readonly ours: RoundResult;
  readonly peer?: RoundResult;
}

/** @param rounds rounds of our implementation, then of the second one when there is one */
export function reportOf(name: string, limits: ScenarioLimits, [ours = [], peer]: readonly RoundResult[][]): RowReport {
  return { name, limits, ours: medianOf(ours), ...(peer && { peer: medianOf(peer) }) };
}

/** A row of a benchmark that goes through all rows in each round. */
export interface MeasuredRow {
  readonly name: string;
  readonly limits: ScenarioLimits;
  /** Rounds of our implementation, then of the second one when there is one. */
  readonly rounds: readonly RoundResult[][];
}

/** Reports of rows that may be incomplete: a row needs one round of ours; the second implementation's are added where it has any. */
export function reportsOf(rows: readonly MeasuredRow[]): RowReport[] {
  return rows
    .filter(({ rounds: [ours = []] }) => ours.length > 0)
    .map(({ name, limits, rounds }) =>
      reportOf(
        name,
        limits,
        rounds.filter(({ length }) => length > 0),
      ),
    );
}

/** Median of each figure over the rounds. @throws Error without rounds */
export function medianOf(rounds: readonly RoundResult[]): RoundResult {
  const of = (figure: keyof RoundResult): number => median(rounds.map((round) => round[figure]));
  return {
    operations: of("operations"),
    seconds: of("seconds"),
    cpuSeconds: of("cpuSeconds"),
    serverCpuSeconds: of("serverCpuSeconds"),
    apiCalls: of("apiCalls"),
    residentMb: of("residentMb"),
    proportionalMb: of("proportionalMb"),
  };
}

interface Column {
  readonly title: string;
  readonly digits: number;
  readonly limit?: keyof ScenarioLimits;
  of(result: RoundResult): number;
}

const columns: readonly Column[] = [
  { title: "per s", digits: 0, of: ({ operations, seconds }) => operations / seconds },
  { title: "s", digits: 2, limit: "seconds", of: ({ seconds }) => seconds },
  { title: "CPU s", digits: 2, limit: "cpu", of: ({ cpuSeconds }) => cpuSeconds },
  { title: "CPU ms each", digits: 3, of: ({ cpuSeconds, operations }) => (cpuSeconds / operations) * 1000 },
  { title: "API calls", digits: 0, limit: "apiCalls", of: ({ apiCalls }) => apiCalls },
  { title: "server CPU s", digits: 2, of: ({ serverCpuSeconds }) => serverCpuSeconds },
  { title: "RSS MB", digits: 0, limit: "memory", of: ({ residentMb }) => residentMb },
  { title: "PSS MB", digits: 0, of: ({ proportionalMb }) => proportionalMb },
];

const width = 13;

export function reportHeader(): string {
  return ["".padEnd(6), ...columns.map(({ title }) => title.padStart(width))].join("");
}

/** The row's name, a line for each implementation, and with two of them the ratios with their verdicts. */
export function reportLines({ name, limits, ours, peer }: RowReport): string[] {
  const line = (label: string, result: RoundResult): string =>
    [label.padEnd(6), ...columns.map(({ of, digits }) => shown(of(result), digits).padStart(width))].join("");
  if (peer === undefined) return [name, line("ours", ours)];
  const ratios = columns.map(({ of }) => shown(of(ours) / of(peer), 2).padStart(width)).join("");
  return [name, line("ours", ours), line("peer", peer), `ratio ${ratios}`, ...verdicts(limits, ours, peer)];
}

function verdicts(limits: ScenarioLimits, ours: RoundResult, peer: RoundResult): string[] {
  return columns.flatMap(({ title, limit, of }) => {
    const most = limit === undefined ? undefined : limits[limit];
    if (most === undefined) return [];
    const ratio = of(ours) / of(peer);
    return [`  ${title}: ratio ${shown(ratio, 2)}, limit ${most}: ${ratio <= most ? "ok" : "NOT OK"}`];
  });
}

const shown = (value: number, digits: number): string => (Number.isFinite(value) ? value.toFixed(digits) : "-");

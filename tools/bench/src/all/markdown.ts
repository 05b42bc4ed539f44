import type { RowReport } from "../daemons/report.ts";
import type { RoundResult, ScenarioLimits } from "../daemons/scenario.ts";

interface Figure {
  readonly limit: keyof ScenarioLimits;
  readonly digits: number;
  of(result: RoundResult): number;
}

const figures: readonly Figure[] = [
  { limit: "seconds", digits: 2, of: ({ seconds }) => seconds },
  { limit: "cpu", digits: 2, of: ({ cpuSeconds }) => cpuSeconds },
  { limit: "apiCalls", digits: 0, of: ({ apiCalls }) => apiCalls },
  { limit: "memory", digits: 0, of: ({ residentMb }) => residentMb },
];

export interface StepResult {
  readonly title: string;
  /** Undefined when the step printed no rows. */
  readonly machine?: string;
  readonly reports: readonly RowReport[];
  /** Why the step ended before its last row. */
  readonly failure?: string;
}

/** A table for each step: our value / the peer's value (ratio), and the limit with a verdict where there is one. Pure. */
export function markdownOf(results: readonly StepResult[]): string {
  return results.map(sectionOf).join("\n");
}

function sectionOf({ title, machine, reports, failure }: StepResult): string {
  const lines = [`## ${title}`, "", ...(machine === undefined ? [] : [machine, ""])];
  if (reports.length > 0)
    lines.push("| row | s | CPU s | API calls | RSS MB |", "|---|---|---|---|---|", ...reports.map(rowOf), "");
  if (failure !== undefined) lines.push(`Not complete: ${failure}`, "");
  return lines.join("\n");
}

function rowOf({ name, limits, ours, peer }: RowReport): string {
  const cells = figures.map(({ limit, digits, of }) => cellOf(of(ours), peer && of(peer), limits[limit], digits));
  return `| ${[name, ...cells].join(" | ")} |`;
}

function cellOf(ours: number, peer: number | undefined, limit: number | undefined, digits: number): string {
  if (ours === 0 && !peer) return "";
  if (peer === undefined) return ours.toFixed(digits);
  const ratio = ours / peer;
  const pair = `${ours.toFixed(digits)} / ${peer.toFixed(digits)}`;
  const shown = Number.isFinite(ratio) ? ` (${ratio.toFixed(2)}` : " (-";
  const verdict = limit === undefined ? "" : `, limit ${limit}: ${ratio <= limit ? "ok" : "NOT OK"}`;
  return `${pair}${shown}${verdict})`;
}

/** True when all rows were measured and each ratio with a limit is within it. */
export function holds(results: readonly StepResult[]): boolean {
  return results.every(
    ({ failure, reports }) =>
      failure === undefined &&
      reports.every(({ limits, ours, peer }) =>
        figures.every(({ limit, of }) => {
          const most = limits[limit];
          return peer === undefined || most === undefined || of(ours) / of(peer) <= most;
        }),
      ),
  );
}

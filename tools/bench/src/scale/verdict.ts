/** Results of a run. Times in ms. */
export interface ScaleFigures {
  readonly getP99: number;
  readonly listP99: number;
  readonly scheduleP99: number;
  readonly mostServerMb: number;
  readonly endedWatches: number;
  /** Pods of the run that were not created or not seen bound by its end. */
  readonly unbound: number;
}

interface Line {
  readonly name: string;
  readonly most: number;
  readonly digits: number;
  of(figures: ScaleFigures): number;
}

const lines: readonly Line[] = [
  { name: "GET of one pod, p99 ms", most: 200, digits: 1, of: ({ getP99 }) => getP99 },
  { name: "list of a namespace, p99 ms", most: 1_000, digits: 0, of: ({ listP99 }) => listP99 },
  { name: "creation to binding seen, p99 ms", most: 5_000, digits: 0, of: ({ scheduleP99 }) => scheduleP99 },
  { name: "API server's resident memory, most MB", most: 3_072, digits: 0, of: ({ mostServerMb }) => mostServerMb },
  { name: "watches that ended", most: 0, digits: 0, of: ({ endedWatches }) => endedWatches },
  { name: "pods that were not bound", most: 0, digits: 0, of: ({ unbound }) => unbound },
];

/** A figure that was not measured (NaN) exceeds its limit. */
export const isWithin = (figures: ScaleFigures): boolean => lines.every(({ most, of }) => of(figures) <= most);

/** Markdown table with a line for each limit. */
export function verdictTable(figures: ScaleFigures): string {
  const rows = lines.map(({ name, most, digits, of }) => {
    const value = of(figures);
    return `| ${name} | ${value.toFixed(digits)} | ${most} | ${value <= most ? "ok" : "NOT OK"} |`;
  });
  return ["| | measured | limit | |", "|---|---|---|---|", ...rows].join("\n");
}

import type { RoundResult } from "./clients.ts";

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Lines of a table in Markdown; times in seconds. Pure. */
export function tableOf(rows: readonly { kind: string; target: string; result: RoundResult }[]): string[] {
  return [
    "| fault | of | acknowledged writes | writes | writes of one client | watches | evicted | ready elsewhere |",
    "|---|---|---|---|---|---|---|---|",
    ...rows.map(({ kind, target, result }) => {
      const { acknowledged, writesMs, clientWritesMs, watchesMs, evictedMs, readyMs } = result;
      const times = [writesMs, clientWritesMs, watchesMs, evictedMs, readyMs].map(seconds);
      return `| ${[kind, target, acknowledged, ...times].join(" | ")} |`;
    }),
  ];
}

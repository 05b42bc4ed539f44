/** Formats an explanation as text: the cause, the chain with times, and the remedy. */

import type { Decision } from "@coxswain/apimachinery/decisions/decision";
import { humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import { type Explanation, type Finding, nameOf } from "./explanation.ts";
import { oneLine } from "./rule.ts";

/** The first line begins with `Cause: ` or, when nothing is wrong, with `Healthy: `. */
export function explanationText({ object, cause, chain, decisions = [], silent = [] }: Explanation, now: number): string {
  const lines: string[] = [];
  if (cause === undefined) {
    lines.push(`Healthy: ${nameOf(object)}: nothing is wrong with it.`);
  } else {
    lines.push(`Cause: ${nameOf(cause.object)}: ${cause.summary}`, "");
    const width = Math.max(...chain.map(({ object: each }) => nameOf(each).length));
    for (const finding of chain)
      lines.push(`  ${nameOf(finding.object).padEnd(width)}  ${finding.summary}${timeText(finding, now)}`);
    lines.push(
      "",
      "What to do:",
      `  ${cause.remedy ?? remedyOfChain(chain) ?? "Wait; if it stays so, look at the log of the component that the cause names."}`,
    );
  }
  const others = decisions.filter(({ summary }) => !chain.some((finding) => finding.summary.includes(oneLine(summary))));
  if (others.length > 0)
    lines.push("", "Last decisions:", ...others.slice(0, mostDecisions).map((one) => decisionLine(one, now)));
  if (silent.length > 0) lines.push("", `Not queried, because they did not answer: ${silent.join(", ")}`);
  return `${lines.join("\n")}\n`;
}

const mostDecisions = 10;

function decisionLine({ object, component, source, summary, since, count, nextTryAt }: Decision, now: number): string {
  const next = nextTryAt === undefined ? "" : `; next try at ${nextTryAt}`;
  const times = count > 1 ? `, ${count} times` : "";
  return `  ${nameOf(object)}  ${component} ${source}: ${oneLine(summary)}  (${sinceText(since, now)}${times}${next})`;
}

const remedyOfChain = (chain: readonly Finding[]): string | undefined =>
  chain.map(({ remedy }) => remedy).findLast((remedy) => remedy !== undefined);

function timeText({ since, by }: Finding, now: number): string {
  const who = by === "explain" ? "" : by;
  const parts = [who, sinceText(since, now)].filter((part) => part !== "");
  return parts.length === 0 ? "" : `  (${parts.join(", ")})`;
}

function sinceText(since: string | undefined, now: number): string {
  const ms = since === undefined ? undefined : parseTime(since);
  return ms === undefined ? "" : `for ${humanDuration(Math.max(0, now - ms))}, since ${since}`;
}

const columns = [
  { name: "Object", type: "string", format: "name", description: "The object that the finding is about.", priority: 0 },
  { name: "Reason", type: "string", format: "", description: "CamelCase reason.", priority: 0 },
  { name: "Since", type: "string", format: "", description: "How long it has been so.", priority: 0 },
  { name: "By", type: "string", format: "", description: "Who says so.", priority: 1 },
  { name: "Summary", type: "string", format: "", description: "What is wrong.", priority: 0 },
];

/** `meta.k8s.io/v1` Table, one row for each finding, the cause last. */
export function explanationTable({ chain }: Explanation, now: number): object {
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {},
    columnDefinitions: columns,
    rows: chain.map(({ object, reason, since, by, summary }) => ({
      cells: [nameOf(object), reason, sinceCell(since, now), by, summary],
      object: null,
    })),
  };
}

function sinceCell(since: string | undefined, now: number): string {
  const ms = since === undefined ? undefined : parseTime(since);
  return ms === undefined ? "<unknown>" : humanDuration(Math.max(0, now - ms));
}

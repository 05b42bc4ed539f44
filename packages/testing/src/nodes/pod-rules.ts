import type { Container, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type Duration, durationMs } from "../time/duration.ts";
import type { Exec, Logs } from "./kubelet/rules.ts";
import { amountsOf, type ContainerUsages } from "./metrics/usage.ts";
import { checkStages, holds, type PodStage } from "./pod-stages.ts";

/** How pods behave on fake nodes, as data. The first rule that matches a pod holds for it; `defaultRule` for the others. */
export interface PodRule {
  /** Which pods; everything given has to be true. Absent: all. */
  readonly match?: PodMatch;
  /** From the binding to running containers. Default: at once. */
  readonly startAfter?: Duration;
  /** From running to ready. Default: at once; `"never"`: the pod runs and is never ready. */
  readonly readyAfter?: Duration | "never";
  /** The containers end by themselves. Default: those of pods that are not restarted always do, after 1 s, with exit code 0. */
  readonly ends?: { readonly after: Duration; readonly exitCode?: number; readonly reason?: string } | "never";
  /** The containers cannot be started: `ImagePullBackOff`, `CreateContainerConfigError`, … */
  readonly waits?: { readonly reason: string; readonly message?: string };
  /** From the deletion to the end. Default: at once. */
  readonly stopAfter?: Duration;
  /** The life of the pod, step by step, in place of the fields above. */
  readonly stages?: readonly PodStage[];
  /** What `kubectl logs` shows: lines, or a function that is called for each reader. Default: nothing. */
  readonly logs?: Logs;
  /** Answers `kubectl exec`. Default: commands are refused. */
  readonly exec?: Exec;
  /** What its containers use, for autoscalers and `kubectl top`: `{ cpu: "250m", memory: "64Mi" }`. Default: no metrics. */
  readonly usage?: ContainerUsages;
}

export interface PodMatch {
  readonly namespace?: string;
  /** The name, with `*` for anything: `web-*`. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The image of any of its containers, with `*` for anything. */
  readonly image?: string;
  readonly node?: string;
}

/** A rule with its times in ms. */
export interface PodBehaviour {
  readonly startMs: number;
  /** undefined: never. */
  readonly readyMs: number | undefined;
  readonly ends: { readonly afterMs: number; readonly exitCode: number; readonly reason: string | undefined } | undefined;
  readonly waits: { readonly reason: string; readonly message: string } | undefined;
  readonly stopMs: number;
}

/** Checks rules once, before pods come. @throws Error that names the rule */
export function checkRules(rules: readonly PodRule[]): void {
  for (const [index, rule] of rules.entries()) {
    try {
      behaviourOf(rule, "Always");
      checkStages(rule.stages ?? []);
      if (typeof rule.usage === "object") amountsOf(rule.usage);
    } catch (err) {
      throw new Error(`rule ${index + 1} of pods: ${(err as Error).message}`, { cause: err });
    }
  }
}

/** The first rule that matches; an empty one, whose defaults apply, when none does. */
export function ruleOf(pod: Pod, rules: readonly PodRule[]): PodRule {
  return rules.find(({ match = {} }) => matches(pod, match)) ?? {};
}

/**
 * With its defaults. Unless `restartPolicy` is Always, containers exit with 0 after one second.
 * @throws Error for a duration that cannot be read
 */
export function behaviourOf(rule: PodRule, restartPolicy: string): PodBehaviour {
  const { startAfter = 0, readyAfter = 0, stopAfter = 0, waits } = rule;
  const ends = rule.ends ?? (restartPolicy === "Always" ? "never" : { after: 1_000 });
  return {
    startMs: durationMs(startAfter),
    readyMs: readyAfter === "never" ? undefined : durationMs(readyAfter),
    ends: ends === "never" ? undefined : { afterMs: durationMs(ends.after), exitCode: ends.exitCode ?? 0, reason: ends.reason },
    waits: waits && { message: "", ...waits },
    stopMs: durationMs(stopAfter),
  };
}

function matches(pod: Pod, { namespace, name, labels = {}, annotations = {}, image, node }: PodMatch): boolean {
  const { metadata, spec } = pod;
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  if (name !== undefined && !isLike(metadata.name ?? "", name)) return false;
  if (node !== undefined && spec.nodeName !== node) return false;
  if (image !== undefined && !spec.containers.some((container: Container) => isLike(container.image ?? "", image))) return false;
  return holds(labels, metadata.labels) && holds(annotations, metadata.annotations);
}

function isLike(text: string, pattern: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return text === pattern;
  const [first = "", ...rest] = parts;
  const last = rest.pop() ?? "";
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let place = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, place);
    if (found < 0 || found + part.length > text.length - last.length) return false;
    place = found + part.length;
  }
  return true;
}

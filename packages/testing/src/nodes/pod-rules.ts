import type { Container, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type Duration, durationMs } from "../time/duration.ts";
import type { Exec, Logs } from "./kubelet/rules.ts";
import { amountsOf, type ContainerUsages } from "./metrics/usage.ts";
import { checkStages, holds, type PodStage } from "./pod-stages.ts";

/** Behaviour of Pods on fake nodes, as data. The first matching rule applies to a Pod, `defaultRule` when none matches. */
export interface PodRule {
  /** Selects Pods; all given conditions must hold. Default: all Pods. */
  readonly match?: PodMatch;
  /** Time from binding to running containers. Default: none. */
  readonly startAfter?: Duration;
  /** Time from running to ready. Default: none; `"never"`: the Pod runs but never becomes ready. */
  readonly readyAfter?: Duration | "never";
  /** The containers exit by themselves. Default: only those of Pods that are not restarted always, after 1 s with exit code 0. */
  readonly ends?: { readonly after: Duration; readonly exitCode?: number; readonly reason?: string } | "never";
  /** The containers cannot be started, for this reason: `ImagePullBackOff`, `CreateContainerConfigError`, … */
  readonly waits?: { readonly reason: string; readonly message?: string };
  /** Time from deletion to termination. Default: none. */
  readonly stopAfter?: Duration;
  /** The life cycle of the Pod as a list of stages, instead of the fields above. */
  readonly stages?: readonly PodStage[];
  /** Output of `kubectl logs`: lines, or a function that is called for each reader. Default: none. */
  readonly logs?: Logs;
  /** Handles `kubectl exec`. Default: commands are refused. */
  readonly exec?: Exec;
  /** Resource usage of each container, for autoscalers and `kubectl top`: `{ cpu: "250m", memory: "64Mi" }`. Default: no metrics. */
  readonly usage?: ContainerUsages;
}

export interface PodMatch {
  readonly namespace?: string;
  /** Pod name, with `*` as wildcard: `web-*`. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Image of any of its containers, with `*` as wildcard. */
  readonly image?: string;
  readonly node?: string;
}

/** A rule with times in ms and defaults. */
export interface PodBehaviour {
  readonly startMs: number;
  /** undefined: never. */
  readonly readyMs: number | undefined;
  readonly ends: { readonly afterMs: number; readonly exitCode: number; readonly reason: string | undefined } | undefined;
  readonly waits: { readonly reason: string; readonly message: string } | undefined;
  readonly stopMs: number;
}

/** Validates rules before they are applied. @throws Error that names the rule */
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

/** The first matching rule, or an empty one with the defaults. */
export function ruleOf(pod: Pod, rules: readonly PodRule[]): PodRule {
  return rules.find(({ match = {} }) => matches(pod, match)) ?? {};
}

/**
 * Applies a rule's defaults. Unless `restartPolicy` is Always, containers exit with 0 after one second.
 * @throws Error for an invalid duration
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

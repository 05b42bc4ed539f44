/**
 * Checks the existing pods of a namespace against a new standard, for the warnings in the response to the label change.
 * Source: k8s.io/pod-security-admission admission/admission.go EvaluatePodsInNamespace
 */

import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { violations } from "./checks.ts";
import { type LevelVersion, minorOf } from "./policy.ts";

interface PodLike extends KubeObject {
  readonly spec: PodSpec;
}

const mostPods = 3000;
const longestMs = 1000;

/**
 * @param now current time in ms; the check stops after one second
 * @returns warnings, each naming a pod and the violations
 */
export async function warningsAbout(
  namespace: string,
  pods: readonly PodLike[],
  { level, version }: LevelVersion,
  now: () => number,
  turns: Turns,
): Promise<string[]> {
  const deadline = now() + longestMs;
  const inOrder = oneOfEachFirst(pods);
  const byReason = new Map<string, string[]>();
  let checked = 0;
  for (const { metadata, spec } of inOrder.slice(0, mostPods)) {
    const reasons = violations(level, minorOf(version), metadata, spec).map(({ reason }) => reason);
    if (reasons.length > 0) {
      const text = reasons.join(", ");
      byReason.set(text, [...(byReason.get(text) ?? []), metadata.name ?? ""]);
    }
    checked++;
    if (now() > deadline) break;
    const turn = turns.next();
    if (turn !== undefined) await turn;
  }
  const warnings: string[] = [];
  if (checked < pods.length) {
    warnings.push(`new PodSecurity enforce level only checked against the first ${checked} of ${pods.length} existing pods`);
  }
  if (byReason.size > 0) {
    warnings.push(
      `existing pods in namespace ${goQuote(namespace)} violate the new PodSecurity enforce level ${goQuote(`${level}:${version}`)}`,
    );
  }
  const lines = [...byReason].map(([text, names]) => {
    const [first, ...others] = names.sort();
    const more = others.length === 0 ? "" : ` (and ${others.length} other pod${others.length === 1 ? "" : "s"})`;
    return `${first}${more}: ${text}`;
  });
  return [...warnings, ...lines.sort()];
}

/** Orders one pod per controller first, since pods of a controller are alike and the check may be cut short. */
function oneOfEachFirst(pods: readonly PodLike[]): PodLike[] {
  const seen = new Set<string>();
  const [first, rest]: [PodLike[], PodLike[]] = [[], []];
  for (const pod of pods) {
    const uid = controllerOf(pod)?.uid;
    (uid !== undefined && seen.has(uid) ? rest : first).push(pod);
    if (uid !== undefined) seen.add(uid);
  }
  return [...first, ...rest];
}

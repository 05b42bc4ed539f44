import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatGroupResource, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { apiServices } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { DeletionOutcome } from "./writes.ts";

/** Pure: why a namespace is not deleted yet. Obstacles that only their owner can remove come first. */
export function obstacles({ discoveryFailures, failures, remaining, finalizers }: DeletionOutcome): Outcome {
  const objects = [...remaining].map(([name, count]) => `${count} of ${name.replace(/\.$/, "")}`).join(", ");
  const details = { remaining: Object.fromEntries(remaining), finalizers: Object.fromEntries(finalizers) };
  if (discoveryFailures.length > 0) {
    const groups = discoveryFailures.map(({ groupVersion, error }) => `${groupVersion} (${causesOf(error)})`).join(", ");
    return {
      verdict: "waiting",
      reason: "ApiUnavailable",
      description: {
        summary: `its remaining content is unknown while these API groups do not respond: ${groups}`,
        related: discoveryFailures.flatMap(({ groupVersion }) => apiServiceOf(groupVersion)),
        remedy: "repair the service of the API group, or delete its APIService",
        details,
      },
    };
  }
  if (finalizers.size > 0) {
    const names = [...finalizers].map(([name, count]) => `${name} of ${count} ${count === 1 ? "object" : "objects"}`).join(", ");
    return {
      verdict: "waiting",
      reason: "FinalizerPending",
      description: {
        summary: `waits for the finalizer ${names}; left: ${objects}`,
        remedy: "check the program that sets the finalizer; removing it manually skips that clean-up",
        details,
      },
    };
  }
  if (failures.length > 0) {
    const summary = `its content cannot be deleted: ${failures.map((failure) => causesOf(failure)).join(", ")}`;
    return { verdict: "failed", reason: "ContentDeletionFailed", description: { summary, details } };
  }
  return {
    verdict: "waiting",
    reason: "ContentRemaining",
    description: { summary: `waits for its content to end: ${objects}`, details },
  };
}

function apiServiceOf(groupVersion: string) {
  const parsed = parseGroupVersion(groupVersion);
  if (parsed === undefined || parsed.group === "") return [];
  const { group, resource, kind } = apiServices;
  const name = formatGroupResource({ group: parsed.group, resource: parsed.version });
  return [{ group, resource, kind, namespace: "", name, uid: "" }];
}

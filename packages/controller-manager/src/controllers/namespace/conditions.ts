import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { NamespaceCondition } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { DeletionOutcome } from "./writes.ts";

/**
 * Pure: computes the deletion conditions of a namespace. Missing conditions are added; an existing one gets a new
 * transition time only when its status, reason or message changes.
 * Source: pkg/controller/namespace/deletion/status_condition_utils.go
 */
export function deletionConditions(
  before: readonly NamespaceCondition[],
  outcome: DeletionOutcome,
  now: number,
): NamespaceCondition[] {
  const conditions = [...before];
  for (const desired of desiredConditions(outcome)) {
    const at = conditions.findIndex(({ type }) => type === desired.type);
    const stamped = { ...desired, lastTransitionTime: formatTime(now) };
    const current = conditions[at];
    if (current === undefined) conditions.push(stamped);
    else if (current.status !== desired.status || current.message !== desired.message || current.reason !== desired.reason)
      conditions[at] = stamped;
  }
  return conditions;
}

type Wanted = Required<Pick<NamespaceCondition, "type" | "status" | "reason" | "message">>;

function desiredConditions({ discoveryFailures, failures, remaining, finalizers }: DeletionOutcome): Wanted[] {
  const texts = (map: ReadonlyMap<string, number>, words: (name: string, count: number) => string): string =>
    [...map]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => words(name, count))
      .join(", ");
  return [
    discoveryFailures.length === 0
      ? condition("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered")
      : condition("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", discoveryMessage(discoveryFailures), true),
    condition("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    failures.length === 0
      ? condition(
          "NamespaceDeletionContentFailure",
          "ContentDeleted",
          "All content successfully deleted, may be waiting on finalization",
        )
      : condition("NamespaceDeletionContentFailure", "ContentDeletionFailed", contentMessage(failures), true),
    remaining.size === 0
      ? condition("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
      : condition(
          "NamespaceContentRemaining",
          "SomeResourcesRemain",
          `Some resources are remaining: ${texts(remaining, (name, count) => `${name} has ${count} resource instances`)}`,
          true,
        ),
    finalizers.size === 0
      ? condition("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
      : condition(
          "NamespaceFinalizersRemaining",
          "SomeFinalizersRemain",
          `Some content in the namespace has finalizers remaining: ${texts(finalizers, (name, count) => `${name} in ${count} resource instances`)}`,
          true,
        ),
  ];
}

function condition(type: string, reason: string, message: string, bad = false): Wanted {
  return { type, status: bad ? "True" : "False", reason, message };
}

function discoveryMessage(failures: DeletionOutcome["discoveryFailures"]): string {
  const texts = failures.map(({ groupVersion, error }) => `${groupVersion}: ${messageOf(error)}`);
  return `Discovery failed for some groups, ${failures.length} failing: unable to retrieve the complete list of server APIs: ${texts.join(", ")}`;
}

function contentMessage(failures: readonly Error[]): string {
  const texts = failures.map(({ message }) => message).toSorted();
  return `Failed to delete all resource types, ${failures.length} remaining: ${texts.join(", ")}`;
}

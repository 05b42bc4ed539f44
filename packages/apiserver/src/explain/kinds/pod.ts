/** Rules for pods. */
import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { refToObject } from "../refusals.ts";
import { conditionOf, type Facts, isSeen, type Problem, rulesFor, sinceTime } from "../rule.ts";
import { containerPhaseRules } from "./pod-containers.ts";
import { gatherPod, type PodFacts } from "./pod-facts.ts";
import { schedulingRules } from "./pod-scheduling.ts";

type PodRule = (facts: Facts<Pod, PodFacts>) => Problem | undefined;

const isReady = (node: Node): boolean => conditionOf(node.status?.conditions, "Ready")?.status === "True";

/** The pod's node is not ready: without its kubelet the pod makes no progress. One that has failed makes none anywhere. */
const nodeUnreachable: PodRule = ({ object, related: { node } }) => {
  if (node === undefined || !isSeen(node) || isReady(node)) return undefined;
  const name = node.metadata.name ?? "";
  const deleted = object.metadata.deletionTimestamp;
  if (!deleted && object.status?.phase === "Failed") return undefined;
  return {
    by: "explain",
    reason: "NodeNotReady",
    summary: deleted
      ? `is being deleted, but its node ${name} is not ready, and only its kubelet can end the containers`
      : `its node ${name} is not ready`,
    remedy: deleted
      ? `Bring ${name} back; if it will never come back, delete the node object, or the pod with --grace-period=0 --force.`
      : `Bring ${name} back: kubectl why node/${name}.`,
    follow: [refToObject("", "nodes", "Node", "", name)],
    ...sinceTime(deleted ?? conditionOf(node.status?.conditions, "Ready")?.lastTransitionTime),
  };
};

const succeeded = (pod: Pod): boolean => pod.status?.phase === "Succeeded";

/** Containers may run until the end of the grace period. */
const gracePeriod: PodRule = ({ object, now }) => {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  const end = parseTime(deletionTimestamp ?? "");
  const runs = (object.status?.containerStatuses ?? []).filter(({ state }) => state?.running !== undefined);
  if (end === undefined || runs.length === 0) return undefined;
  const began = formatTime(end - deletionGracePeriodSeconds * 1000);
  const names = runs.map(({ name }) => name).join(", ");
  if (finalizers.length > 0 && end < now) return undefined;
  return {
    by: "kubelet",
    reason: "Terminating",
    summary:
      end > now
        ? `is being deleted: container ${names} has not ended yet and has until ${deletionTimestamp} (grace period ${deletionGracePeriodSeconds} s)`
        : `is being deleted: container ${names} has not ended although its grace period of ${deletionGracePeriodSeconds} s is over`,
    remedy:
      "Make the program end on SIGTERM or its preStop hook sooner, or lower terminationGracePeriodSeconds; kubectl delete --now shortens it.",
    since: began,
  };
};

export const podRules = rulesFor<Pod, PodFacts>({
  gather: gatherPod,
  deletion: [nodeUnreachable, gracePeriod],
  rules: [
    ...[...schedulingRules, nodeUnreachable, ...containerPhaseRules].map(
      (rule): PodRule =>
        (facts) =>
          succeeded(facts.object) ? undefined : rule(facts),
    ),
  ],
});

/** Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import { refusedProblem } from "../refusals.ts";
import {
  conditionOf,
  type Facts,
  firstTimeOfEvent,
  isOlder,
  labelsText,
  latestEvent,
  type Problem,
  plural,
  type Reader,
  type Rule,
  rulesFor,
  sinceTime,
  timeOfEvent,
} from "../rule.ts";

/** A running controller has reacted to a change within this time. */
const controllerActsMs = 15_000;

export interface OwnedPods {
  /** The pods of the object; undefined when the user may not list pods. */
  readonly pods: readonly Pod[] | undefined;
  /** Pods that are not ready; those that are being deleted come last. */
  readonly unready: readonly ObjectRef[];
}

const isReady = (pod: Pod): boolean => conditionOf(pod.status?.conditions, "Ready")?.status === "True";
const isDone = (pod: Pod): boolean => pod.status?.phase === "Succeeded";

/** The pods that this object controls. */
export async function podsOf(owner: KubeObject, selector: unknown, reader: Reader): Promise<OwnedPods> {
  const labels = selectorOf(selector);
  const listed = await reader.list<Pod>("pods", "", owner.metadata.namespace ?? "", labels);
  const pods = listed?.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid));
  const unready = (pods ?? [])
    .filter((pod) => !isReady(pod) && !isDone(pod))
    .toSorted((a, b) => Number(Boolean(a.metadata.deletionTimestamp)) - Number(Boolean(b.metadata.deletionTimestamp)));
  return { pods, unready: unready.map((pod) => reader.refOf(pod, "pods", "")) };
}

// Cast: selectors were validated before they were stored.
const selectorOf = (selector: unknown): LabelSelector => LabelSelector.fromObject(selector as never);

type HasEvents = Pick<Facts<KubeObject, unknown>, "events" | "now">;

/** The last attempt to create a pod failed, and none has succeeded since. */
function failedCreate({ events }: HasEvents, by: string): Problem | undefined {
  const event = latestEvent(events, ["FailedCreate"]);
  const success = latestEvent(events, ["SuccessfulCreate"]);
  if (event === undefined || (timeOfEvent(success ?? event) ?? "") > (timeOfEvent(event) ?? "")) return undefined;
  return refusedProblem(event.message, by, sinceTime(firstTimeOfEvent(event)));
}

const unseenChange = (
  { metadata, status }: { metadata: KubeObject["metadata"]; status?: { observedGeneration?: number } },
  now: number,
  by: string,
): Problem | undefined => {
  if ((status?.observedGeneration ?? 0) >= (metadata.generation ?? 0)) return undefined;
  const times = (metadata.managedFields ?? []).map(({ time }) => time ?? "").toSorted();
  const changed = times.at(-1) || metadata.creationTimestamp;
  if (!isOlder(changed, controllerActsMs, now)) return undefined;
  return {
    by: "explain",
    reason: "ControllerAway",
    summary: `the ${by} has not processed its last change`,
    remedy: "Look at the log of kube-controller-manager and at the lease kube-system/kube-controller-manager.",
    ...sinceTime(changed),
  };
};

interface DeploymentFacts {
  /** The ReplicaSets of the Deployment, the newest first. */
  readonly replicaSets: readonly { readonly object: ReplicaSet; readonly ref: ObjectRef }[];
}

const revisionOf = ({ metadata }: ReplicaSet): number => Number(metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0);

const deployment = "deployment-controller";

function rolloutText({ object: { spec, status = {} } }: Facts<Deployment, DeploymentFacts>): string | undefined {
  const wanted = spec.replicas ?? 1;
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if (updatedReplicas < wanted) return `wants ${wanted}, has ${plural(updatedReplicas, "pod")} of its latest template`;
  if (availableReplicas < wanted) return `wants ${wanted}, has ${availableReplicas} available`;
  if (replicas > updatedReplicas) return `${plural(replicas - updatedReplicas, "pod")} of older templates still to be removed`;
  return undefined;
}

const deploymentRules: Rule<Deployment, DeploymentFacts>[] = [
  (facts) => {
    const { spec, status } = facts.object;
    const text = rolloutText(facts);
    if (spec.paused !== true || text === undefined) return undefined;
    return {
      by: deployment,
      reason: "RolloutPaused",
      summary: `its rollout is paused: ${text}`,
      remedy: `kubectl rollout resume deployment/${facts.object.metadata.name}`,
      ...sinceTime(conditionOf(status?.conditions, "Progressing")?.lastTransitionTime),
    };
  },
  ({ object, now }) => unseenChange(object, now, "deployment controller"),
  (facts) => {
    const text = rolloutText(facts);
    if (text === undefined) return undefined;
    const { conditions } = facts.object.status ?? {};
    const progressing = conditionOf(conditions, "Progressing");
    const available = conditionOf(conditions, "Available");
    const late =
      progressing?.reason === "ProgressDeadlineExceeded" ? "; the rollout has made no progress for longer than its deadline" : "";
    const wantsPods = facts.related.replicaSets.filter(
      ({ object: { spec, status } }) => (spec.replicas ?? 0) > 0 || status?.replicas,
    );
    return {
      by: deployment,
      reason: progressing?.reason === "ProgressDeadlineExceeded" ? "ProgressDeadlineExceeded" : "RolloutNotComplete",
      summary: `${text}${late}`,
      follow: wantsPods.map(({ ref }) => ref),
      ...sinceTime(
        (available?.status === "False" ? available : progressing)?.lastTransitionTime ?? facts.object.metadata.creationTimestamp,
      ),
    };
  },
];

export const deploymentKind = rulesFor<Deployment, DeploymentFacts>({
  async gather(object, reader) {
    const all = await reader.list<ReplicaSet>(
      "replicasets",
      "apps",
      object.metadata.namespace ?? "",
      selectorOf(object.spec.selector),
    );
    const own = (all ?? []).filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid));
    const sorted = own.toSorted((a, b) => revisionOf(b) - revisionOf(a));
    return { replicaSets: sorted.map((one) => ({ object: one, ref: reader.refOf(one, "replicasets", "apps") })) };
  },
  rules: deploymentRules,
});

interface Replicated extends KubeObject {
  spec: { replicas?: number; selector?: unknown; minReadySeconds?: number };
  status?: Partial<NonNullable<ReplicaSet["status"]>>;
}

/** ReplicaSets, and ReplicationControllers, whose selector is a map. */
const replicatedKind = (by: string, selectorOfObject: (object: Replicated) => unknown) =>
  rulesFor<Replicated, OwnedPods>({
    gather: (object, reader) => podsOf(object, selectorOfObject(object), reader),
    rules: [
      ({ object: { spec, status } }) => {
        const failure = conditionOf(status?.conditions, "ReplicaFailure");
        if (failure?.status !== "True" || (status?.replicas ?? 0) >= (spec.replicas ?? 1)) return undefined;
        if (failure.reason === "FailedCreate") return refusedProblem(failure.message, by, sinceTime(failure.lastTransitionTime));
        return {
          by,
          reason: failure.reason ?? "ReplicaFailure",
          summary: failure.message || "its pods cannot be created or deleted",
          ...sinceTime(failure.lastTransitionTime),
        };
      },
      ({ object, now }) => unseenChange(object, now, by.replace("-", " ")),
      ({ object: { spec, status, metadata }, related }) => {
        const wanted = spec.replicas ?? 1;
        const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status ?? {};
        if (replicas === wanted && availableReplicas >= wanted) return undefined;
        const wait =
          readyReplicas >= wanted && spec.minReadySeconds ? `, until they were ready for ${spec.minReadySeconds} s` : "";
        return {
          by,
          reason: "NotAllReady",
          summary: `wants ${plural(wanted, "pod")}, has ${replicas}, of which ${readyReplicas} ready and ${availableReplicas} available${wait}`,
          follow: related.unready,
          ...sinceTime(metadata.creationTimestamp),
        };
      },
    ],
  });

export const replicaSetKind = replicatedKind("replicaset-controller", ({ spec }) => spec.selector);
export const replicationControllerKind = replicatedKind("replication-controller", ({ spec }) => ({ matchLabels: spec.selector }));

const ordinalOf = ({ name }: ObjectRef): number => Number(/-(\d+)$/.exec(name)?.[1] ?? 0);

const statefulSet = "statefulset-controller";

export const statefulSetKind = rulesFor<StatefulSet, OwnedPods>({
  async gather(object, reader) {
    const { pods, unready } = await podsOf(object, object.spec.selector, reader);
    return { pods, unready: unready.toSorted((a, b) => ordinalOf(a) - ordinalOf(b)) };
  },
  rules: [
    ({ object, now }) => unseenChange(object, now, "statefulset controller"),
    (facts) => {
      const { spec, status, metadata } = facts.object;
      const wanted = spec.replicas ?? 1;
      const ready = status?.readyReplicas ?? 0;
      const [first] = facts.related.unready;
      if (ready >= wanted) return undefined;
      if (first === undefined) {
        const refused = failedCreate(facts, statefulSet);
        if (refused !== undefined) return refused;
      }
      const waits = first !== undefined && spec.podManagementPolicy !== "Parallel" && (status?.replicas ?? 0) < wanted;
      return {
        by: statefulSet,
        reason: "NotAllReady",
        summary: `wants ${wanted}, has ${ready} ready${waits ? `: the next pod is created when ${first.name} is ready` : ""}`,
        follow: facts.related.unready,
        ...sinceTime(metadata.creationTimestamp),
      };
    },
    ({ object: { spec, status, metadata } }) => {
      const { currentRevision, updateRevision, updatedReplicas = 0 } = status ?? {};
      const wanted = spec.replicas ?? 1;
      if (currentRevision === updateRevision || updatedReplicas >= wanted) return undefined;
      if (spec.updateStrategy?.type === "OnDelete") {
        return {
          by: statefulSet,
          reason: "UpdateOnDelete",
          summary: `update strategy OnDelete: ${plural(wanted - updatedReplicas, "pod")} still on an older template, until deleted`,
          remedy: `Delete the pods one after the other, or use updateStrategy RollingUpdate.`,
        };
      }
      const partition = spec.updateStrategy?.rollingUpdate?.partition ?? 0;
      if (partition > 0 && updatedReplicas >= wanted - partition) {
        return {
          by: statefulSet,
          reason: "UpdatePartition",
          summary: `partition ${partition} keeps the pods ${metadata.name}-0 to ${metadata.name}-${partition - 1} at the older template`,
          remedy: "Lower spec.updateStrategy.rollingUpdate.partition when they are to be updated.",
        };
      }
      return undefined;
    },
  ],
});

interface DaemonSetFacts extends OwnedPods {
  readonly nodes: readonly Node[] | undefined;
}

const daemonSet = "daemonset-controller";

export const daemonSetKind = rulesFor<DaemonSet, DaemonSetFacts>({
  gather: async (object, reader) => ({
    ...(await podsOf(object, object.spec.selector, reader)),
    nodes: await reader.list<Node>("nodes", "", ""),
  }),
  rules: [
    ({ object, now }) => unseenChange(object, now, "daemonset controller"),
    ({ object: { spec, status, metadata }, related: { nodes } }) => {
      if ((status?.desiredNumberScheduled ?? 0) > 0 || nodes === undefined || nodes.length === 0) return undefined;
      const pod: Pod = { metadata: {}, spec: spec.template.spec };
      const selector = labelsText(spec.template.spec?.nodeSelector);
      const matching = nodes.filter((node) => matchesNode(pod, node)).length;
      return {
        by: daemonSet,
        reason: "NoNodeMatches",
        summary:
          matching === 0
            ? `its node selector ${selector || "and affinity"} matches none of ${plural(nodes.length, "node")}`
            : `wants no pod on any of ${plural(nodes.length, "node")}: their taints are not tolerated`,
        remedy: "Label the nodes that should run it, or correct nodeSelector or tolerations of the template.",
        ...sinceTime(metadata.creationTimestamp),
      };
    },
    (facts) => {
      const { status, metadata } = facts.object;
      const { desiredNumberScheduled = 0, numberReady = 0, currentNumberScheduled = 0 } = status ?? {};
      if (numberReady >= desiredNumberScheduled) return undefined;
      if (currentNumberScheduled < desiredNumberScheduled && facts.related.unready.length === 0) {
        const refused = failedCreate(facts, daemonSet);
        if (refused !== undefined) return refused;
      }
      return {
        by: daemonSet,
        reason: "NotAllReady",
        summary: `wants a pod on ${plural(desiredNumberScheduled, "node")}, has ${numberReady} ready`,
        follow: facts.related.unready,
        ...sinceTime(metadata.creationTimestamp),
      };
    },
    ({ object: { spec, status } }) => {
      const { desiredNumberScheduled = 0, updatedNumberScheduled = 0 } = status ?? {};
      if (spec.updateStrategy?.type !== "OnDelete" || updatedNumberScheduled >= desiredNumberScheduled) return undefined;
      return {
        by: daemonSet,
        reason: "UpdateOnDelete",
        summary: `update strategy OnDelete: ${plural(desiredNumberScheduled - updatedNumberScheduled, "pod")} still on an older template, until deleted`,
        remedy: "Delete the pods node by node, or use updateStrategy RollingUpdate.",
      };
    },
  ],
});

export { failedCreate };

/** Rules for pods without a node. */

import type { Node, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podResources } from "@coxswain/apimachinery/quota/pod-resources";
import { quantityIn } from "@coxswain/apimachinery/quota/resource-list";
import { conditionOf, type Facts, isOlder, isSeen, labelsText, oneLine, type Problem, plural, sinceTime } from "../rule.ts";
import type { PodFacts } from "./pod-facts.ts";

type PodRule = (facts: Facts<Pod, PodFacts>) => Problem | undefined;

const scheduler = "kube-scheduler";
/** A running scheduler has processed a new pod within this time. */
const schedulerLooksMs = 10_000;

const conditionSince = ({ object }: Facts<Pod, PodFacts>): { since?: string } =>
  sinceTime(conditionOf(object.status?.conditions, "PodScheduled")?.lastTransitionTime ?? object.metadata.creationTimestamp);

/** A claim of the pod that does not exist, or is not bound though its class binds at once. */
const claims: PodRule = (facts) => {
  if (facts.object.spec.nodeName) return undefined;
  for (const { name, claim } of facts.related.claims) {
    if (claim === "missing") {
      return {
        by: scheduler,
        reason: "ClaimMissing",
        summary: `persistent volume claim ${name} does not exist`,
        remedy: "Create the claim, or correct claimName in the pod.",
        ...conditionSince(facts),
      };
    }
    if (!isSeen(claim)) continue;
    if (claim.metadata.deletionTimestamp) {
      return {
        by: scheduler,
        reason: "ClaimBeingDeleted",
        summary: `persistent volume claim ${name} is being deleted`,
        remedy: "Wait until the claim is gone, then create it again.",
        ...conditionSince(facts),
      };
    }
  }
  const waiting = facts.related.claims.filter(({ claim }) => isSeen(claim) && isUnbound(claim));
  const message = unschedulableMessage(facts);
  if (waiting.length === 0 || (message !== undefined && !/PersistentVolumeClaim|persistentvolumeclaim|volume/.test(message)))
    return undefined;
  return {
    by: scheduler,
    reason: "ClaimNotBound",
    summary: `waits for its persistent volume claim ${waiting.map(({ name }) => name).join(", ")} to be bound`,
    follow: waiting.map(({ ref }) => ref),
    ...conditionSince(facts),
  };
};

const isUnbound = (claim: PersistentVolumeClaim): boolean => claim.status?.phase !== "Bound";

function unschedulableMessage({ object }: Facts<Pod, PodFacts>): string | undefined {
  const condition = conditionOf(object.status?.conditions, "PodScheduled");
  return condition?.status === "False" ? (condition.message ?? "") : undefined;
}

/** No scheduler processes the pod: its schedulerName is not that of a running scheduler, or none runs. */
const notLookedAt: PodRule = (facts) => {
  const { object, now } = facts;
  const { spec, status, metadata } = object;
  if (spec.nodeName || conditionOf(status?.conditions, "PodScheduled") !== undefined) return undefined;
  const since = sinceTime(metadata.creationTimestamp);
  const name = spec.schedulerName ?? "default-scheduler";
  if (name !== "default-scheduler") {
    return {
      by: "explain",
      reason: "SchedulerUnknown",
      summary: `no scheduler named ${name} has processed it`,
      remedy: `Start a scheduler with a profile of that name, or leave schedulerName out of the pod.`,
      ...since,
    };
  }
  if (!isOlder(metadata.creationTimestamp, schedulerLooksMs, now)) {
    return { by: "explain", reason: "NotScheduledYet", summary: "the scheduler has not processed it yet", ...since };
  }
  return {
    by: "explain",
    reason: "SchedulerAway",
    summary: "no scheduler has processed it: kube-scheduler does not run or holds no lease",
    remedy: "Look at the log of kube-scheduler and at the lease kube-system/kube-scheduler.",
    ...since,
  };
};

interface Part {
  readonly count: number;
  readonly text: string;
}

/** The reasons in the scheduler's message: `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had taint {a: b}, that …`. */
function partsOfMessage(message: string): Part[] {
  const list = /^\d+\/\d+ nodes are available: (.*?)\.?(?: preemption: .*)?$/s.exec(message)?.[1];
  if (list === undefined) return [];
  return list
    .split(/, (?=\d+ )/)
    .map((part) => /^(\d+) (.*)$/s.exec(part))
    .filter((match) => match !== null)
    .map(([, count, text]) => ({ count: Number(count), text: text! }))
    .toSorted((a, b) => b.count - a.count);
}

interface Wording {
  readonly pattern: RegExp;
  readonly reason: string;
  readonly say: (match: RegExpExecArray, facts: Facts<Pod, PodFacts>, nodes: string) => string;
  readonly remedy: string;
  /** Selects the nodes whose state is the cause. */
  readonly follows?: (node: Node) => boolean;
}

/** Source: the failure texts of the scheduler's plugins */
const wordings: readonly Wording[] = [
  {
    pattern: /^Insufficient (.+)$/,
    reason: "InsufficientResources",
    say: ([, resource], facts, nodes) => `not enough ${resource} on ${nodes}: ${sumsOf(resource!, facts)}`,
    remedy: "Request less in the pod, free resources by deleting or scaling down other pods, or add a node.",
  },
  {
    pattern: /^Too many pods$/,
    reason: "TooManyPods",
    say: (_, __, nodes) => `${nodes} already ${nodes.startsWith("1 ") ? "holds" : "hold"} as many pods as allowed`,
    remedy: "Delete pods, add a node, or raise maxPods of the kubelets.",
  },
  {
    pattern: /^node\(s\) didn't match Pod's node affinity(?:\/selector)?$/,
    reason: "NodeSelectorMatchesNone",
    say: (_, facts, nodes) => `${selectorText(facts.object)} matches none of ${nodes}`,
    remedy: "Label a node accordingly (kubectl label node), or correct nodeSelector or node affinity of the pod.",
  },
  {
    pattern: /^node\(s\) had (?:untolerated )?taint \{node\.kubernetes\.io\/(not-ready|unreachable)[^}]*\}/,
    reason: "NodeNotReady",
    say: ([, key], _, nodes) => `${nodes} not ready (taint node.kubernetes.io/${key})`,
    remedy: "Make the node ready again: kubectl why node/<name>.",
    follows: (node) => (node.spec.taints ?? []).some(({ key }) => /node\.kubernetes\.io\/(not-ready|unreachable)/.test(key)),
  },
  {
    pattern: /^node\(s\) had (?:untolerated )?taint \{(node\.kubernetes\.io\/[\w-]+-(?:pressure|unavailable))[^}]*\}/,
    reason: "NodeUnderPressure",
    say: ([, key], _, nodes) => `${nodes} under pressure (taint ${key})`,
    remedy: "Relieve the node: kubectl why node/<name>.",
    follows: (node) => (node.spec.taints ?? []).some(({ key }) => /-(pressure|unavailable)$/.test(key)),
  },
  {
    pattern: /^node\(s\) had (?:untolerated )?taint \{([^:}]*): ?([^}]*)\}/,
    reason: "TaintNotTolerated",
    say: ([, key, value], _, nodes) => `taint ${value ? `${key}=${value}` : key} of ${nodes} is not tolerated`,
    remedy: "Add a toleration for it to the pod, or remove the taint (kubectl taint node <name> <key>-).",
  },
  {
    pattern: /^node\(s\) were unschedulable$/,
    reason: "NodeCordoned",
    say: (_, __, nodes) => `${nodes} cordoned`,
    remedy: "kubectl uncordon <node>",
    follows: (node) => node.spec.unschedulable === true,
  },
  {
    pattern: /^node\(s\) didn't have free ports for the requested pod ports$/,
    reason: "HostPortTaken",
    say: (_, { object }, nodes) => `host port ${hostPorts(object).join(", ")} is taken on ${nodes}`,
    remedy: "Use a Service instead of a host port, another port, or delete the pod that holds it.",
  },
  {
    pattern: /^node\(s\) didn't (?:match pod|satisfy existing pods) anti-affinity rules$/,
    reason: "PodAntiAffinity",
    say: (_, __, nodes) =>
      `pod anti-affinity: ${nodes} already ${nodes.startsWith("1 ") ? "runs" : "run"} a pod beside which it may not run`,
    remedy: "Add a node, make the anti-affinity a preference, or delete the other pod.",
  },
  {
    pattern: /^node\(s\) didn't match pod affinity rules$/,
    reason: "PodAffinity",
    say: (_, __, nodes) => `pod affinity: none of ${nodes} runs a pod that it must run beside`,
    remedy: "Start the pods that the affinity selects, or correct its labels or topologyKey.",
  },
  {
    pattern: /^node\(s\) didn't match pod topology spread constraints(.*)$/,
    reason: "TopologySpread",
    say: ([, more], __, nodes) => `topology spread constraints forbid ${nodes}${more ? ` ${oneLine(more)}` : ""}`,
    remedy: "Label the nodes with the topologyKey, raise maxSkew, or use whenUnsatisfiable: ScheduleAnyway.",
  },
  {
    pattern: /^node\(s\) had volume node affinity conflict$/,
    reason: "VolumeOnOtherNode",
    say: (_, __, nodes) => `its volume is bound to other nodes than ${nodes}`,
    remedy: "Free resources on the node that has the volume (kubectl get pv), or move the data.",
  },
  {
    pattern: /^node\(s\) didn't find available persistent volumes to bind$/,
    reason: "NoVolumeToBind",
    say: (_, __, nodes) => `no persistent volume that its claim could be bound to is reachable from ${nodes}`,
    remedy: "Create a persistent volume for the claim, or use a storage class with a provisioner.",
  },
  {
    pattern: /^node\(s\) did not have enough free storage$/,
    reason: "NotEnoughStorage",
    say: (_, __, nodes) => `not enough free storage on ${nodes} for its claim`,
    remedy: "Request less storage, or free some.",
  },
];

const hostPorts = ({ spec }: Pod): number[] =>
  (spec.containers ?? []).flatMap(({ ports = [] }) => ports.map(({ hostPort }) => hostPort ?? 0).filter((port) => port > 0));

function selectorText({ spec }: Pod): string {
  const selector = labelsText(spec.nodeSelector);
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return `node selector ${selector}`;
  const terms = (required.nodeSelectorTerms ?? []).map(({ matchExpressions = [], matchFields = [] }) =>
    [...matchExpressions, ...matchFields]
      .map(({ key, operator, values = [] }) => `${key} ${operator} ${values.join(",")}`.trim())
      .join(" and "),
  );
  const affinity = `required node affinity (${oneLine(terms.join(" or "), 160)})`;
  return selector === "" ? affinity : `node selector ${selector} with ${affinity}`;
}

/** The pod's request, and the largest amount that a node has. */
function sumsOf(resource: string, { object, related: { nodes } }: Facts<Pod, PodFacts>): string {
  const requested = quantityIn(podResources(object, "requests"), resource)?.toString() ?? "?";
  const all = (nodes ?? []).map(({ status }) => quantityIn(status?.allocatable ?? {}, resource)).filter((q) => q !== undefined);
  const most = all.toSorted((a, b) => b.cmp(a))[0];
  return most === undefined
    ? `it requests ${requested}`
    : `it requests ${requested}; the largest node has ${most.toString()} in all, for all pods`;
}

/** The scheduler has refused every node. */
const unschedulable: PodRule = (facts) => {
  const message = unschedulableMessage(facts);
  if (message === undefined || facts.object.spec.nodeName) return undefined;
  const since = conditionSince(facts);
  const { nodes, nodeRefs } = facts.related;
  if (/^0\/0 nodes are available/.test(message) || /no nodes available to schedule pods/.test(message)) {
    return { by: scheduler, reason: "NoNodes", summary: "the cluster has no nodes", remedy: "Start a kubelet.", ...since };
  }
  const parts = partsOfMessage(message);
  const [first] = parts;
  if (first === undefined) return { by: scheduler, reason: "Unschedulable", summary: oneLine(message), ...since };
  for (const wording of wordings) {
    const match =
      wording.pattern.exec(first.text.trim()) ?? wording.pattern.exec(first.text.replace(/, that the pod didn't tolerate$/, ""));
    if (match === null) continue;
    const others = parts.slice(1).map(({ count, text }) => `${plural(count, "node")}: ${text.replace(/^node\(s\) /, "")}`);
    const say = wording.say(match, facts, nodesText(first.count, wording));
    const follow = wording.follows && nodes?.flatMap((node, i) => (wording.follows?.(node) ? [nodeRefs[i]!] : []));
    return {
      by: scheduler,
      reason: wording.reason,
      summary: others.length === 0 ? say : `${say}; ${oneLine(others.join("; "), 200)}`,
      remedy: wording.remedy,
      ...since,
      ...(follow && { follow }),
    };
  }
  return { by: scheduler, reason: "Unschedulable", summary: oneLine(message), ...since };
};

const nodesText = (count: number, { follows }: Wording): string =>
  `${plural(count, "node")}${follows === undefined ? "" : count === 1 ? " is" : " are"}`;

export const schedulingRules: readonly PodRule[] = [claims, notLookedAt, unschedulable];

/** Why a pod is not on a given node: the first cause, and the others. */

import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podResources } from "@coxswain/apimachinery/quota/pod-resources";
import { quantityIn, type ResourceList } from "@coxswain/apimachinery/quota/resource-list";
import { matchesNode, matchesTerm } from "@coxswain/apimachinery/scheduling/node-selector";
import { Tolerations } from "@coxswain/apimachinery/scheduling/tolerations";
import { claimNameOf } from "./kinds/pod-facts.ts";
import { conditionOf, isSeen, labelsText, oneLine, type Problem, type Reader } from "./rule.ts";

interface NodeFacts {
  readonly pod: Pod;
  readonly node: Node;
  /** Pods on the node; undefined when the user may not list the pods of all namespaces. */
  readonly onNode: readonly Pod[] | undefined;
  /** The volumes of the pod's bound claims. */
  readonly volumes: readonly PersistentVolume[];
}

type NodeRule = (facts: NodeFacts) => Omit<Problem, "by"> | undefined;

/**
 * Reads the unfinished pods of the node, and the volumes of the pod's claims. Claims and volumes that the user may not read are
 * left out.
 */
export async function gatherNodeFacts(pod: Pod, node: Node, reader: Reader): Promise<NodeFacts> {
  const pods = await reader.list<Pod>("pods", "", "");
  const volumes: PersistentVolume[] = [];
  for (const claimed of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, claimed);
    if (name === undefined) continue;
    const claim = await reader.get<PersistentVolumeClaim>("persistentvolumeclaims", "", pod.metadata.namespace ?? "", name);
    if (!isSeen(claim) || !claim.spec.volumeName) continue;
    const volume = await reader.get<PersistentVolume>("persistentvolumes", "", "", claim.spec.volumeName);
    if (isSeen(volume)) volumes.push(volume);
  }
  const onNode = pods?.filter(
    ({ spec, status }) => spec.nodeName === node.metadata.name && status?.phase !== "Succeeded" && status?.phase !== "Failed",
  );
  return { pod, node, onNode, volumes };
}

const rules: readonly NodeRule[] = [
  ({ pod, node }) => {
    const there = pod.spec.nodeName;
    if (!there || there === node.metadata.name) return undefined;
    const why = conditionOf(pod.status?.conditions, "PodScheduled")?.status === "True" ? "was scheduled to" : "is bound to";
    return {
      reason: "OnOtherNode",
      summary: `it ${why} ${there}; a pod does not move`,
      remedy: "Delete the pod, so that its controller creates another one, which is scheduled again.",
    };
  },
  ({ node }) =>
    node.spec.unschedulable
      ? { reason: "NodeCordoned", summary: "the node is cordoned", remedy: `kubectl uncordon ${node.metadata.name}` }
      : undefined,
  ({ node }) => {
    const ready = conditionOf(node.status?.conditions, "Ready");
    if (ready?.status === "True") return undefined;
    return {
      reason: "NodeNotReady",
      summary: `the node is not ready: ${oneLine(ready?.message) || "its kubelet has not reported"}`,
      remedy: `kubectl why node/${node.metadata.name}`,
    };
  },
  ({ pod, node }) => {
    const taint = new Tolerations(pod.spec.tolerations).firstUntolerated(node.spec.taints ?? [], ["NoSchedule", "NoExecute"]);
    if (taint === undefined) return undefined;
    const text = `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;
    return {
      reason: "TaintNotTolerated",
      summary: `the pod does not tolerate the node's taint ${text}`,
      remedy: `Add a toleration to the pod, or remove the taint: kubectl taint node ${node.metadata.name} ${taint.key}-`,
    };
  },
  ({ pod, node }) => {
    if (matchesNode(pod, node)) return undefined;
    const selector = labelsText(pod.spec.nodeSelector);
    return {
      reason: "NodeSelectorMismatch",
      summary: `the pod's ${selector === "" ? "required node affinity" : `node selector ${selector}`} does not match the node's labels`,
      remedy: "Label the node accordingly, or correct nodeSelector or node affinity of the pod.",
    };
  },
  ({ pod, node, onNode }) => {
    const requests: ResourceList = { ...podResources(pod, "requests") };
    for (const [name, text] of Object.entries(requests)) {
      const wanted = typeof text === "string" ? Quantity.parse(text) : quantityIn(requests, name);
      const has = quantityIn(node.status?.allocatable ?? {}, name);
      if (wanted === undefined || wanted.isZero) continue;
      if (has === undefined) return lacking(`the node has no ${name}, of which the pod requests ${wanted}`);
      if (wanted.cmp(has) > 0) return lacking(`the pod requests ${wanted} ${name}, the node has ${has} in all`);
      const others = (onNode ?? []).filter(({ metadata }) => metadata.uid !== pod.metadata.uid);
      const used = others.reduce((sum, one) => sum + (quantityIn(podResources(one, "requests"), name)?.nanos ?? 0n), 0n);
      const free = new Quantity(has.nanos - used, has.format);
      if (wanted.cmp(free) > 0) return lacking(`the pod requests ${wanted} ${name}, the node has ${free} free of ${has}`);
    }
    const limit = quantityIn(node.status?.allocatable ?? {}, "pods");
    if (limit !== undefined && onNode !== undefined && BigInt(onNode.length) * 10n ** 9n >= limit.nanos)
      return lacking(`the node holds ${onNode.length} pods, as many as it may`);
    return undefined;
  },
  ({ pod, onNode }) => {
    const ports = hostPortsOf(pod);
    const taken = (onNode ?? []).flatMap((one) => (one.metadata.uid === pod.metadata.uid ? [] : hostPortsOf(one)));
    const clash = ports.find((port) => taken.includes(port));
    if (clash === undefined) return undefined;
    return {
      reason: "HostPortTaken",
      summary: `host port ${clash} is taken on the node`,
      remedy: "Use a Service instead of a host port, or another port.",
    };
  },
  ({ node, volumes }) => {
    const elsewhere = volumes.find(({ spec }) => {
      const terms = spec.nodeAffinity?.required?.nodeSelectorTerms;
      return terms !== undefined && !terms.some((term) => matchesTerm(term, node));
    });
    if (elsewhere === undefined) return undefined;
    return {
      reason: "VolumeOnOtherNode",
      summary: `volume ${elsewhere.metadata.name} of its claim ${elsewhere.spec.claimRef?.name} can only be used on other nodes`,
      remedy: "Move the data to a volume that the node reaches.",
    };
  },
];

const lacking = (summary: string): Omit<Problem, "by"> => ({
  reason: "InsufficientResources",
  summary,
  remedy: "Request less in the pod, free resources on the node, or let it run elsewhere.",
});

const hostPortsOf = ({ spec }: Pod): string[] =>
  [...(spec.containers ?? [])].flatMap(({ ports = [] }) =>
    ports.filter(({ hostPort }) => hostPort).map(({ hostPort, protocol = "TCP" }) => `${hostPort}/${protocol}`),
  );

/** @returns the causes, most important first; empty when the pod is on the node or could be */
export function nodeProblems(facts: NodeFacts): Omit<Problem, "by">[] {
  if (facts.pod.spec.nodeName === facts.node.metadata.name) return [];
  const found = rules.map((rule) => rule(facts)).filter((problem) => problem !== undefined);
  if (found.length > 0) return found;
  const elsewhere = unschedulable(facts.pod);
  return elsewhere === undefined ? [] : [elsewhere];
}

/** A cause that no rule about the node detects, such as an unbound claim: the scheduler's message in the pod's condition. */
function unschedulable({ metadata, status }: Pod): Omit<Problem, "by"> | undefined {
  const scheduled = conditionOf(status?.conditions, "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined;
  return {
    reason: "Unschedulable",
    summary: `the scheduler found no node for the pod: ${oneLine(scheduled.message)}`,
    remedy: `kubectl why pod/${metadata.name}`,
  };
}

/** Used when no cause is found: the scheduler may have preferred another node, or has not processed the pod yet. */
export const couldBeThere: Omit<Problem, "by"> = {
  reason: "NothingInTheWay",
  summary: "nothing prevents the pod from running on the node: the scheduler has not decided yet",
};

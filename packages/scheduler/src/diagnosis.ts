import { objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { Description } from "@coxswain/apimachinery/decisions/decision-log";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { nodes as nodesRef, pods as podsRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { cloneNodeInfo, type NodeInfo, type PodInfo, removePod } from "./cache/node-info.ts";
import type { ClusterSnapshot } from "./cache/snapshot.ts";
import { type CycleState, cloneState } from "./framework/cycle-state.ts";
import type { Nominator } from "./framework/nominator.ts";
import type { Status } from "./framework/status.ts";
import { insufficient } from "./plugins/node-resources-fit.ts";
import { NodeFilter, type Profile, runPreFilter } from "./profile.ts";

/** Machine-readable reasons by the plugin that rejected the pod. */
const reasons: Readonly<Record<string, string>> = {
  NodeResourcesFit: "InsufficientResources",
  TaintToleration: "UntoleratedTaint",
  NodeUnschedulable: "NodesCordoned",
  NodeName: "NodeNameMismatch",
  NodeAffinity: "NodeAffinityMismatch",
  NodePorts: "HostPortTaken",
  InterPodAffinity: "PodAffinityMismatch",
  PodTopologySpread: "TopologySpread",
  VolumeBinding: "VolumesNotBound",
  VolumeZone: "VolumeInOtherZone",
  VolumeRestrictions: "VolumeInUse",
  NodeVolumeLimits: "VolumeLimitReached",
};

/** @param plugins that refused nodes in the last cycle */
export function reasonOf(plugins: ReadonlySet<string>): string {
  const [only, ...others] = plugins;
  if (only === undefined || others.length > 0) return "NoNodeFits";
  return reasons[only] ?? "NoNodeFits";
}

/** Limit of the nodes that are reported individually. */
const maxNodesReported = 20;
/** Limit of the nodes for which the removal of single pods is tried, and of the pods tried on each. */
const mostNodesTried = 10;
const mostPodsTried = 20;

interface Refusal {
  readonly node: NodeInfo;
  readonly status: Status;
}

/**
 * Evaluates the filters for the pod again, against the current snapshot, and reports for each node which plugin rejects it, how
 * much of which resource is missing, and what would have to change. Plain summary and remedy name no other object, because not
 * every user may read nodes.
 */
export function diagnose(profile: Profile, pod: PodInfo, snapshot: ClusterSnapshot, nominator: Nominator): Description {
  if (snapshot.nodes.length === 0) return { summary: "there are no nodes in the cluster", remedy: "add a node" };
  const state: CycleState = new Map();
  const all = snapshot.nodes.length;
  const count = (nodes: number): string => (all === 1 ? "the only node" : `${nodes} of ${all} nodes`);
  let refusals: Refusal[];
  try {
    const everywhere = runPreFilter(profile, state, pod, snapshot);
    if (everywhere !== undefined)
      return { summary: everywhere.reasons.join(", "), details: { plugin: everywhere.plugin, nodes: all } };
    const filter = new NodeFilter(profile, state, pod, nominator);
    refusals = snapshot.nodes.flatMap((node) => {
      const status = filter.refusal(node);
      return status === undefined ? [] : [{ node, status }];
    });
  } catch (err) {
    return { summary: messageOf(err) };
  }
  const fitting = all - refusals.length;
  const parts = fitting > 0 ? [`fits ${count(fitting)} now, and will be tried again`] : [];
  const byPlugin = Map.groupBy(refusals, ({ status }) => status.plugin ?? "");
  for (const [plugin, refused] of byPlugin) {
    if (plugin === "NodeResourcesFit") parts.push(...shortages(pod, refused, all));
    else if (plugin === "TaintToleration") parts.push(...taintsOf(pod, refused, count));
    else for (const [text, times] of countedReasons(refused)) parts.push(`${text}: ${count(times)}`);
  }
  const blocking = fitting > 0 ? undefined : blockingPod(profile, state, pod, refusals, nominator);
  const said = (more: string | undefined): string => [...parts, ...(more === undefined ? [] : [more])].join("; ");
  const nameOf = (): string => `${blocking?.pod.name} of namespace ${blocking?.pod.namespace} on node ${blocking?.node.name}`;
  const remedy = remedyFor([...byPlugin.keys()]);
  return {
    summary: said(blocking && `would fit if pod ${nameOf()} were gone`),
    ...(blocking !== undefined && { plain: said("would fit if one other pod were gone") }),
    details: {
      nodes: all,
      fitting,
      refused: refusals.slice(0, maxNodesReported).map(({ node, status }) => ({
        ...{ node: node.name, plugin: status.plugin, reasons: status.reasons },
        ...(status.plugin === "NodeResourcesFit" && { missing: missing(pod, node) }),
      })),
      ...(blocking !== undefined && { fitsWithout: blocking }),
    },
    ...(blocking !== undefined && { related: [blocking.pod, blocking.node] }),
    ...(remedy !== undefined && { remedy }),
  };
}

function remedyFor(plugins: readonly string[]): string | undefined {
  const remedies: Readonly<Record<string, string>> = {
    NodeResourcesFit: "lower the requests, remove other pods, or add a node",
    TaintToleration: "remove the taint, or tolerate it in the pod's spec",
    NodeUnschedulable: "kubectl uncordon a node",
    NodeAffinity: "label a node as the pod's nodeSelector or affinity asks, or change these",
  };
  return plugins.map((plugin) => remedies[plugin]).find((remedy) => remedy !== undefined);
}

function countedReasons(refused: readonly Refusal[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { status } of refused) for (const reason of status.reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return counts;
}

/** `needs 300m more CPU on any of 3 nodes`: by resource, the smallest amount that any of the nodes lacks. */
function shortages(pod: PodInfo, refused: readonly Refusal[], all: number): string[] {
  const least = new Map<string, { amount: number; nodes: number }>();
  for (const { node } of refused) {
    for (const [resource, amount] of Object.entries(missingAmounts(pod, node))) {
      const before = least.get(resource);
      least.set(resource, { amount: Math.min(amount, before?.amount ?? amount), nodes: (before?.nodes ?? 0) + 1 });
    }
  }
  return Array.from(least, ([resource, { amount, nodes }]) => {
    const where = all === 1 ? "on the only node" : `on any of ${nodes} nodes`;
    return `needs ${amountText(resource, amount)} more ${resource === "cpu" ? "CPU" : resource} ${where}`;
  });
}

function missing(pod: PodInfo, node: NodeInfo): Record<string, string> {
  return Object.fromEntries(
    Object.entries(missingAmounts(pod, node)).map(([resource, amount]) => [resource, amountText(resource, amount)]),
  );
}

/** By resource, the amount by which the pod's requests exceed the node's free amount; cpu in millicores. */
function missingAmounts(pod: PodInfo, node: NodeInfo): Record<string, number> {
  const { requests } = pod;
  const { allocatable, requested } = node;
  const lacks: Record<string, number> = {};
  for (const text of insufficient(pod, node)) {
    const resource = text.replace("Insufficient ", "");
    if (text === "Too many pods") lacks["pods"] = node.pods.size + 1 - allocatable.pods;
    else if (resource === "cpu") lacks[resource] = requests.milliCpu + requested.milliCpu - allocatable.milliCpu;
    else if (resource === "memory") lacks[resource] = requests.memory + requested.memory - allocatable.memory;
    else if (resource === "ephemeral-storage")
      lacks[resource] = requests.ephemeralStorage + requested.ephemeralStorage - allocatable.ephemeralStorage;
    else {
      const has = (allocatable.scalars.get(resource) ?? 0) - (requested.scalars.get(resource) ?? 0);
      lacks[resource] = (requests.scalars.get(resource) ?? 0) - has;
    }
  }
  return lacks;
}

function amountText(resource: string, amount: number): string {
  if (resource === "cpu") return Quantity.parse(`${amount}m`).toString();
  if (resource !== "memory" && resource !== "ephemeral-storage") return String(amount);
  const mebi = amount / 2 ** 20;
  return mebi >= 1 ? `${Math.ceil(mebi)}Mi` : String(amount);
}

function taintsOf(pod: PodInfo, refused: readonly Refusal[], count: (nodes: number) => string): string[] {
  const counts = new Map<string, number>();
  for (const { node } of refused) {
    const taint = pod.tolerations.firstUntolerated(node.taints, ["NoSchedule", "NoExecute"]);
    if (taint === undefined) continue;
    const text = `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return Array.from(counts, ([taint, nodes]) => `does not tolerate the taint ${taint} of ${count(nodes)}`);
}

/** A pod whose removal would make the waiting pod fit its node, tried from the lowest priority on; undefined when there is none. */
function blockingPod(profile: Profile, state: CycleState, pod: PodInfo, refusals: readonly Refusal[], nominator: Nominator) {
  const hopeful = refusals.filter(({ status }) => status.code === "Unschedulable").slice(0, mostNodesTried);
  for (const { node } of hopeful) {
    const others = [...node.pods.values()].sort((a, b) => (a.pod.spec.priority ?? 0) - (b.pod.spec.priority ?? 0));
    for (const other of others.slice(0, mostPodsTried)) {
      const trialNode = cloneNodeInfo(node);
      const trialState = cloneState(state);
      const filter = new NodeFilter(profile, trialState, pod, nominator);
      removePod(trialNode, other.pod.metadata.uid ?? "");
      for (const plugin of profile.at.preFilter) plugin.removePod?.(trialState, pod, other, trialNode);
      if (filter.refusal(trialNode) !== undefined) continue;
      return { pod: objectRef(podsRef, other.pod), node: objectRef(nodesRef, node.node) };
    }
  }
  return undefined;
}

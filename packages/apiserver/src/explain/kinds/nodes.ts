/** Rules for Nodes. */
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { conditionOf, detail, type Rule, rulesFor, sinceTime } from "../rule.ts";

const longestMessage = 160;

const nodeRules: Rule<Node, undefined>[] = [
  ({ object: { status, metadata } }) => {
    const ready = conditionOf(status?.conditions, "Ready");
    const since = sinceTime(ready?.lastTransitionTime ?? metadata.creationTimestamp);
    if (ready === undefined || ready.reason === "NodeStatusNeverUpdated") {
      return {
        by: "node-lifecycle-controller",
        reason: "KubeletNeverCame",
        summary: "no kubelet has ever reported its status",
        remedy: "Start a kubelet with this node name (--hostname-override), or delete the node object.",
        ...since,
      };
    }
    if (ready.status === "Unknown") {
      return {
        by: "node-lifecycle-controller",
        reason: ready.reason ?? "NodeStatusUnknown",
        summary: `its kubelet stopped reporting at ${ready.lastHeartbeatTime ?? "an unknown time"}`,
        remedy:
          "See whether the machine is up, its kubelet runs (its log) and reaches the API server. If it will not come back: kubectl delete node.",
        ...since,
      };
    }
    if (ready.status === "True") return undefined;
    const network = /network plugin|cni/i.test(ready.message ?? "");
    return {
      by: "kubelet",
      reason: ready.reason ?? "KubeletNotReady",
      summary: `its kubelet reports that it is not ready${detail(ready.message)}`,
      remedy: network
        ? "Install or repair the network plugin of the node (its configuration in /etc/cni/net.d)."
        : "Look at the log of its kubelet and of the container runtime.",
      ...since,
    };
  },
  ({ object: { status } }) => {
    const pressure = (status?.conditions ?? []).find(
      ({ type, status: state }) => state === "True" && /^(Disk|Memory|PID)Pressure$/.test(type),
    );
    if (pressure === undefined) return undefined;
    const what = { DiskPressure: "disk space", MemoryPressure: "memory", PIDPressure: "process numbers" }[
      pressure.type as "DiskPressure" // cast: one of the three keys, by the expression above
    ];
    return {
      by: "kubelet",
      reason: pressure.type,
      summary: `is short of ${what} (${pressure.type})${detail(pressure.message, longestMessage)}: it takes no more pods and evicts some`,
      remedy:
        pressure.type === "DiskPressure"
          ? "Free disk space on the node (images, logs, emptyDir volumes), or enlarge the disk."
          : "Give pods requests and limits that cover their use, move some to other nodes, or enlarge the node.",
      ...sinceTime(pressure.lastTransitionTime),
    };
  },
  ({ object: { status } }) => {
    const network = conditionOf(status?.conditions, "NetworkUnavailable");
    if (network?.status !== "True") return undefined;
    return {
      by: "explain",
      reason: network.reason ?? "NetworkUnavailable",
      summary: `its network is not set up (NetworkUnavailable)${detail(network.message, longestMessage)}`,
      remedy: "Look at the network plugin or the route controller that sets this condition.",
      ...sinceTime(network.lastTransitionTime),
    };
  },
  ({ object: { spec, metadata } }) => {
    if (spec.unschedulable !== true) return undefined;
    const taint = spec.taints?.find(({ key }) => key === "node.kubernetes.io/unschedulable");
    return {
      by: "explain",
      reason: "NodeCordoned",
      summary: "is cordoned: no new pods are scheduled to it",
      remedy: `kubectl uncordon ${metadata.name}`,
      ...sinceTime(taint?.timeAdded),
    };
  },
  ({ object: { spec, metadata } }) => {
    // Taints for node roles are intended and not reported.
    const taint = spec.taints?.find(
      ({ key, effect }) => effect !== "PreferNoSchedule" && !key.startsWith("node-role.kubernetes.io/"),
    );
    if (taint === undefined) return undefined;
    const text = `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;
    return {
      by: "explain",
      reason: "NodeTainted",
      summary: `taint ${text} repels pods that do not tolerate it${taint.effect === "NoExecute" ? ", and evicts those that run" : ""}`,
      remedy: `kubectl taint node ${metadata.name} ${taint.key}-`,
      ...sinceTime(taint.timeAdded),
    };
  },
];

export const nodeKind = rulesFor<Node, undefined>({ gather: async () => undefined, rules: nodeRules });

import { manifest, pod, type Situation } from "./situation.ts";

/** The name of the cluster's only real node. */
export const realNode = "NODE";

const made = (name: string, conditions: readonly object[]): Pick<Situation, "objects" | "steps" | "undo" | "args"> => ({
  objects: [manifest("v1", "Node", `why-${name}`)],
  // The node's pods and addresses are of no interest: nothing runs there.
  steps: conditions.length === 0 ? [] : [{ of: `/api/v1/nodes/why-${name}`, status: { conditions } }],
  args: [`node/why-${name}`],
  undo: [["delete", "node", `why-${name}`]],
});

const at = (type: string, status: string, reason: string, message: string, heartbeat = new Date().toISOString()): object => ({
  type,
  status,
  reason,
  message,
  lastHeartbeatTime: heartbeat.replace(/\.\d+Z/, "Z"),
  lastTransitionTime: heartbeat.replace(/\.\d+Z/, "Z"),
});

/** Nodes. Each is made and undone before the next, since pods of other situations would see it. */
export const nodeSituations: readonly Situation[] = [
  { name: "node-empty", ...made("node-empty", []), phrase: /no kubelet has ever reported its status/ },
  {
    name: "node-silent",
    ...made("node-silent", [at("Ready", "True", "KubeletReady", "ready", "2026-01-01T00:00:00Z")]),
    phrase: /its kubelet stopped reporting at 2026-01-01T00:00:00Z/,
  },
  {
    name: "node-network",
    ...made("node-network", [
      at("Ready", "False", "KubeletNotReady", "container runtime network not ready: cni plugin not initialized"),
    ]),
    phrase: /its kubelet reports that it is not ready: container runtime network not ready: cni plugin not initialized/,
  },
  {
    name: "node-disk",
    ...made("node-disk", [
      at("Ready", "True", "KubeletReady", "ready"),
      at("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
    ]),
    phrase: /is short of disk space \(DiskPressure\)/,
  },
  {
    name: "node-cordoned",
    objects: [],
    steps: [["cordon", realNode]],
    args: [`node/${realNode}`],
    phrase: /is cordoned: no new pods are scheduled to it/,
    undo: [["uncordon", realNode]],
  },
  {
    name: "node-cordoned-pod",
    objects: [],
    steps: [
      ["cordon", realNode],
      ["run", "web", "--image=busybox:1.35", "--restart=Never", "--", "true"],
    ],
    args: ["pod/web"],
    phrase: /^Cause: node\/\S+: is cordoned/,
    undo: [["uncordon", realNode]],
  },
  {
    name: "node-taint",
    objects: [],
    steps: [["taint", "node", realNode, "why.example.com/mine=yes:NoSchedule"], { make: pod("web") }],
    args: ["not", "web", realNode],
    phrase: /the pod does not tolerate the node's taint why\.example\.com\/mine=yes:NoSchedule/,
    undo: [["taint", "node", realNode, "why.example.com/mine-"]],
  },
];

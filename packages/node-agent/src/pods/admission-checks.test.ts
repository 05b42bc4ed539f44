import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { admitPod, forbiddenSysctl, foreignSystem } from "./admission-checks.ts";

const requests = (cpu: string): Partial<PodSpec> => ({ containers: [aContainer({ resources: { requests: { cpu } } })] });
const port = (hostPort: number, hostIP?: string): Partial<PodSpec> => ({
  containers: [aContainer({ ports: [{ containerPort: 80, hostPort, ...(hostIP === undefined ? {} : { hostIP }) }] })],
});
const affinity = (operator: string, values?: string[]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator, ...(values === undefined ? {} : { values }) }] }],
      },
    },
  },
});
const sysctl = (name: string, more: Partial<PodSpec> = {}): Partial<PodSpec> => ({
  ...more,
  securityContext: { sysctls: [{ name, value: "1" }] },
});

interface Case {
  name: string;
  spec?: Partial<PodSpec>;
  annotations?: Record<string, string>;
  others?: NodePod[];
  taints?: Taint[];
  want: string | undefined;
}

const noExecute: Taint[] = [{ key: "k", value: "v", effect: "NoExecute" }];
const cases: Case[] = [
  { name: "fits", spec: requests("1"), want: undefined },
  {
    name: "requests more cpu than is free",
    spec: requests("1500m"),
    others: [aNodePod(requests("1"))],
    want: "OutOfcpu: Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
  },
  {
    name: "requests no cpu, and more memory than the node has",
    spec: { containers: [aContainer({ resources: { requests: { cpu: "0", "example.com/x": "0", memory: "1Ti" } } })] },
    want: "OutOfmemory: Node didn't have enough resource: memory, requested: 1099511627776, used: 0, capacity: 4294967296",
  },
  {
    name: "requests no cpu of a node on which more is requested than it has",
    spec: { containers: [aContainer({ resources: { requests: { cpu: "0" } } })] },
    others: [aNodePod(requests("3"))],
    want: undefined,
  },
  {
    name: "exceeds the maximum number of pods",
    others: [aNodePod(), aNodePod(), aNodePod()],
    want: "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  },
  {
    name: "has an init container with a larger request",
    spec: { ...requests("1"), initContainers: [aContainer({ name: "i", resources: { requests: { cpu: "3" } } })] },
    want: "OutOfcpu: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000",
  },
  {
    name: "requests a resource that the node does not have",
    spec: { containers: [aContainer({ resources: { requests: { "example.com/x": "1" } } })] },
    want: undefined,
  },
  ...["ephemeral-storage", "hugepages-2Mi"].map((resource) => ({
    name: `requests ${resource}, of which the node reports none`,
    spec: { containers: [aContainer({ resources: { requests: { [resource]: "2Mi" } } })] },
    want: `OutOf${resource}: Node didn't have enough resource: ${resource}, requested: 2097152, used: 0, capacity: 0`,
  })),
  { name: "selects another node", spec: { nodeSelector: { disk: "ssd" } }, want: "NodeAffinity: Predicate NodeAffinity failed" },
  { name: "selects this node", spec: { nodeSelector: { disk: "hdd" } }, want: undefined },
  { name: "has affinity to this node", spec: affinity("In", ["hdd", "ssd"]), want: undefined },
  { name: "has affinity to others", spec: affinity("NotIn", ["hdd"]), want: "NodeAffinity: Predicate NodeAffinity failed" },
  { name: "requires a label that the node has", spec: affinity("Exists"), want: undefined },
  {
    name: "requires the absence of a label that the node has",
    spec: affinity("DoesNotExist"),
    want: "NodeAffinity: Predicate NodeAffinity failed",
  },
  { name: "is bound to another node", spec: { nodeName: "n2" }, want: "NodeName: Predicate NodeName failed" },
  {
    name: "has a host port in use",
    spec: port(80),
    others: [aNodePod(port(80, "10.0.0.1"))],
    want: "NodePorts: Predicate NodePorts failed",
  },
  ...["::", "", "0.0.0.0"].map((hostIP) => ({
    name: `has a host port in use, and wants it at ${hostIP || "any address"}`,
    spec: port(80, hostIP),
    others: [aNodePod(port(80, "10.0.0.1"))],
    want: "NodePorts: Predicate NodePorts failed",
  })),
  {
    name: "has a host port at an address, of which another pod has all",
    spec: port(80, "10.0.0.2"),
    others: [aNodePod(port(80, "10.0.0.1")), aNodePod(port(80))],
    want: "NodePorts: Predicate NodePorts failed",
  },
  {
    name: "has a host port in use only at another address",
    spec: port(80, "10.0.0.2"),
    others: [aNodePod(port(80, "10.0.0.1"))],
    want: undefined,
  },
  { name: "does not tolerate a taint", taints: noExecute, want: "TaintToleration: Predicate TaintToleration failed" },
  {
    name: "does not tolerate a taint that only keeps it from being scheduled",
    taints: [
      { key: "k", effect: "NoSchedule" },
      { key: "k", effect: "PreferNoSchedule" },
    ],
    want: undefined,
  },
  { name: "tolerates the taint", taints: noExecute, spec: { tolerations: [{ key: "k", operator: "Exists" }] }, want: undefined },
  {
    name: "tolerates another value",
    taints: noExecute,
    spec: { tolerations: [{ key: "k", value: "w" }] },
    want: "TaintToleration: Predicate TaintToleration failed",
  },
  {
    name: "is static, whatever the taint",
    taints: noExecute,
    annotations: { [configSourceAnnotation]: "file" },
    want: undefined,
  },
  {
    name: "is critical, and does not tolerate a taint",
    taints: noExecute,
    spec: { priority: 2_000_001_000 },
    want: "TaintToleration: Predicate TaintToleration failed",
  },
  { name: "sets a safe sysctl", spec: sysctl("net.ipv4.tcp_syncookies"), want: undefined },
  { name: "sets a safe sysctl, written with slashes", spec: sysctl("net/ipv4/tcp_syncookies"), want: undefined },
  {
    name: "sets an unsafe sysctl",
    spec: sysctl("kernel.msgmax"),
    want: 'SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted',
  },
  { name: "sets an unsafe sysctl that is allowed here", spec: sysctl("net.core.somaxconn"), want: undefined },
  {
    name: "sets a sysctl of the host's network",
    spec: sysctl("net.core.somaxconn", { hostNetwork: true }),
    want: 'SysctlForbidden: forbidden sysctl: "net.core.somaxconn" not allowed with host net enabled',
  },
];

for (const { name, spec = {}, annotations = {}, others = [], taints = [], want } of cases) {
  test(`a pod that ${name} is ${want === undefined ? "admitted" : "rejected"}`, () => {
    const pod = aNodePod(spec, { annotations });
    const node = { name: "n1", metadata: { labels: { disk: "hdd" } }, spec: { taints } };
    const allocatable = { cpu: "2", memory: "4Gi", pods: "3" };
    const rejection = forbiddenSysctl(pod, ["net.core.*"]) ?? admitPod({ pod, others, node, allocatable });
    assert.equal(rejection === undefined ? undefined : `${rejection.reason}: ${rejection.message}`, want);
  });
}

for (const { name, pod, want } of [
  { name: "does not name an operating system", pod: aNodePod(), want: undefined },
  {
    name: "is for Linux",
    pod: aNodePod({ os: { name: "linux" } }, { labels: { "kubernetes.io/os": "linux" } }),
    want: undefined,
  },
  {
    name: "is labelled for another system",
    pod: aNodePod({}, { labels: { "kubernetes.io/os": "windows" } }),
    want: "PodOSSelectorNodeLabelDoesNotMatch",
  },
  { name: "is for another system", pod: aNodePod({ os: { name: "windows" } }), want: "PodOSNotSupported" },
]) {
  test(`a pod that ${name} passes the node's checks: ${want === undefined}`, () =>
    assert.equal(foreignSystem(pod)?.reason, want));
}

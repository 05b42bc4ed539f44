import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { gatherNodeFacts, nodeProblems } from "./not-there.ts";
import type { Reader } from "./rule.ts";
import { stored } from "./testing.ts";

const pod = (spec: object = {}, name = "p"): Pod =>
  stored("v1", "Pod", name, { spec: { containers: [{ name: "main" }], ...spec } }) as unknown as Pod;
const refused = (spec: object, status = "False"): Pod => {
  const message = "0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims.";
  const conditions = [{ type: "PodScheduled", status, reason: "Unschedulable", message }];
  return { ...pod(spec), status: { conditions } } as Pod;
};
const node = (spec: object = {}, ready = "True"): Node =>
  stored("v1", "Node", "n1", {
    spec,
    status: { allocatable: { cpu: "2", pods: "3" }, conditions: [{ type: "Ready", status: ready, message: "away" }] },
  }) as unknown as Node;
const cpu = (amount: string, more: object = {}): object => ({
  containers: [{ name: "main", resources: { requests: { cpu: amount } } }],
  ...more,
});

for (const { name, of, on, others = [], says } of [
  { name: "it is there", of: pod({ nodeName: "n1" }), on: node({ unschedulable: true }), says: [] },
  { name: "nothing in the way", of: pod(cpu("1")), on: node(), says: [] },
  {
    name: "a cause that is not the node's",
    of: refused({}),
    on: node(),
    says: [/found no node .*unbound immediate PersistentVolumeClaims/],
  },
  { name: "an earlier refusal of a pod that was bound since", of: refused({}, "True"), on: node(), says: [] },
  { name: "the node's own cause before the scheduler's", of: refused({}), on: node({ unschedulable: true }), says: [/cordoned/] },
  { name: "elsewhere", of: pod({ nodeName: "n2" }), on: node(), says: [/n2; a pod does not move/] },
  { name: "cordoned", of: pod(), on: node({ unschedulable: true }), says: [/cordoned/] },
  { name: "not ready", of: pod(), on: node({}, "False"), says: [/not ready: away/] },
  {
    name: "taint",
    of: pod(),
    on: node({ taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }] }),
    says: [/gpu=yes:NoSchedule/],
  },
  { name: "a taint that only repels", of: pod(), on: node({ taints: [{ key: "a", effect: "PreferNoSchedule" }] }), says: [] },
  {
    name: "the second taint",
    of: pod({ tolerations: [{ key: "gpu", operator: "Exists" }] }),
    on: node({
      taints: [
        { key: "gpu", effect: "NoSchedule" },
        { key: "old", effect: "NoExecute" },
      ],
    }),
    says: [/the node's taint old:NoExecute/],
  },
  {
    name: "required node affinity",
    of: pod({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "Exists" }] }],
          },
        },
      },
    }),
    on: node(),
    says: [/^the pod's required node affinity does not match the node's labels$/],
  },
  {
    name: "a node that has never reported",
    of: pod(),
    on: { ...node(), status: {} },
    says: [/^the node is not ready: its kubelet has not reported$/],
  },
  {
    name: "a request of nothing, and the second resource that is too much",
    of: pod({ containers: [{ name: "main", resources: { requests: { "example.com/gpu": "0", memory: "1Gi" } } }] }),
    on: node(),
    says: [/^the node has no memory, of which the pod requests 1Gi$/],
  },
  { name: "selector", of: pod({ nodeSelector: { disk: "ssd" } }), on: node(), says: [/node selector disk=ssd/] },
  { name: "more than the node has", of: pod(cpu("3")), on: node(), says: [/requests 3 cpu, the node has 2 in all/] },
  {
    name: "more than is free",
    of: pod(cpu("1500m")),
    on: node(),
    others: [pod(cpu("1"), "q")],
    says: [/1500m cpu, the node has 1 free of 2/],
  },
  {
    name: "a resource that the node does not have",
    of: pod({ containers: [{ name: "main", resources: { requests: { "example.com/gpu": "1" } } }] }),
    on: node(),
    says: [/no example.com\/gpu/],
  },
  {
    name: "its own port and requests, when a list of the node's pods has it",
    of: pod({ ...cpu("2"), containers: [{ name: "main", ports: [{ hostPort: 80 }] }] }),
    on: node(),
    others: [pod({ ...cpu("2"), containers: [{ name: "main", ports: [{ hostPort: 80 }] }] })],
    says: [],
  },
  {
    name: "a port that is taken for another protocol",
    of: pod({ containers: [{ name: "main", ports: [{ hostPort: 80, protocol: "UDP" }] }] }),
    on: node(),
    others: [pod({ containers: [{ name: "main", ports: [{ hostPort: 80 }] }] }, "q")],
    says: [],
  },
  {
    name: "the second container's port",
    of: pod({
      containers: [
        { name: "a", ports: [{ containerPort: 80 }] },
        { name: "b", ports: [{ containerPort: 1 }, { hostPort: 81 }] },
      ],
    }),
    on: node(),
    others: [pod({ containers: [{ name: "main", ports: [{ containerPort: 80 }, { hostPort: 81 }] }] }, "q")],
    says: [/host port 81\/TCP/],
  },
  { name: "all that is free", of: pod(cpu("1")), on: node(), others: [pod(cpu("1"), "q")], says: [] },
  { name: "the last place", of: pod(), on: node(), others: ["a", "b"].map((one) => pod({}, one)), says: [] },
  {
    name: "where it was scheduled to",
    of: refused({ nodeName: "n2" }, "True"),
    on: node(),
    says: [/it was scheduled to n2/],
  },
  { name: "pods", of: pod(), on: node(), others: ["a", "b", "c"].map((one) => pod({}, one)), says: [/holds 3 pods/] },
  {
    name: "two reasons, the first cause first",
    of: pod({ nodeSelector: { disk: "ssd" }, containers: [{ name: "main", ports: [{ hostPort: 80 }] }] }),
    on: node(),
    others: [pod({ containers: [{ name: "main", ports: [{ hostPort: 80 }] }] }, "q")],
    says: [/disk=ssd/, /host port 80\/TCP is taken/],
  },
]) {
  test(`why a pod is not on a node: ${name}`, () => {
    const found = nodeProblems({ pod: of, node: on, onNode: others, volumes: [] });
    assert.equal(found.length, says.length, JSON.stringify(found));
    for (const [i, pattern] of says.entries()) assert.match(found[i]?.summary ?? "", pattern);
  });
}

for (const { name, volume, claim } of [
  { name: "a claim", volume: { persistentVolumeClaim: { claimName: "data" } }, claim: "data" },
  { name: "an ephemeral volume", volume: { ephemeral: {} }, claim: "p-v" },
]) {
  test(`a pod is not on a node that the second volume, of ${name}, cannot be used on`, async () => {
    const values = (value: string): object => ({
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: [value] }] }] },
    });
    const objects = new Map<string, object>([
      ["persistentvolumeclaims/here", { metadata: {}, spec: { volumeName: "pv-1" } }],
      ["persistentvolumes/pv-1", { metadata: { name: "pv-1" }, spec: { nodeAffinity: values("own") } }],
      [`persistentvolumeclaims/${claim}`, { metadata: {}, spec: { volumeName: "pv-2" } }],
      [
        "persistentvolumes/pv-2",
        { metadata: { name: "pv-2" }, spec: { nodeAffinity: values("other"), claimRef: { name: claim } } },
      ],
    ]);
    const reader = {
      list: async () => [],
      get: async (resource: string, _: string, __: string, wanted: string) => objects.get(`${resource}/${wanted}`) ?? "missing",
    } as unknown as Reader;
    const volumes = [{ name: "w", persistentVolumeClaim: { claimName: "here" } }, { name: "x" }, { name: "v", ...volume }];
    const on = node();
    on.metadata.labels = { disk: "own" };
    const [problem, ...more] = nodeProblems(await gatherNodeFacts(pod({ volumes }), on, reader));
    assert.deepEqual([problem?.reason, more], ["VolumeOnOtherNode", []]);
    assert.match(problem?.summary ?? "", new RegExp(`volume pv-2 of its claim ${claim} can only`));
  });
}

test("the pods of a node that count are those that are there and have not ended", async () => {
  const there = (name: string, phase: string, nodeName = "n1"): Pod => ({ ...pod({ nodeName }, name), status: { phase } }) as Pod;
  const all = ["Pending", "Running", "Succeeded", "Failed", "Unknown"].map((phase) => there(phase, phase));
  const reader = { list: async () => [...all, there("elsewhere", "Running", "n2")] } as unknown as Reader;
  const { onNode } = await gatherNodeFacts(pod(), node(), reader);
  assert.deepEqual(
    onNode?.map(({ metadata }) => metadata.name),
    ["Pending", "Running", "Unknown"],
  );
});

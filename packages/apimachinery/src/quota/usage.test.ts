import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../objects/meta/types.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { quotaEvaluator } from "./usage.ts";

const clock = newFakeClock();
const core = (resource: string, gate?: string) => quotaEvaluator({ group: "", resource }, clock, (name) => name === gate);
const aPod = (spec: object, rest: object = {}): KubeObject => ({ metadata: { name: "p" }, spec, ...rest }) as KubeObject;
const container = (requests: object, limits: object = {}): object => ({ name: "c", resources: { requests, limits } });

test("a pod uses the sum of its containers, or its greatest init container", () => {
  const pod = aPod({
    containers: [container({ cpu: "100m", memory: "1Gi" }, { cpu: "1" }), container({ cpu: "200m" })],
    initContainers: [container({ cpu: "500m" })],
    overhead: { cpu: "10m", memory: "1Gi" },
  });
  assert.deepEqual(core("pods").usage(pod), {
    "count/pods": "1",
    pods: "1",
    cpu: "510m",
    "requests.cpu": "510m",
    memory: "2Gi",
    "requests.memory": "2Gi",
    "limits.cpu": "1010m",
  });
});

test("ephemeral storage, huge pages and extended resources are requested, only the first is limited", () => {
  const amounts = { "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "1" };
  assert.deepEqual(core("pods").usage(aPod({ containers: [container(amounts, { ...amounts, "ephemeral-storage": "2Gi" })] })), {
    "count/pods": "1",
    pods: "1",
    "ephemeral-storage": "1Gi",
    "requests.ephemeral-storage": "1Gi",
    "hugepages-2Mi": "4Mi",
    "requests.hugepages-2Mi": "4Mi",
    "requests.example.com/gpu": "1",
    "limits.ephemeral-storage": "2Gi",
  });
});

test("overhead adds to requests, and to limits that are not zero", () => {
  const pod = aPod({ containers: [container({}, { cpu: "0", memory: "1Gi" })], overhead: { cpu: "1", memory: "1Gi" } });
  assert.partialDeepStrictEqual(core("pods").usage(pod), {
    "requests.cpu": "1",
    "requests.memory": "1Gi",
    "limits.cpu": "0",
    "limits.memory": "2Gi",
  });
});

for (const phase of ["Succeeded", "Failed"]) {
  test(`a pod that has ${phase} counts only as an object`, () => {
    const pod = aPod({ containers: [container({ cpu: "1" })] }, { status: { phase } });
    assert.deepEqual(core("pods").usage(pod), { "count/pods": "1" });
    assert.equal(core("pods").replenishes(aPod({}, { status: { phase: "Running" } }), pod), true);
  });
}

test("a container must set the resources that a quota limits", () => {
  const pod = aPod({ containers: [container({ cpu: "1" }), container({})] });
  assert.equal(core("pods").missing(["requests.cpu", "limits.memory", "pods"], pod), "must specify limits.memory,requests.cpu");
  assert.equal(core("pods").missing(["pods"], pod), "");
  const all = ["limits.cpu", "memory", "cpu", "requests.memory", "limits.memory", "requests.cpu"];
  assert.equal(core("pods").missing(all, aPod({ containers: [container({})] })), `must specify ${all.toSorted().join(",")}`);
  assert.equal(core("pods").missing(["limits.ephemeral-storage", "hugepages-2Mi"], pod), "");
  const each = aPod({ containers: [container({}, { memory: "1Gi" }), container({ cpu: "1" })] });
  assert.equal(core("pods").missing(["requests.cpu", "limits.memory"], each), "must specify limits.memory,requests.cpu");
});

for (const { name, scope, spec, want } of [
  { name: "BestEffort", scope: "BestEffort", spec: { containers: [{ name: "c" }] }, want: true },
  {
    name: "BestEffort in a sandbox that costs",
    scope: "BestEffort",
    spec: { containers: [{ name: "c" }], overhead: { cpu: "1" } },
    want: true,
  },
  { name: "BestEffort with a request", scope: "BestEffort", spec: { containers: [container({ cpu: "1" })] }, want: false },
  {
    name: "NotBestEffort with a limit",
    scope: "NotBestEffort",
    spec: { containers: [container({}, { memory: "1" })] },
    want: true,
  },
  { name: "Terminating", scope: "Terminating", spec: { activeDeadlineSeconds: 0 }, want: true },
  { name: "NotTerminating", scope: "NotTerminating", spec: {}, want: true },
]) {
  test(`a pod is ${want ? "" : "not "}in scope: ${name}`, () => {
    assert.equal(core("pods").inScope({ scopes: [scope] }, aPod(spec)), want);
  });
}

test("scopes match only pods", () => {
  const scopeSelector = { matchExpressions: [{ scopeName: "BestEffort", operator: "Exists" }] };
  for (const resource of ["services", "persistentvolumeclaims", "secrets", "events"]) {
    assert.equal(core(resource).inScope({ scopes: ["BestEffort"] }, aPod({})), false);
    assert.equal(core(resource).inScope({ scopeSelector }, aPod({})), false);
    assert.equal(core(resource).inScope({ scopes: [], scopeSelector: { matchExpressions: [] } }, aPod({})), true);
    assert.equal(core(resource).inScope(undefined, aPod({})), true);
  }
});

test("updates are charged for services and claims only", () => {
  const charging = ["pods", "services", "persistentvolumeclaims", "secrets"].filter((resource) => core(resource).chargesUpdates);
  assert.deepEqual(charging, ["services", "persistentvolumeclaims"]);
});

test("a service uses node ports by its type", () => {
  const service = (spec: object) => core("services").usage({ metadata: {}, spec } as KubeObject);
  const ports = [{ port: 1 }, { port: 2, nodePort: 30000 }];
  assert.equal(service({ type: "ClusterIP", ports })["services.nodeports"], "0");
  assert.equal(service({ type: "NodePort", ports })["services.nodeports"], "2");
  assert.equal(service({ type: "LoadBalancer", ports, allocateLoadBalancerNodePorts: false })["services.nodeports"], "1");
  assert.equal(service({ type: "LoadBalancer", ports })["services.loadbalancers"], "1");
});

test("a claim uses storage, also that of its class", () => {
  const claim = { metadata: {}, spec: { storageClassName: "gold", resources: { requests: { storage: "1Gi" } } } } as KubeObject;
  assert.deepEqual(core("persistentvolumeclaims").usage(claim), {
    "count/persistentvolumeclaims": "1",
    persistentvolumeclaims: "1",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    "requests.storage": "1Gi",
    "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
  });
});

for (const { storage, want } of [
  { storage: "1500m", want: "2" },
  { storage: "0.3Ki", want: "308" },
  { storage: "2047.5Mi", want: "2096640Ki" },
]) {
  test(`a claim of ${storage} takes ${want}: whole bytes`, () => {
    const usage = core("persistentvolumeclaims").usage({
      metadata: {},
      spec: { resources: { requests: { storage } } },
    } as KubeObject);
    assert.equal(usage["requests.storage"], want);
  });
}

for (const { gate, allocated, want } of [
  { gate: "RecoverVolumeExpansionFailure", allocated: "5Gi", want: "5Gi" },
  { gate: "RecoverVolumeExpansionFailure", allocated: "1Gi", want: "2Gi" },
  { gate: "RecoverVolumeExpansionFailure", allocated: undefined, want: "2Gi" },
  { gate: undefined, allocated: "5Gi", want: "2Gi" },
]) {
  test(`a claim of 2Gi for which ${allocated ?? "nothing"} is set aside takes ${want} ${gate ? "with" : "without"} the gate`, () => {
    const spec = { storageClassName: "gold", resources: { requests: { storage: "2Gi" } } };
    const claim = { metadata: {}, spec, status: { ...(allocated && { allocatedResources: { storage: allocated } }) } };
    const usage = core("persistentvolumeclaims", gate).usage(claim);
    assert.deepEqual([usage["requests.storage"], usage["gold.storageclass.storage.k8s.io/requests.storage"]], [want, want]);
  });
}

test("other objects are counted, some also by an earlier name", () => {
  const deployments = quotaEvaluator({ group: "apps", resource: "deployments" }, clock, () => false);
  assert.deepEqual(deployments.usage(aPod({})), { "count/deployments.apps": "1" });
  for (const resource of ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"])
    assert.deepEqual(core(resource).usage(aPod({})), { [`count/${resource}`]: "1", [resource]: "1" });
  assert.deepEqual(core("events").usage(aPod({})), { "count/events": "1" });
  const others = quotaEvaluator({ group: "example.com", resource: "secrets" }, clock, () => false);
  assert.deepEqual(others.usage(aPod({})), { "count/secrets.example.com": "1" });
  assert.deepEqual(deployments.matching(["count/deployments.apps", "pods"]), ["count/deployments.apps"]);
});

const at = (ms: number): string => new Date(clock.now() + ms).toISOString();

for (const { name, metadata, isOver } of [
  { name: "that is not deleted", metadata: {}, isOver: false },
  { name: "without a grace period", metadata: { deletionTimestamp: at(-3_600_000) }, isOver: false },
  {
    name: "within its grace period",
    metadata: { deletionTimestamp: at(-20_000), deletionGracePeriodSeconds: 30 },
    isOver: false,
  },
  {
    name: "in the last moment of its grace period",
    metadata: { deletionTimestamp: at(-30_000), deletionGracePeriodSeconds: 30 },
    isOver: false,
  },
  {
    name: "that had no time to end",
    metadata: { deletionTimestamp: at(-1_000), deletionGracePeriodSeconds: 0 },
    isOver: true,
  },
  {
    name: "whose grace period has passed",
    metadata: { deletionTimestamp: at(-40_000), deletionGracePeriodSeconds: 30n },
    isOver: true,
  },
]) {
  test(`a pod ${name} counts ${isOver ? "only as an object, and frees its quota" : "in full"}`, () => {
    const running = aPod({ containers: [container({ cpu: "1" })] });
    const pod = { ...running, metadata: { ...running.metadata, ...metadata } } as KubeObject;
    assert.equal(core("pods").usage(pod)["cpu"], isOver ? undefined : "1");
    assert.equal(core("pods").replenishes(running, pod), isOver);
    assert.equal(core("pods").replenishes(pod, pod), false, "what is over already frees nothing again");
  });
}

test("an init container must set the resources that a quota limits, too", () => {
  const pod = aPod({ containers: [container({ cpu: "1" })], initContainers: [container({ memory: "1" })] });
  assert.equal(core("pods").missing(["cpu"], pod), "must specify cpu");
});

test("a load balancer uses node ports for its ports unless it allocates none", () => {
  const ports = [{ port: 1 }, { port: 2, nodePort: 0 }];
  const nodePorts = (spec: object) => core("services").usage({ metadata: {}, spec } as KubeObject)["services.nodeports"];
  assert.deepEqual([nodePorts({ type: "LoadBalancer", ports }), nodePorts({ type: "NodePort" })], ["2", "0"]);
  assert.equal(nodePorts({ type: "LoadBalancer", ports, allocateLoadBalancerNodePorts: false }), "0");
});

test("a change of a service's type may free quota, another change does not", () => {
  const service = (type: string, more: object = {}) => ({ metadata: more, spec: { type } }) as KubeObject;
  const { replenishes, chargesUpdates } = core("services");
  assert.equal(chargesUpdates, true);
  assert.equal(replenishes(service("NodePort"), service("ClusterIP")), true);
  assert.equal(replenishes(service("NodePort"), service("NodePort", { labels: { a: "b" } })), false);
});

for (const { resource, names, others } of [
  {
    resource: "pods",
    names: [
      ...["pods", "count/pods", "cpu", "memory", "ephemeral-storage"],
      ...["requests.cpu", "requests.memory", "requests.ephemeral-storage"],
      ...["limits.cpu", "limits.memory", "limits.ephemeral-storage"],
      ...["hugepages-2Mi", "requests.hugepages-2Mi", "requests.example.com/gpu"],
    ],
    others: [
      "services",
      "limits.example.com/gpu",
      "limits.hugepages-2Mi",
      "requests.storage",
      "requests.pods",
      "example.com/gpu",
    ],
  },
  {
    resource: "persistentvolumeclaims",
    names: [
      "persistentvolumeclaims",
      "requests.storage",
      "gold.storageclass.storage.k8s.io/requests.storage",
      "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
    ],
    others: ["pods", "gold.storageclass.storage.k8s.io/other"],
  },
  {
    resource: "services",
    names: ["services", "count/services", "services.nodeports", "services.loadbalancers"],
    others: ["pods", "services.other"],
  },
  { resource: "secrets", names: ["secrets", "count/secrets"], others: ["configmaps", "count/configmaps"] },
]) {
  test(`${resource} count towards ${names.join(", ")} and nothing else`, () => {
    assert.deepEqual(core(resource).matching([...others, ...names]), names);
  });
}

test("a claim without a request and a class is only counted", () => {
  const claim = (spec: object) => core("persistentvolumeclaims").usage({ metadata: {}, spec } as KubeObject);
  const counted = { "count/persistentvolumeclaims": "1", persistentvolumeclaims: "1" };
  assert.deepEqual([claim({}), claim({ storageClassName: "" })], [counted, counted]);
  const gold = "gold.storageclass.storage.k8s.io/persistentvolumeclaims";
  assert.deepEqual(claim({ storageClassName: "gold" }), { ...counted, [gold]: "1" });
});

test("the class of a claim's annotation takes precedence over its field", () => {
  const annotations = { "volume.beta.kubernetes.io/storage-class": "old" };
  const spec = { storageClassName: "new", resources: { requests: { storage: "1Gi" } } };
  const usage = core("persistentvolumeclaims").usage({ metadata: { annotations }, spec } as KubeObject);
  assert.equal(usage["old.storageclass.storage.k8s.io/requests.storage"], "1Gi");
  assert.equal(usage["new.storageclass.storage.k8s.io/requests.storage"], undefined);
});

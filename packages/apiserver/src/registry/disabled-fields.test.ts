import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { contextOf, resourcesForTests } from "../testing/kind-rules.ts";
import { prepareUpdate } from "../testing/run-strategy.ts";

const gates = Object.fromEntries(
  [
    "AppArmor",
    "CSIInlineVolume",
    "EphemeralContainers",
    "GRPCContainerProbe",
    "IdentifyPodOS",
    "LocalStorageCapacityIsolation",
    "NonPreemptingPriority",
    "PodAffinityNamespaceSelector",
    "PodOverhead",
    "ProbeTerminationGracePeriod",
    "ProcMountType",
  ].map((gate) => [gate, false]),
);
const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "unconfined", other: "x" };
const term = (fields: object) => ({ topologyKey: "zone", ...fields });
const affinity = (fields: object) => ({
  podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term({}), term(fields)] },
  podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term(fields) }] },
});
const gated = (): PodSpec => ({
  os: { name: "linux" },
  overhead: { cpu: "1" },
  preemptionPolicy: "Never",
  affinity: affinity({ namespaceSelector: {} }),
  volumes: [
    { name: "a", emptyDir: { sizeLimit: "1Gi" } },
    { name: "b", csi: { driver: "d" } },
  ],
  containers: [
    { name: "b", image: "i" },
    {
      name: "c",
      image: "i",
      securityContext: { procMount: "Unmasked" },
      livenessProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 },
      // Not dropped: validation refuses it.
      readinessProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 },
    },
  ],
  initContainers: [{ name: "d", image: "i", startupProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 5 } }],
  ephemeralContainers: [{ name: "e" }],
});
const plain = {
  affinity: affinity({}),
  volumes: [{ name: "a", emptyDir: {} }, { name: "b" }],
  containers: [
    { name: "b", image: "i" },
    {
      name: "c",
      image: "i",
      securityContext: { procMount: "Default" },
      livenessProbe: {},
      readinessProbe: { terminationGracePeriodSeconds: 5 },
    },
  ],
  initContainers: [{ name: "d", image: "i", startupProbe: {} }],
};

/** Path of the pod spec in each kind with a pod template. */
for (const { resource, path } of [
  { resource: "pods", path: ["spec"] },
  { resource: "podtemplates", path: ["template", "spec"] },
  ...["deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers", "jobs"].map((name) => ({
    resource: name,
    path: ["spec", "template", "spec"],
  })),
  { resource: "cronjobs", path: ["spec", "jobTemplate", "spec", "template", "spec"] },
]) {
  const definition = resourcesForTests.find((d) => d.resource === resource);
  const strategy = definition?.strategy;
  assert.ok(strategy);
  const ctx = contextOf(definition as never, definition?.hub ?? "", gates);
  const holding = (spec: object): KubeObject => ({
    metadata: { name: "x" },
    ...(path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), spec) as object),
  });
  const held = (object: unknown): unknown => path.reduce((outer, name) => (outer as Record<string, unknown>)[name], object);
  /** The object with the spec: the pod, or the template. */
  const carrierOf = (object: unknown): KubeObject =>
    path.slice(0, -1).reduce((outer, name) => (outer as Record<string, unknown>)[name], object) as KubeObject;
  const profiled = (): KubeObject => {
    const object = holding(structuredClone(plain));
    const carrier = carrierOf(object);
    carrier.metadata = { ...carrier.metadata, annotations: { ...annotations } };
    return object;
  };

  test(`${resource}: AppArmor profiles are dropped where the gate is off, unless there were some`, () => {
    const made = profiled();
    strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual(carrierOf(made).metadata.annotations, { other: "x" });
    const added = profiled();
    prepareUpdate(strategy, added, holding(structuredClone(plain)), ctx);
    assert.deepEqual(carrierOf(added).metadata.annotations, { other: "x" });
    const kept = profiled();
    prepareUpdate(strategy, kept, profiled(), ctx);
    assert.deepEqual(carrierOf(kept).metadata.annotations, annotations);
  });

  test(`${resource}: what belongs to gates that are off is dropped, unless it was there`, () => {
    const made = holding(gated());
    strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual(held(made), plain);
    const added = holding(gated());
    prepareUpdate(strategy, added, holding(structuredClone(plain)), ctx);
    assert.deepEqual(held(added), plain);
    // The priority counts as use of the policy of preemption.
    const used = (): PodSpec => ({ ...gated(), priority: 1 });
    const kept = holding(used());
    prepareUpdate(strategy, kept, holding(used()), ctx);
    assert.deepEqual(held(kept), used());
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { contextOf, defaultsOf, resourcesForTests } from "../../../testing/kind-rules.ts";
import { podWarnings, templateWarnings } from "./warnings.ts";

const container = { name: "c", image: "i" };
const term = (key: string): object => ({ matchExpressions: [{ key, operator: "Exists" }] });

for (const { name, annotations, spec, want } of [
  { name: "nothing", spec: {}, want: [] },
  {
    name: "old labels of nodes, wherever they choose one",
    spec: {
      nodeSelector: { "beta.kubernetes.io/os": "linux" },
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}, term("beta.kubernetes.io/arch")] },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: term("beta.kubernetes.io/instance-type") },
            { weight: 1, preference: term("kubernetes.io/os") },
          ],
        },
      },
      topologySpreadConstraints: [{ topologyKey: "failure-domain.beta.kubernetes.io/zone" }],
    },
    want: [
      'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/instance-type is deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
      'spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    ],
  },
  {
    name: "each old label of nodes, and in which place of which list",
    spec: {
      nodeSelector: { a: "b", "failure-domain.beta.kubernetes.io/region": "r", constructor: "x" },
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: {} },
            {
              weight: 1,
              preference: {
                matchExpressions: [
                  { key: "a", operator: "Exists" },
                  { key: "beta.kubernetes.io/os", operator: "Exists" },
                ],
              },
            },
          ],
        },
      },
      topologySpreadConstraints: [{ topologyKey: "zone" }, { topologyKey: "beta.kubernetes.io/arch" }],
    },
    want: [
      'spec.nodeSelector[failure-domain.beta.kubernetes.io/region]: deprecated since v1.17; use "topology.kubernetes.io/region" instead',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].preference.matchExpressions[1].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.topologySpreadConstraints[1].topologyKey: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
    ],
  },
  {
    name: "unsafe sysctls in an annotation",
    annotations: { "security.alpha.kubernetes.io/unsafe-sysctls": "" },
    spec: {},
    want: [
      'metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]: non-functional in v1.11+; use the "sysctls" field instead',
    ],
  },
  {
    name: "empty names of secrets, and names of volumes twice",
    spec: {
      imagePullSecrets: [{ name: "" }, {}],
      volumes: [
        { name: "v", emptyDir: {} },
        { name: "w", emptyDir: {} },
        { name: "v", emptyDir: {} },
        { name: "v", emptyDir: {} },
      ],
    },
    want: [
      'spec.imagePullSecrets[1].name: duplicate name ""',
      'spec.imagePullSecrets[0].name: invalid empty name ""',
      'spec.imagePullSecrets[1].name: invalid empty name ""',
      'spec.volumes[2].name: duplicate name "v"',
      'spec.volumes[3].name: duplicate name "v"',
    ],
  },
  {
    name: "parts of bytes of each list, but not of whole bytes however they are written",
    spec: {
      overhead: { memory: "1000m", "ephemeral-storage": "1500m" },
      containers: [
        container,
        {
          ...container,
          resources: {
            limits: { memory: "1.5", "ephemeral-storage": "0.5Ki" },
            requests: { memory: "2500m", "ephemeral-storage": "1Ki" },
          },
        },
      ],
    },
    want: [
      'spec.overhead[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.containers[1].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.containers[1].resources.requests[memory]: fractional byte value "2500m" is invalid, must be an integer',
    ],
  },
  {
    name: "annotations that do nothing",
    annotations: { "scheduler.alpha.kubernetes.io/critical-pod": "", "security.alpha.kubernetes.io/sysctls": "a=b" },
    spec: {},
    want: [
      'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
      'metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead',
    ],
  },
  {
    name: "volumes of plugins that go",
    spec: {
      volumes: [
        { name: "a", gitRepo: {} },
        { name: "b", scaleIO: {} },
        { name: "c", flocker: {} },
        { name: "d", storageos: {} },
        { name: "e", quobyte: {} },
        { name: "f", photonPersistentDisk: {} },
      ],
    },
    want: [
      "spec.volumes[0].gitRepo: deprecated in v1.11",
      "spec.volumes[1].scaleIO: deprecated in v1.16, non-functional in v1.22+",
      "spec.volumes[2].flocker: deprecated in v1.22, non-functional in v1.25+",
      "spec.volumes[3].storageOS: deprecated in v1.22, non-functional in v1.25+",
      "spec.volumes[4].quobyte: deprecated in v1.22, non-functional in v1.25+",
      "spec.volumes[5].photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    ],
  },
  {
    name: "duplicate items",
    spec: {
      hostAliases: [{ ip: "1.1.1.1" }, { ip: "1.1.1.1" }],
      imagePullSecrets: [{ name: "a" }, { name: "a" }, {}],
      containers: [{ ...container, env: [{ name: "A" }, { name: "B" }, { name: "A" }] }],
    },
    want: [
      'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
      'spec.imagePullSecrets[1].name: duplicate name "a"',
      'spec.imagePullSecrets[2].name: invalid empty name ""',
      'spec.containers[0].env[2].name: duplicate name "A"',
    ],
  },
  {
    name: "parts of bytes",
    spec: {
      overhead: { memory: "100m", cpu: "100m" },
      initContainers: [{ ...container, resources: { limits: { memory: "1500m", cpu: "1500m" }, requests: { memory: "1" } } }],
      containers: [{ ...container, resources: { requests: { "ephemeral-storage": "1m" } } }],
      ephemeralContainers: [{ ...container, env: [{ name: "A" }, { name: "A" }] }],
    },
    want: [
      'spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer',
      'spec.initContainers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value "1m" is invalid, must be an integer',
      'spec.ephemeralContainers[0].env[1].name: duplicate name "A"',
    ],
  },
  {
    name: "seccomp profiles that stand in annotations alone",
    annotations: {
      "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
      "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
      "container.seccomp.security.alpha.kubernetes.io/d": "unconfined",
    },
    spec: { containers: [container, { name: "d", securityContext: { seccompProfile: { type: "Unconfined" } } }] },
    want: [
      'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: deprecated since v1.19; use the "seccompProfile" field instead',
      'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: deprecated since v1.19; use the "seccompProfile" field instead',
    ],
  },
]) {
  test(`pods: warns of ${name}`, () => {
    assert.deepEqual(
      podWarnings({ metadata: { annotations }, spec: { containers: [container], ...spec } } as unknown as Pod),
      want,
    );
  });
}

test("a template without a spec gives no warning", () => {
  for (const template of [undefined, {}, { metadata: { annotations: { "seccomp.security.alpha.kubernetes.io/pod": "a" } } }])
    assert.deepEqual(templateWarnings(template as PodTemplateSpec | undefined, "spec.template"), []);
});

const old = {
  metadata: { labels: { a: "b" } },
  spec: { containers: [container], nodeSelector: { "beta.kubernetes.io/os": "x" } },
};
const text = 'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead';

for (const { resource, object, path } of [
  { resource: "pods", object: { spec: old.spec }, path: "" },
  { resource: "podtemplates", object: { template: old }, path: "template." },
  { resource: "replicationcontrollers", object: { spec: { template: old } }, path: "spec.template." },
  ...["deployments", "replicasets", "statefulsets", "daemonsets"].map((name) => ({
    resource: `${name}.apps`,
    object: { spec: { template: old } },
    path: "spec.template.",
  })),
  { resource: "jobs.batch", object: { spec: { template: old } }, path: "spec.template." },
  {
    resource: "cronjobs.batch",
    object: { spec: { jobTemplate: { spec: { template: old } } } },
    path: "spec.jobTemplate.spec.template.",
  },
]) {
  test(`${resource}: warns of a new one, and of a template only when the generation changes`, () => {
    const definition = resourcesForTests.find((d) => resource === (d.group ? `${d.resource}.${d.group}` : d.resource));
    assert.ok(definition?.strategy);
    const ctx = contextOf(definition, definition.hub);
    const made = (generation: number): KubeObject => defaultsOf(resource, { metadata: { name: "x", generation }, ...object });
    const { warningsOnCreate, warningsOnUpdate } = definition.strategy;
    assert.deepEqual(warningsOnCreate?.(made(1), ctx), [`${path}${text}`]);
    assert.deepEqual(warningsOnUpdate?.(made(1), made(1), ctx) ?? [], []);
    assert.deepEqual(warningsOnUpdate?.(made(2), made(1), ctx) ?? [], resource === "pods" ? [] : [`${path}${text}`]);
  });
}

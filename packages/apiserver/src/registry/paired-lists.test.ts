/** Requests in which two lists are large at once: no check looks up each item of one by walking through the other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leastOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { AdmissionAttributes } from "../admission/plugin.ts";
import type { PluginContext } from "../admission/plugin-context.ts";
import { extendedResourceToleration } from "../admission/plugins/extended-resource-toleration.ts";
import { podTolerationRestriction } from "../admission/plugins/pod-toleration-restriction.ts";
import { runtimeClass } from "../admission/plugins/runtime-class.ts";
import { isSignificant } from "../admission/pod-security/significant.ts";
import { newRuleResolver, type RbacPolicy } from "../authorization/rule-resolver.ts";
import { listMapKeyRules } from "../structural-schema/list-types.ts";
import { faultsOf } from "../testing/kind-rules.ts";
import { validateClusterIps } from "./core/services/cluster-ip-validation.ts";
import { validateStorageVersionStatus } from "./internal-apiserver/storageversions/validation.ts";

const count = 20_000;
/** Of 100 ms, with threefold slack, for the whole check; the product of two such lists takes seconds. */
const mostMs = 300;
const many = <T>(item: (at: number) => T, some = count): T[] => Array.from({ length: some }, (_, at) => item(at));
const container = { name: "c", image: "i" };
const debuggers = many((at) => ({ name: `d${at}`, image: "i", terminationMessagePolicy: "File", imagePullPolicy: "Always" }));
const tolerations = (prefix: string): Toleration[] => many((at) => ({ key: `${prefix}${at}`, operator: "Exists" }));

function writeOf(spec: object, changes: object = {}): AdmissionAttributes<never> {
  const object = { metadata: { name: "p", namespace: "default" }, spec: { containers: [container], ...spec } };
  const resource = { group: "", version: "v1", resource: "pods" };
  const attributes = { operation: "CREATE", resource, subresource: "", namespace: "default", name: "p", object, ...changes };
  return attributes as unknown as AdmissionAttributes<never>;
}

const pluginContext = (stored: object): PluginContext =>
  ({
    informers: { for: () => ({ synced: true, lister: { get: () => stored } }) },
    configurationOf: () => undefined,
    featureEnabled: () => true,
  }) as unknown as PluginContext;

const groups = many((at) => `group-${at}`);
const policy: RbacPolicy = {
  version: 1,
  role: () => undefined,
  clusterRole: () => undefined,
  roleBindings: () => [],
  clusterRoleBindings: () => [
    {
      metadata: { name: "b" },
      roleRef: { kind: "ClusterRole", name: "r" },
      subjects: many((at) => ({ kind: "Group", name: `other-${at}` })),
    },
  ],
};
const properties = Object.fromEntries(many((at) => [`k${at}`, { type: "string" }]));

const cases: readonly { readonly name: string; readonly work: () => unknown }[] = [
  {
    name: "mounts and devices of a container",
    work: () => {
      const volumeMounts = many((at) => ({ name: `m${at}`, mountPath: `/m${at}` }));
      const volumeDevices = many((at) => ({ name: `d${at}`, devicePath: `/d${at}` }));
      const change = { "spec.containers[0].volumeMounts": volumeMounts, "spec.containers[0].volumeDevices": volumeDevices };
      return faultsOf("pods", { spec: { containers: [container] } }, { change });
    },
  },
  {
    name: "ephemeral containers before and after an update",
    work: () => isSignificant(podWith(debuggers), podWith(debuggers.toReversed())),
  },
  {
    name: "tolerations of a pod and of its runtime class",
    work: () => {
      const scheduling = { tolerations: tolerations("class") };
      return runtimeClass(pluginContext({ scheduling })).admit?.(
        writeOf({ runtimeClassName: "r", tolerations: tolerations("own") }),
      );
    },
  },
  {
    name: "tolerations of a pod and those that its namespace allows",
    work: () => {
      const allowed = { "scheduler.alpha.kubernetes.io/tolerationsWhitelist": JSON.stringify(tolerations("own").toReversed()) };
      return podTolerationRestriction(pluginContext({ metadata: { annotations: allowed } })).validate?.(
        writeOf({ tolerations: tolerations("own").slice(0, count / 4) }),
      );
    },
  },
  {
    name: "extended resources and tolerations of a pod",
    work: () => {
      const requests = Object.fromEntries(many((at) => [`example.com/r${at}`, "1"]));
      const spec = { containers: [{ ...container, resources: { requests } }], tolerations: tolerations("own") };
      return extendedResourceToleration().admit?.(writeOf(spec));
    },
  },
  { name: "addresses of a Service", work: () => validateClusterIps(serviceOf(many((at) => `10.0.${at >> 8}.${at & 255}`))) },
  {
    name: "runtime classes of a pod security policy",
    work: () => {
      const rule = { rule: "RunAsAny" };
      const spec = { seLinux: rule, runAsUser: rule, supplementalGroups: rule, fsGroup: rule };
      const change = { "spec.runtimeClass": { allowedRuntimeClassNames: many((at) => `class-${at}`) } };
      return faultsOf("podsecuritypolicies.policy", { spec }, { change });
    },
  },
  {
    name: "keys and required properties of a list's items",
    work: () =>
      listMapKeyRules(
        {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": Object.keys(properties),
          items: { type: "object", properties, required: Object.keys(properties).toReversed() },
        },
        "spec",
      ),
  },
  {
    name: "conditions of a storage version",
    work: () =>
      validateStorageVersionStatus({ conditions: many((at) => ({ type: `t${at}`, status: "True" }) as never) }, "status"),
  },
  {
    name: "groups of a user and subjects of a binding",
    work: () => newRuleResolver(policy).appliedRules({ name: "u", uid: "", groups, extra: {} }, ""),
  },
];

function podWith(ephemeralContainers: readonly object[]) {
  return { metadata: {}, spec: { containers: [container], ephemeralContainers } } as unknown as KubeObject & { spec: never };
}

function serviceOf(clusterIPs: string[]) {
  return {
    metadata: { name: "s" },
    spec: { type: "ClusterIP" as const, clusterIP: clusterIPs[0] as string, clusterIPs, ipFamilies: ["IPv4" as const] },
  };
}

for (const { name, work } of cases) {
  test(`${name}, ${count} each, are checked in time that is linear in their number`, async (t) => {
    const took = await leastOf(mostMs, async () => {
      const before = process.threadCpuUsage();
      await work();
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1000;
    });
    t.diagnostic(`${took} ms`);
    assert.ok(took < mostMs, `${took} ms`);
  });
}

test("the rules of a user of a hundred thousand groups are not cached under a name of a megabyte", () => {
  let lookups = 0;
  const counting: RbacPolicy = {
    ...policy,
    clusterRoleBindings: () => {
      lookups++;
      return [];
    },
  };
  const resolver = newRuleResolver(counting);
  const ask = (some: string[]) => resolver.appliedRules({ name: "u", uid: "", groups: some, extra: {} }, "");
  for (const _ of [1, 2]) ask(["a"]);
  assert.equal(lookups, 1);
  for (const _ of [1, 2]) ask(groups);
  assert.equal(lookups, 3);
});

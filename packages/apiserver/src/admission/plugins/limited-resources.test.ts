import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { uncoveredNames, uncoveredScopes } from "./limited-resources.ts";

const pods = quotaEvaluator({ group: "", resource: "pods" }, newFakeClock(), () => false);
const services = quotaEvaluator({ group: "", resource: "services" }, newFakeClock(), () => false);
const aService = (type: string): KubeObject => ({ metadata: { name: "s" }, spec: { type, ports: [{ port: 1 }] } }) as KubeObject;
const balancers = [{ resource: "services", matchContains: [".loadbalancers"] }];
const aPod = (priorityClassName: string): KubeObject =>
  ({
    metadata: { name: "p" },
    spec: { priorityClassName, containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] },
  }) as KubeObject;
const critical = { scopeName: "PriorityClass", operator: "In", values: ["critical"] } as const;
const byScope = [{ resource: "pods", matchScopes: [{ ...critical, values: ["critical"] }] }];
const byName = [{ resource: "pods", matchContains: ["requests.cpu"] }];
const scoped = { spec: { scopeSelector: { matchExpressions: [{ ...critical, values: ["critical"] }] } } };

for (const { name, limited, pod, quotas, want } of [
  { name: "nothing is limited", limited: [], pod: aPod("critical"), quotas: [], want: [] },
  { name: "the pod is of another class", limited: byScope, pod: aPod("low"), quotas: [], want: [] },
  {
    name: "no quota has the scope",
    limited: byScope,
    pod: aPod("critical"),
    quotas: [{ status: { hard: { pods: "5" } } }],
    want: ["{PriorityClass In [critical]}"],
  },
  {
    name: "a quota has the scope for another class",
    limited: byScope,
    pod: aPod("critical"),
    quotas: [{ spec: { scopeSelector: { matchExpressions: [{ ...critical, values: ["low"] }] } } }],
    want: ["{PriorityClass In [critical]}"],
  },
  {
    name: "the scope is that of an entry for another resource than pods",
    limited: [{ ...byScope[0]!, resource: "services" }],
    pod: aPod("critical"),
    quotas: [],
    want: [],
  },
  { name: "a quota has the scope", limited: byScope, pod: aPod("critical"), quotas: [scoped], want: [] },
  {
    name: "the second quota has it as its second scope",
    limited: byScope,
    pod: aPod("critical"),
    quotas: [{ spec: { scopes: ["BestEffort"] } }, { spec: { ...scoped.spec, scopes: ["Terminating"] } }],
    want: [],
  },
  {
    name: "the second of two limited scopes is the pod's",
    limited: [
      { resource: "pods", matchScopes: [{ ...critical, values: ["low"] }] },
      { resource: "pods", matchScopes: [{ ...critical, values: ["middle"] }, ...byScope[0]!.matchScopes] },
    ],
    pod: aPod("critical"),
    quotas: [],
    want: ["{PriorityClass In [critical]}"],
  },
  {
    name: "no quota bounds the second of two names",
    limited: [...byName, { resource: "pods", matchContains: ["memory", "limits.cpu", "pods"] }],
    pod: aPod(""),
    quotas: [{ status: { hard: { "requests.cpu": "5" } } }],
    want: ["count/pods", "pods"],
  },
  {
    name: "no quota bounds the resource",
    limited: byName,
    pod: aPod(""),
    quotas: [{ status: { hard: { pods: "5" } } }],
    want: ["requests.cpu"],
  },
  {
    name: "a quota bounds the resource for other pods",
    limited: byName,
    pod: aPod(""),
    quotas: [{ spec: { scopes: ["BestEffort"] }, status: { hard: { "requests.cpu": "5" } } }],
    want: ["requests.cpu"],
  },
  {
    name: "a quota bounds the resource",
    limited: byName,
    pod: aPod(""),
    quotas: [{ status: { hard: { "requests.cpu": "5" } } }],
    want: [],
  },
]) {
  test(`limited resources when ${name}`, () =>
    assert.deepEqual([...uncoveredNames(limited, pods, pod, quotas), ...uncoveredScopes(limited, pod, quotas)], want));
}

for (const [type, want] of [
  ["LoadBalancer", ["services.loadbalancers"]],
  ["NodePort", []],
  ["ClusterIP", []],
] as const) {
  test(`limited load balancers and a service of type ${type}`, () =>
    assert.deepEqual(uncoveredNames(balancers, services, aService(type), []), want));
}

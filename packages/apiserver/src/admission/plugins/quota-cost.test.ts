import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { chargedQuotas, type QuotaObject } from "./quota-cost.ts";

const resource = { group: "", version: "v1", resource: "pods" };
const evaluator = quotaEvaluator(resource, newFakeClock(), () => false);
const quota = (hard: Record<string, string>, used: Record<string, string>, spec = {}): QuotaObject => ({
  metadata: { name: "q" },
  spec,
  status: { hard, used },
});
const aPod = (requests: object = {}): KubeObject =>
  ({ metadata: { name: "p" }, spec: { containers: [{ name: "c", resources: { requests } }] } }) as KubeObject;
const create = (object: KubeObject, quotas: QuotaObject[]): QuotaObject[] =>
  chargedQuotas({ operation: "CREATE", object, oldObject: undefined, resource, name: "p" }, evaluator, quotas);

test("charges what the pod takes of what the quota bounds", () => {
  const [charged] = create(aPod({ cpu: "500m", memory: "1Gi" }), [quota({ pods: "5", cpu: "2" }, { pods: "1", cpu: "1" })]);
  assert.deepEqual(charged?.status?.used, { pods: "2", cpu: "1500m" });
});

test("refuses what would exceed it, and says by how much", () => {
  assert.throws(() => create(aPod({ cpu: "2" }), [quota({ pods: "1", cpu: "2" }, { pods: "1", cpu: "1" })]), {
    message: 'pods "p" is forbidden: exceeded quota: q, requested: cpu=2,pods=1, used: cpu=1,pods=1, limited: cpu=2,pods=1',
  });
});

test("refuses a container that does not say what is bounded", () => {
  assert.throws(() => create(aPod(), [quota({ cpu: "2" }, { cpu: "0" })]), {
    message: 'pods "p" is forbidden: failed quota: q: must specify cpu',
  });
});

test("refuses while the usage is not computed yet", () => {
  assert.throws(() => create(aPod({ cpu: "1" }), [quota({ cpu: "2" }, {})]), /status unknown for quota: q, resources: cpu/);
});

test("leaves alone quotas of other scopes and of other things", () => {
  assert.deepEqual(create(aPod({ cpu: "1" }), [quota({ pods: "0" }, { pods: "0" }, { scopes: ["BestEffort"] })]), []);
  assert.deepEqual(create(aPod({ cpu: "1" }), [quota({ services: "0" }, { services: "0" })]), []);
});

test("each of several quotas has to be counted, and to give its bounds", () => {
  const first = quota({ pods: "5" }, { pods: "0" });
  assert.throws(
    () => create(aPod({ cpu: "1" }), [first, quota({ cpu: "2", memory: "1Gi" }, { cpu: "0", memory: "0" })]),
    /must specify memory/,
  );
  assert.throws(
    () => create(aPod({ cpu: "1" }), [first, quota({ pods: "1", cpu: "2" }, { pods: "0" })]),
    /status unknown for quota: q, resources: cpu,pods/,
  );
});

test("a resource that is exceeded already does not refuse a pod that uses none of it", () => {
  const [charged] = create(aPod({ cpu: "1" }), [quota({ cpu: "2", services: "1" }, { cpu: "0", services: "3" })]);
  assert.deepEqual(charged?.status?.used, { cpu: "1", services: "3" });
});

test("the scope of an update is that of the object as it becomes", () => {
  const attributes = { operation: "UPDATE", resource, name: "p", object: aPod(), oldObject: aPod({ cpu: "1" }) } as const;
  const bestEffort = quota({ pods: "0" }, {}, { scopes: ["BestEffort"] });
  assert.throws(() => chargedQuotas(attributes, evaluator, [bestEffort]), /status unknown/);
});

test("an amount below zero is refused instead of making room", () => {
  assert.throws(() => create(aPod({ memory: "-1", cpu: "-1" }), [quota({ cpu: "2" }, { cpu: "1" })]), {
    message: 'pods "p" is forbidden: quota usage is negative for resource(s): cpu,memory,requests.cpu,requests.memory',
  });
});

test("an update is charged to the quotas alone that bound what it adds", () => {
  const [before, object] = [aPod({ cpu: "1", memory: "1Gi" }), aPod({ cpu: "1", memory: "2Gi" })];
  const attributes = { operation: "UPDATE", resource, name: "p", object, oldObject: before } as const;
  const ofCpu = quota({ cpu: "1" }, { cpu: "1" });
  const charged = chargedQuotas(attributes, evaluator, [ofCpu, quota({ memory: "5Gi" }, { memory: "1Gi" })]);
  assert.deepEqual(
    charged.map(({ status }) => status?.used),
    [{ memory: "2Gi" }],
  );
});

for (const { name, requests, want } of [
  { name: "that needs more is charged with the difference", requests: { cpu: "3" }, want: [{ pods: "1", cpu: "3" }] },
  { name: "that needs less is not charged, and gives nothing back", requests: { cpu: "500m" }, want: [] },
]) {
  test(`an update ${name}`, () => {
    const attributes = {
      operation: "UPDATE",
      resource,
      name: "p",
      object: aPod(requests),
      oldObject: aPod({ cpu: "1" }),
    } as const;
    const quotas = [quota({ pods: "1", cpu: "3" }, { pods: "1", cpu: "1" })];
    assert.deepEqual(
      chargedQuotas(attributes, evaluator, quotas).map(({ status }) => status?.used),
      want,
    );
  });
}

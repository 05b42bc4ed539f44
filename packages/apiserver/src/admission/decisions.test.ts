import assert from "node:assert/strict";
import { test } from "node:test";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newAdmissionChain } from "./chain.ts";
import { AdmissionDecisions } from "./decisions.ts";
import type { AdmissionAttributes } from "./plugin.ts";

test("keeps which plugin refused an object, or the first of a controller, until it is admitted", async () => {
  const log = new DecisionLog({ component: "kube-apiserver", clock: realClock });
  let refuses = true;
  const plugin = {
    name: "ResourceQuota",
    handles: () => true,
    async validate() {
      if (refuses) throw forbidden(pods, "web-1", "exceeded quota: mem");
    },
  };
  const versions = { ofKind: () => [{ resource: "replicasets", namespaced: true }] };
  const chain = newAdmissionChain([plugin], newMetricsRegistry(), new AdmissionDecisions(log, versions));
  const attributes = (metadata: object): AdmissionAttributes => ({
    ...{ operation: "CREATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "", dryRun: false },
    ...{ object: { metadata }, oldObject: undefined, user: { name: "ann", groups: [] }, signal: new AbortController().signal },
    ...{ warn() {}, annotate() {}, annotateContent() {} },
  });
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1", controller: true };
  const [named, owned] = [
    attributes({ name: "web-1" }),
    attributes({ name: "web-x", generateName: "web-", ownerReferences: [owner] }),
  ];
  for (const one of [named, owned]) await assert.rejects(chain.validate(one));
  await assert.rejects(chain.validate(attributes({ generateName: "nobody-" })));
  const pod = { group: "", resource: "pods", kind: "Pod", namespace: "web", name: "web-1", uid: "" };
  const set = { group: "apps", resource: "replicasets", kind: "ReplicaSet", namespace: "web", name: "web", uid: "1" };
  assert.equal(log.entries, 2);
  for (const ref of [pod, set]) {
    hasFields(log.of(ref)[0], {
      ...{ source: "admission/ResourceQuota", verdict: "refused", reason: "QuotaExceeded" },
      details: { operation: "CREATE", resource: "pods" },
      related: [{ resource: "resourcequotas", namespace: "web", name: "" }],
    });
  }
  refuses = false;
  for (const one of [named, owned]) await chain.validate(one);
  assert.equal(log.entries, 0);

  const changes = [{ configuration: "sidecars", webhook: "inject.example.com", paths: ["/spec/containers/1"] }];
  await chain.validate({ ...named, changes, dryRun: true });
  assert.equal(log.entries, 0);
  await chain.validate({ ...named, changes });
  hasFields(log.of(pod)[0], {
    ...{ verdict: "done", reason: "ChangedByWebhook", summary: "changed by the webhook inject.example.com" },
    related: [{ resource: "mutatingwebhookconfigurations", name: "sidecars" }],
    details: { changes },
  });
});

test("a refusal is that of the stored object, is not kept for a caller who has gone, and is forgotten only when all have admitted", () => {
  const log = new DecisionLog({ component: "kube-apiserver", clock: realClock });
  const versions = { ofKind: () => [{ resource: "nodes", namespaced: false }] };
  const decisions = new AdmissionDecisions(log, versions);
  const of = (more: object): AdmissionAttributes =>
    ({
      ...{ operation: "UPDATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "a" },
      ...{ object: { metadata: { name: "a" } }, oldObject: { metadata: { uid: "1" } } },
      ...{ user: { name: "ann", groups: [] }, signal: new AbortController().signal, ...more },
    }) as unknown as AdmissionAttributes;
  decisions.refused("Some", of({ signal: AbortSignal.abort() }), new Error("no"));
  assert.equal(log.entries, 0);
  decisions.refused("Some", of({}), new Error("no"));
  const pod = { group: "", resource: "pods", kind: "Pod", namespace: "web", name: "a", uid: "1" };
  assert.equal(log.of(pod).length, 1);
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "2", controller: true };
  decisions.refused(
    "Some",
    of({ operation: "CREATE", name: "", object: { metadata: { ownerReferences: [owner] } }, oldObject: undefined }),
    new Error("no"),
  );
  const node = { group: "", resource: "nodes", kind: "Node", namespace: "", name: "n", uid: "2" };
  assert.equal(log.of(node).length, 1);
  const owned = { metadata: { name: "a", ownerReferences: [owner] } };
  decisions.refused("Other", of({ object: owned, subresource: "status" }), new Error("no"));
  assert.deepEqual([log.of(node).length, log.of(pod).length], [1, 2], "of an update that of the object itself");
  const ofStatus = log.of(pod).find(({ source }) => source === "admission/Other");
  assert.deepEqual(ofStatus?.details, { operation: "UPDATE", resource: "pods/status" });
});

for (const [plugin, resource, namespace] of [
  ["ResourceQuota", "resourcequotas", "web"],
  ["LimitRanger", "limitranges", "web"],
  ["PodSecurityPolicy", "podsecuritypolicies", ""],
  ["MutatingAdmissionWebhook", "mutatingwebhookconfigurations", ""],
  ["ValidatingAdmissionWebhook", "validatingwebhookconfigurations", ""],
] as const) {
  test(`the text of a refusal of ${plugin} is for those who may read ${resource}`, () => {
    const log = new DecisionLog({ component: "kube-apiserver", clock: realClock });
    const attributes = { operation: "CREATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "a" };
    const decisions = new AdmissionDecisions(log, { ofKind: () => [] });
    const refused = { ...attributes, signal: new AbortController().signal } as unknown as AdmissionAttributes;
    decisions.refused(plugin, refused, new Error("no"));
    const [found] = log.of({ group: "", resource: "pods", kind: "Pod", namespace: "web", name: "a", uid: "" });
    hasFields(found?.related, [{ resource, namespace, name: "" }]);
  });
}

test("a webhook that changed an object in both rounds is named once", () => {
  const log = new DecisionLog({ component: "kube-apiserver", clock: realClock });
  const change = (webhook: string, path: string) => ({ configuration: "hooks", webhook, paths: [path] });
  const changes = [change("a.example.com", "/x"), change("b.example.com", "/y"), change("a.example.com", "/z")];
  const attributes = { operation: "CREATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "a", changes };
  new AdmissionDecisions(log, { ofKind: () => [] }).admitted(attributes as unknown as AdmissionAttributes);
  const [found] = log.of({ group: "", resource: "pods", kind: "Pod", namespace: "web", name: "a", uid: "" });
  assert.equal(found?.summary, "changed by the webhook a.example.com, b.example.com");
});

test("mutating plugins that pass do not forget a refusal", async () => {
  const log = new DecisionLog({ component: "kube-apiserver", clock: realClock });
  const plugin = {
    name: "Both",
    handles: () => true,
    async admit() {},
    async validate() {
      throw forbidden(pods, "a", "no");
    },
  };
  const chain = newAdmissionChain([plugin], newMetricsRegistry(), new AdmissionDecisions(log, { ofKind: () => [] }));
  const object = { metadata: { name: "a" } };
  const attributes = {
    ...{ operation: "CREATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "a", object },
    ...{ user: { name: "ann", groups: [] }, signal: new AbortController().signal },
  } as unknown as AdmissionAttributes;
  await assert.rejects(chain.validate(attributes));
  await chain.mutate(attributes);
  assert.equal(log.entries, 1);
});

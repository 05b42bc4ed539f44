/** Objects in which one list or map has as many items as a request allows: no step of a create or an update is a long turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { cpuMsOf, leastOf } from "@coxswain/apimachinery/testing/cpu-time";
import { contextOf, resourcesForTests } from "../testing/kind-rules.ts";
import { mostItems, repeatedFields, withRepeated } from "../testing/repeated-fields.ts";
import { longestTurnMs, sized } from "../testing/turn-sizes.ts";
import { beforeCreate } from "./generic/before-create.ts";
import { beforeUpdate } from "./generic/before-update.ts";
import type { Strategy } from "./generic/strategy.ts";

const container = { name: "c", image: "i" };
const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const webhook = {
  ...{ name: "a.b.c", sideEffects: "None", admissionReviewVersions: ["v1"], clientConfig: { url: "https://127.0.0.1:1" } },
  rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
};

for (const { resource, object, fields } of [
  { resource: "configmaps", object: {}, fields: ["metadata.labels", "metadata.annotations", "metadata.finalizers"] },
  {
    resource: "nodes",
    object: {},
    fields: ["status.capacity", "status.allocatable", "status.addresses", "spec.podCIDRs", "spec.taints"],
  },
  {
    resource: "persistentvolumes",
    object: { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], nfs: { server: "s", path: "/p" } } },
    fields: ["spec.capacity"],
  },
  {
    resource: "persistentvolumeclaims",
    object: { spec: claim },
    fields: ["spec.selector.matchLabels", "spec.resources.limits", "status.capacity"],
  },
  {
    resource: "pods",
    object: { spec: { containers: [container] } },
    fields: [
      "spec.nodeSelector",
      "spec.overhead",
      "spec.dnsConfig.nameservers",
      "spec.containers[].livenessProbe.httpGet.httpHeaders",
      "spec.volumes[].csi.volumeAttributes",
      "spec.volumes[].ephemeral.volumeClaimTemplate.spec.selector.matchLabels",
      "status.podIPs",
    ],
  },
  { resource: "services", object: { spec: { ports: [{ port: 80 }] } }, fields: ["spec.externalIPs", "spec.clusterIPs"] },
  {
    resource: "validatingwebhookconfigurations",
    object: { webhooks: [webhook] },
    fields: ["webhooks[].admissionReviewVersions"],
  },
]) {
  for (const field of fields) {
    test(`${resource} with a large ${field}: a create and an update take no long turn`, async (t) => {
      const longest = await leastOf(longestTurnMs, async () => longestStepMs(resource, object, field));
      t.diagnostic(`${longest} ms`);
      assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
    });
  }
}

/** CPU time of the longest step of a create, an update that changes each item, one that changes nothing, and one of the status. */
function longestStepMs(resource: string, valid: object, name: string): number {
  const definition = resourcesForTests.find((one) => one.resource === resource) ?? assert.fail(resource);
  const { group, kind, hub, statusStrategy } = definition;
  const strategy = definition.strategy ?? assert.fail(resource);
  const version = definition.versions.find((one) => one.version === hub);
  const gvk = { group, version: hub, kind };
  const field = repeatedFields(scheme.kind(gvk) ?? assert.fail(kind)).find((one) => one.name === name) ?? assert.fail(name);
  const count = sized(mostItems(valid, field));
  const made = (mark: string): KubeObject => {
    const object = withRepeated(valid, field, count, mark) as unknown as KubeObject;
    object.metadata = {
      ...{ name: "x", ...(definition.namespaced && { namespace: "default" }), ...object.metadata },
      ...{ uid: "1", resourceVersion: "1" },
    };
    version?.defaults?.(object);
    return Object.assign(object, { apiVersion: formatGroupVersion(gvk), kind });
  };
  const ctx = contextOf(definition, hub);
  const first = made("");
  const next = made("n");
  const update = (by: Strategy, to: KubeObject) => longestOf(beforeUpdate(definition, by, ctx, structuredClone(to), first));
  return Math.max(
    longestOf(beforeCreate(definition, strategy, ctx, structuredClone(first))),
    update(strategy, next),
    update(strategy, first),
    statusStrategy === undefined ? 0 : update(statusStrategy, next),
  );
}

/** A refusal ends the steps. */
function longestOf(steps: Steps<unknown>): number {
  let longest = 0;
  for (let isDone = false; !isDone; ) {
    const ms = cpuMsOf(() => {
      try {
        isDone = steps.next().done === true;
      } catch (err) {
        if (!(err instanceof StatusError)) throw err;
        isDone = true;
      }
    });
    longest = Math.max(longest, ms);
  }
  return longest;
}

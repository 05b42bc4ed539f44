import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim, Volume } from "../objects/schema/kinds/core/v1.ts";
import { aPod } from "../testing/builders.ts";
import { claimNamesOf, notMadeFor } from "./claims-of-pod.ts";

const volumes = [
  { name: "data", persistentVolumeClaim: { claimName: "stored" } },
  { name: "config", configMap: { name: "c" } },
  { name: "scratch", ephemeral: {} },
] as Volume[];
const made = aPod({ name: "web", namespace: "shop", uid: "u" });
const pod = { ...made, spec: { ...made.spec, volumes } };

test("a pod's claims are those that it names and those made for its ephemeral volumes, in order", () => {
  assert.deepEqual(claimNamesOf(pod), ["stored", "web-scratch"]);
  assert.deepEqual(claimNamesOf(aPod({ name: "web" })), []);
});

for (const { name, namespace = "shop", owner, isOwn } of [
  { name: "that the pod controls", owner: { uid: "u", controller: true }, isOwn: true },
  { name: "that the pod only owns", owner: { uid: "u" }, isOwn: false },
  { name: "of a pod of the same name before", owner: { uid: "old", controller: true }, isOwn: false },
  { name: "of another namespace", namespace: "web", owner: { uid: "u", controller: true }, isOwn: false },
]) {
  test(`a claim ${name} is ${isOwn ? "" : "not "}its own`, () => {
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "web", ...owner }];
    const claim = { metadata: { name: "web-scratch", namespace, ownerReferences } } as PersistentVolumeClaim;
    const text = `PVC ${namespace}/web-scratch was not created for pod shop/web (pod is not owner)`;
    assert.equal(notMadeFor(pod, claim), isOwn ? undefined : text);
  });
}

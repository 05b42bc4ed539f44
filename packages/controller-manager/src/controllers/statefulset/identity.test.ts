import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod, aStatefulSet } from "@coxswain/apimachinery/testing/builders";
import {
  claimsOf,
  hasIdentity,
  hasStorage,
  isMember,
  newClaim,
  ordinalOf,
  parsePodName,
  withIdentity,
  withStorage,
} from "./identity.ts";
import { isOutdated } from "./status.ts";

for (const [name, want] of [
  ["web-0", { parent: "web", ordinal: 0 }],
  ["my-web-12", { parent: "my-web", ordinal: 12 }],
  ["web-2147483647", { parent: "web", ordinal: 2147483647 }],
  ["web-2147483648", { parent: "web", ordinal: -1 }],
  ["web-007", { parent: "web", ordinal: 7 }],
  ["-1", { parent: "", ordinal: 1 }],
  ["web", undefined],
  ["web-", undefined],
  ["web-x", undefined],
  ["web-1x", undefined],
  ["12", undefined],
] as const) {
  test(`the name ${name} is ${want === undefined ? "no set's" : `that of ${want.parent}, ${want.ordinal}`}`, () => {
    assert.deepEqual(parsePodName(name), want);
    assert.equal(ordinalOf(aPod({ name })), want?.ordinal ?? -1);
  });
}

const template = (name: string, more: Partial<PersistentVolumeClaim["metadata"]> = {}): PersistentVolumeClaim => ({
  metadata: { name, ...more },
  spec: { accessModes: ["ReadWriteOnce"] },
});
const base = aStatefulSet({ name: "web" });
const set: StatefulSet = { ...base, spec: { ...base.spec, volumeClaimTemplates: [template("data"), template("log")] } };
const label = "statefulset.kubernetes.io/pod-name";
const member = (name: string, labels: Record<string, string> = { [label]: name }, namespace = "default"): Pod =>
  aPod({ name, labels, namespace });

for (const { name, pod, is, has } of [
  { name: "its first pod", pod: member("web-0"), is: true, has: true },
  { name: "a pod without the label of its name", pod: member("web-0", {}), is: true, has: false },
  { name: "a pod with the label of another one", pod: member("web-0", { [label]: "web-1" }), is: true, has: false },
  { name: "a pod of another namespace", pod: member("web-0", { [label]: "web-0" }, "other"), is: true, has: false },
  { name: "a pod whose number has zeros in front", pod: member("web-00"), is: true, has: false },
  { name: "a pod whose number is too large", pod: member("web-2147483648"), is: true, has: false },
  { name: "a pod of a set of a longer name", pod: member("my-web-0"), is: false, has: false },
  { name: "a pod without a number", pod: member("web"), is: false, has: false },
]) {
  test(`${name} is ${is ? "" : "not "}a member of the set, ${has ? "with" : "without"} its identity`, () => {
    assert.deepEqual([isMember(set, pod), hasIdentity(set, pod)], [is, has]);
  });
}

test("a pod gets the name, namespace and label of its number, beside its own labels", () => {
  const { metadata } = withIdentity(set, aPod({ name: "web-1", namespace: "other", labels: { app: "web", [label]: "x" } }));
  assert.deepEqual([metadata.name, metadata.namespace, metadata.labels], ["web-1", "default", { app: "web", [label]: "web-1" }]);
});

test("each template makes a claim of the pod; of two with the same name the last", () => {
  const twice = {
    ...set,
    spec: { ...set.spec, volumeClaimTemplates: [template("data"), template("data", { labels: { last: "yes" } })] },
  };
  const claims = claimsOf(twice, 3);
  assert.deepEqual([...claims.keys()], ["data"]);
  assert.deepEqual(newClaim(twice, claims.get("data")!), {
    metadata: { name: "data-web-3", namespace: "default", labels: { last: "yes", ...set.spec.selector?.matchLabels } },
    spec: { accessModes: ["ReadWriteOnce"] },
  });
  assert.deepEqual(
    [...claimsOf(set, 0).values()].map(({ name }) => name),
    ["data-web-0", "log-web-0"],
  );
  assert.equal(claimsOf(base, 0).size, 0);
});

const volume = (name: string, claimName?: string) => ({
  name,
  ...(claimName === undefined ? { emptyDir: {} } : { persistentVolumeClaim: { claimName } }),
});
for (const { name, volumes, want } of [
  { name: "both claims", volumes: [volume("data", "data-web-0"), volume("log", "log-web-0")], want: true },
  { name: "more than its claims", volumes: [volume("x"), volume("log", "log-web-0"), volume("data", "data-web-0")], want: true },
  { name: "the first claim alone", volumes: [volume("data", "data-web-0")], want: false },
  { name: "the claim of another pod", volumes: [volume("data", "data-web-0"), volume("log", "log-web-1")], want: false },
  { name: "another kind of volume of the name", volumes: [volume("data", "data-web-0"), volume("log")], want: false },
  { name: "no volumes", volumes: [], want: false },
]) {
  test(`a pod with ${name} ${want ? "has" : "lacks"} its storage`, () => {
    assert.equal(hasStorage(set, aPod({ name: "web-0", spec: { volumes } })), want);
    assert.equal(hasStorage(base, aPod({ name: "web-0", spec: { volumes } })), true, "without templates there is none");
  });
}

test("claims take the place of volumes of their names, and other volumes stay", () => {
  const pod = aPod({ name: "web-0", spec: { volumes: [volume("log"), volume("tmp")] } });
  assert.deepEqual(withStorage(set, pod).spec.volumes, [volume("data", "data-web-0"), volume("log", "log-web-0"), volume("tmp")]);
  assert.equal(withStorage(base, pod), pod);
});

const counts = {
  observedGeneration: 2,
  replicas: 3,
  readyReplicas: 3,
  availableReplicas: 3,
  currentReplicas: 3,
  updatedReplicas: 3,
  currentRevision: "a",
  updateRevision: "a",
  collisionCount: 0,
};
const zero = { replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0 };
for (const { name, stored, next = counts, want } of [
  { name: "the same", stored: counts, want: false },
  { name: "that of an older generation", stored: { ...counts, observedGeneration: 1 }, want: true },
  { name: "that of a later generation", stored: { ...counts, observedGeneration: 3 }, want: false },
  ...Object.keys(zero).map((field) => ({ name: `one with fewer ${field}`, stored: { ...counts, [field]: 2 }, want: true })),
  { name: "one of another current revision", stored: { ...counts, currentRevision: "b" }, want: true },
  { name: "one of another update revision", stored: { ...counts, updateRevision: "b" }, want: true },
  { name: "one of fewer collisions", stored: counts, next: { ...counts, collisionCount: 1 }, want: true },
  { name: "none", stored: undefined, want: true },
  {
    name: "one without the fields that are 0 or empty",
    stored: { observedGeneration: 2, replicas: 0, availableReplicas: 0 },
    next: { ...counts, ...zero, currentRevision: "", updateRevision: "" },
    want: false,
  },
]) {
  test(`a stored status that is ${name} is ${want ? "" : "not "}outdated`, () => {
    const { status: _, ...without } = set;
    assert.equal(isOutdated({ ...without, ...(stored && { status: stored }) }, next), want);
  });
}

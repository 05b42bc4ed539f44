import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { aDeployment, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import {
  annotationsOfNewSet,
  countIn,
  isCopied,
  maxRevision,
  parseRevision,
  revisionAnnotation,
  revisionHistoryAnnotation,
  revisionOf,
} from "./annotations.ts";
import { findingNewSet, planCleanup, sameTemplate } from "./history.ts";
import { buildNewSet } from "./new-replica-set.ts";

function set(
  name: string,
  options: { image?: string; revision?: number; replicas?: number; pods?: number; minute?: number; observed?: number } = {},
): ReplicaSet {
  const { image = "busybox", revision = 1, replicas = 0, pods = replicas, minute = 0, observed = 1 } = options;
  const replicaSet = aReplicaSet({
    name,
    replicas,
    generation: 1,
    createdAt: `2024-01-01T00:${String(minute).padStart(2, "0")}:00Z`,
    annotations: { [revisionAnnotation]: String(revision) },
  });
  replicaSet.spec.template = {
    metadata: { labels: { app: "web", "pod-template-hash": name } },
    spec: { containers: [{ name: "main", image }] },
  };
  replicaSet.status = { replicas: pods, observedGeneration: observed };
  return replicaSet;
}

test("the set of the same template is the new one, whatever its hash; the oldest if there are two", () => {
  const sets = [set("younger", { minute: 2 }), set("other", { image: "nginx" }), set("older", { minute: 1 })];
  assert.equal(atOnce(findingNewSet(aDeployment(), sets))?.metadata.name, "older");
  assert.equal(atOnce(findingNewSet(aDeployment({ image: "redis" }), sets)), undefined);
});

test("templates that differ in a label, or in other metadata, are different ones; sets are compared in a step each", () => {
  const [more, fewer, annotated] = [set("more"), set("fewer"), set("annotated")];
  more.spec.template!.metadata.labels!["x"] = "y";
  delete fewer.spec.template!.metadata.labels!["app"];
  annotated.spec.template!.metadata.annotations = { x: "y" };
  const steps = findingNewSet(aDeployment(), [more, fewer, annotated]);
  assert.deepEqual(
    [...Array(4)].map(() => steps.next().done),
    [false, false, false, true],
  );
});

for (const { name, sets, limit, want } of [
  { name: "nothing within the limit", sets: [set("a"), set("b")], limit: 2, want: [] },
  {
    name: "the lowest revisions beyond it",
    sets: [set("c", { revision: 3 }), set("a"), set("b", { revision: 2 })],
    limit: 1,
    want: ["a", "b"],
  },
  {
    name: "nothing for a set that is being deleted already",
    sets: [
      { ...set("a"), metadata: { ...set("a").metadata, deletionTimestamp: "2024-01-01T00:01:00Z" } },
      set("b", { revision: 2 }),
    ],
    limit: 1,
    want: [],
  },
  { name: "nothing that still has pods", sets: [set("a", { pods: 1 }), set("b", { revision: 2 })], limit: 1, want: [] },
  {
    name: "nothing that is to get pods",
    sets: [set("a", { replicas: 1, pods: 0 }), set("b", { revision: 2 })],
    limit: 1,
    want: [],
  },
  { name: "the older of the same revision", sets: [set("b", { minute: 2 }), set("a", { minute: 1 })], limit: 1, want: ["a"] },
  { name: "nothing whose status is old", sets: [set("a", { observed: 0 }), set("b", { revision: 2 })], limit: 0, want: ["b"] },
]) {
  test(`history: removes ${name}`, () => {
    const removed = planCleanup(aDeployment({ spec: { revisionHistoryLimit: limit } }), sets);
    assert.deepEqual(
      removed.map(({ metadata }) => metadata.name),
      want,
    );
  });
}

test("history: without a limit nothing is removed", () => {
  const { revisionHistoryLimit: _, ...spec } = aDeployment().spec;
  assert.deepEqual(planCleanup({ ...aDeployment(), spec }, [set("a"), set("b", { revision: 2 })]), []);
});

test("revisions: the highest counts, what is no number does not", () => {
  const odd = set("odd");
  odd.metadata.annotations = { [revisionAnnotation]: "x" };
  assert.equal(maxRevision([set("a", { revision: 2 }), odd, set("b", { revision: 7 })]), 7n);
  assert.equal(maxRevision([]), 0n);
});

test("revisions have 64 bits", () => {
  const sets = ["3546343826724305832", "9223372036854775808"].map((revision) => {
    const large = set(revision);
    large.metadata.annotations = { [revisionAnnotation]: revision };
    return large;
  });
  assert.equal(maxRevision(sets), 3546343826724305832n);
  const next = annotationsOfNewSet(aDeployment({}), { [revisionAnnotation]: "3546343826724305832" }, maxRevision(sets) + 1n);
  assert.equal(next[revisionAnnotation], "3546343826724305833");
});

test("a set that becomes the newest again gets a new revision and remembers the old ones", () => {
  const deployment = aDeployment({
    annotations: {
      team: "a",
      [revisionAnnotation]: "5",
      [revisionHistoryAnnotation]: "4",
      "deployment.kubernetes.io/desired-replicas": "1",
      "deployment.kubernetes.io/max-replicas": "2",
      "deprecated.deployment.rollback.to": "3",
      "kubectl.kubernetes.io/last-applied-configuration": "{}",
    },
  });
  const first = annotationsOfNewSet(deployment, { [revisionAnnotation]: "1" }, 6n);
  assert.deepEqual(first, { team: "a", [revisionAnnotation]: "6", [revisionHistoryAnnotation]: "1" });
  assert.equal(annotationsOfNewSet(deployment, first, 8n)[revisionHistoryAnnotation], "1,6");
  assert.equal(annotationsOfNewSet(deployment, first, 3n)[revisionAnnotation], "6");
  assert.deepEqual(annotationsOfNewSet(deployment, first, 6n), first);
  assert.equal(annotationsOfNewSet(deployment, { [revisionAnnotation]: "" }, 6n)[revisionAnnotation], "6", "an empty one is 0");
  assert.equal(
    annotationsOfNewSet(deployment, { [revisionAnnotation]: "x" }, 6n)[revisionAnnotation],
    "x",
    "malformed, it stays",
  );
});

test("the oldest revisions leave a history that would be longer than 2,000 characters", () => {
  const full = Array.from({ length: 400 }, (_, i) => String(1000 + i)).join(); // 1,999 characters
  const annotations = { [revisionAnnotation]: "5000", [revisionHistoryAnnotation]: full };
  const history = annotationsOfNewSet(aDeployment({}), annotations, 6000n)[revisionHistoryAnnotation];
  assert.equal(history, `${full.slice("1000,".length)},5000`);
  const shorter = full.slice("1000,".length); // 1,994 characters
  for (const [revision, kept] of [
    ["50000", shorter],
    ["500000", shorter.slice("1001,".length)],
  ] as const) {
    const before = { [revisionAnnotation]: revision, [revisionHistoryAnnotation]: shorter };
    assert.equal(annotationsOfNewSet(aDeployment({}), before, 600_000n)[revisionHistoryAnnotation], `${kept},${revision}`);
  }
});

test("a new set has the hash in its name, selector, labels and template, and its counts for later", () => {
  const built = buildNewSet(aDeployment({ name: "web", replicas: 4 }), [], 1n);
  const hash = built.metadata.labels?.["pod-template-hash"] ?? "";
  assert.match(hash, /^[bcdfghjklmnpqrstvwxz2456789]{8,10}$/);
  assert.equal(built.metadata.name, `web-${hash}`);
  assert.deepEqual(built.spec.selector?.matchLabels, { app: "web", "pod-template-hash": hash });
  assert.deepEqual(built.spec.template?.metadata?.labels, { app: "web", "pod-template-hash": hash });
  assert.deepEqual(built.metadata.annotations, {
    "deployment.kubernetes.io/revision": "1",
    "deployment.kubernetes.io/desired-replicas": "4",
    "deployment.kubernetes.io/max-replicas": "5",
  });
  assert.equal(built.spec.replicas, 4);
});

const podSpec = { containers: [{ name: "main", image: "busybox" }] };
for (const { name, a, b, want } of [
  { name: "the hash alone", a: { labels: { app: "web", "pod-template-hash": "x" } }, b: { labels: { app: "web" } }, want: true },
  { name: "no labels in place of none", a: {}, b: { labels: {} }, want: true },
  { name: "the value of a label", a: { labels: { app: "web" } }, b: { labels: { app: "api" } }, want: false },
  { name: "a label more in the first", a: { labels: { app: "web", x: "y" } }, b: { labels: { app: "web" } }, want: false },
  { name: "a label more in the second", a: { labels: { app: "web" } }, b: { labels: { app: "web", x: "y" } }, want: false },
  { name: "a label of an inherited name", a: { labels: {} }, b: { labels: { toString: "x" } }, want: false },
  { name: "an annotation", a: { annotations: { x: "y" } }, b: {}, want: false },
]) {
  test(`templates that differ in ${name} are ${want ? "the same" : "two"}`, () => {
    assert.equal(sameTemplate({ metadata: a, spec: podSpec }, { metadata: b, spec: podSpec }), want);
    assert.equal(sameTemplate({ metadata: a, spec: podSpec }, { metadata: a, spec: { ...podSpec, hostNetwork: true } }), false);
  });
}

for (const [text, revision, count] of [
  [undefined, 0n, undefined],
  ["", 0n, undefined],
  ["0", 0n, 0],
  ["12", 12n, 12],
  ["+12", 12n, undefined],
  ["-1", -1n, -1],
  ["1234567890", 1234567890n, 1234567890],
  ["12345678901", 12345678901n, undefined],
  ["-9223372036854775808", -9223372036854775808n, undefined],
  ["-9223372036854775809", undefined, undefined],
  ["1.5", undefined, undefined],
  [" 1", undefined, undefined],
  ["1x", undefined, undefined],
] as const) {
  test(`an annotation ${text === undefined ? "that is absent" : JSON.stringify(text)} is the revision ${revision} and the count ${count}`, () => {
    const { annotations: _, ...metadata } = set("a").metadata;
    const annotated = {
      ...set("a"),
      metadata: { ...metadata, ...(text !== undefined && { annotations: { [revisionAnnotation]: text } }) },
    };
    assert.deepEqual([revisionOf(annotated), countIn(annotated, revisionAnnotation)], [revision, count]);
    if (text) assert.equal(parseRevision(text), revision);
  });
}

test("annotations about a deployment's own size and history are not copied to its sets, others are", () => {
  const own = ["revision", "revision-history", "desired-replicas", "max-replicas"].map(
    (name) => `deployment.kubernetes.io/${name}`,
  );
  for (const name of [...own, "deprecated.deployment.rollback.to", "kubectl.kubernetes.io/last-applied-configuration"])
    assert.equal(isCopied(name), false, name);
  for (const name of ["kubernetes.io/change-cause", "deployment.kubernetes.io/other"]) assert.equal(isCopied(name), true, name);
});

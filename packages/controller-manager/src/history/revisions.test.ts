import assert from "node:assert/strict";
import { test } from "node:test";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { revisionData, templateOf, withData } from "./revision-data.ts";
import { byRevision, newRevision, nextRevision, oldestIdle } from "./revisions.ts";

const template = { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "main", image: "busybox" }] } };
const revision = (name: string, number: number, createdAt = "2024-01-01T00:00:00Z"): ControllerRevision => ({
  metadata: { name, creationTimestamp: createdAt },
  revision: number,
});

const sameData = (a: unknown, b: unknown): boolean => atOnce(withData([{ metadata: {}, data: a, revision: 1 }], b)).length === 1;

test("keeps the template as a patch that replaces it, with what Go writes of a template and with sorted keys", () => {
  const text =
    '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"db"}},"spec":{"containers":[{"image":"busybox","name":"main","resources":{}}]}}}}';
  assert.equal(JSON.stringify(revisionData(template)), text);
  const read = { ...template, metadata: { ...template.metadata, creationTimestamp: null } };
  assert.equal(JSON.stringify(revisionData(read)), text, "however the template was read");
  const kept = templateOf({ data: revisionData(template) });
  assert.deepEqual(kept?.metadata, { creationTimestamp: null, labels: { app: "db" } });
  assert.equal(kept?.spec?.containers[0]?.image, "busybox");
  assert.equal(templateOf({ data: { spec: {} } }), undefined);
});

for (const { name, other, same } of [
  { name: "the order of keys", other: { spec: template.spec, metadata: template.metadata }, same: true },
  {
    name: "a null that another writer put",
    other: { ...template, metadata: { ...template.metadata, creationTimestamp: null } },
    same: true,
  },
  {
    name: "a struct that another writer left out",
    other: { ...template, spec: { containers: [{ name: "main", image: "busybox", resources: {} }] } },
    same: true,
  },
  { name: "another label", other: { ...template, metadata: { labels: { app: "db", v: "2" } } }, same: false },
  {
    name: "a volume of no kind and one in memory",
    other: { ...template, spec: { ...template.spec, volumes: [{ name: "x", emptyDir: {} }] } },
    same: false,
  },
]) {
  test(`${name} ${same ? "makes no other" : "makes another"} revision`, () => {
    const base = name.includes("volume") ? { ...template, spec: { ...template.spec, volumes: [{ name: "x" }] } } : template;
    assert.equal(sameData(revisionData(base), revisionData(other)), same);
    assert.equal(sameData(structuredClone(revisionData(base)), revisionData(other)), same, "as read from the server");
    assert.equal(sameData({ spec: { template: base } }, { spec: { template: other } }), same, "as others write it");
  });
}

for (const data of [
  undefined,
  null,
  5,
  "x",
  {},
  { spec: { template: null } },
  { spec: { template: { spec: { containers: 7 } } } },
]) {
  test(`data that is no template equals only itself: ${JSON.stringify(data)}`, () => {
    assert.equal(sameData(data, structuredClone(data)), true);
    assert.equal(sameData(data, revisionData(template)), false);
  });
}

test("of many revisions those with the same data are found, one read in each step", () => {
  const other = revisionData({ ...template, metadata: { labels: { app: "db", v: "2" } } });
  const revisions = [other, revisionData(template), other, revisionData(template)].map((data, revision) => ({
    metadata: {},
    data,
    revision,
  }));
  const steps = [...withData(revisions, revisionData(template))];
  assert.equal(steps.length, 4);
  assert.deepEqual(
    atOnce(withData(revisions, revisionData(template))).map(({ revision }) => revision),
    [1, 3],
  );
});

test("is named after its owner and its hash, and carries the owner's annotations", () => {
  const owner = aPod({ name: "x".repeat(240), namespace: "shop", annotations: { "kubernetes.io/change-cause": "why" } });
  const made = newRevision(owner, { group: "apps", version: "v1", kind: "DaemonSet" }, template, {
    data: revisionData(template),
    hash: "abc",
    hashLabel: "controller-revision-hash",
    revision: 4,
  });
  assert.equal(made.metadata.name, `${"x".repeat(223)}-abc`);
  hasFields(made, {
    metadata: {
      namespace: "shop",
      labels: { app: "db", "controller-revision-hash": "abc" },
      annotations: { "kubernetes.io/change-cause": "why" },
      ownerReferences: [{ kind: "DaemonSet", uid: owner.metadata.uid, controller: true }],
    },
    revision: 4,
  });
});

test("counts on from the highest", () => {
  assert.equal(nextRevision([]), 1);
  assert.equal(nextRevision([revision("b", 7), revision("a", 2)]), 8);
});

test("orders by number, then age, then name, and gives up the oldest that nothing runs of", () => {
  const revisions = [
    revision("d", 2),
    revision("c", 1, "2024-01-02T00:00:00Z"),
    revision("b", 1),
    revision("a", 1),
    revision("e", 3),
  ];
  assert.deepEqual(
    revisions.toSorted(byRevision).map(({ metadata }) => metadata.name),
    ["a", "b", "c", "d", "e"],
  );
  const idle = oldestIdle(revisions, 2, ({ metadata }) => metadata.name === "a");
  assert.deepEqual(
    idle.map(({ metadata }) => metadata.name),
    ["b", "c"],
  );
  assert.deepEqual(
    oldestIdle(revisions, -1, () => false),
    [],
  );
});

test("a number that needs all 64 bits sorts as the others do", () => {
  const largest = revision("z", 9223372036854775807n as unknown as number); // decoded as bigint
  assert.deepEqual(
    [largest, revision("a", 2)].toSorted(byRevision).map(({ metadata }) => metadata.name),
    ["a", "z"],
  );
  assert.ok(nextRevision([largest, revision("a", 2)]) > 2);
});

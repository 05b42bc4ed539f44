import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import { blockingDependents, type GraphNode, OwnerGraph } from "./graph.ts";
import { decideDeletion, type OwnerState } from "./plan.ts";

const reference = (uid: string, extra: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  name: uid,
  uid,
  ...extra,
});

/** Observes an object whose name is its uid. */
function see(graph: OwnerGraph, uid: string, owners: string[] = [], metadata: ObjectMeta = {}, kind = "ReplicaSet") {
  const identity = { apiVersion: kind === "Pod" ? "v1" : "apps/v1", kind, namespace: "default", name: uid, uid };
  const references = owners.map((owner) => reference(owner, { blockOwnerDeletion: true }));
  return graph.observe(identity, { ...(references.length > 0 ? { ownerReferences: references } : {}), ...metadata });
}
const foreground: ObjectMeta = { deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["foregroundDeletion"] };
const none = { attemptToDelete: [], attemptToOrphan: [] };

test("an object with a known owner, or none, needs no attempt to delete", () => {
  const graph = new OwnerGraph();
  assert.deepEqual(see(graph, "rs"), none);
  assert.deepEqual(see(graph, "pod", ["rs"]), none);
});

test("an owner that is in no cache is looked up", () => {
  const graph = new OwnerGraph();
  assert.deepEqual(see(graph, "pod", ["rs"]).attemptToDelete, ["rs"]);
  assert.equal(graph.get("rs")?.virtual, true);
  assert.deepEqual(see(graph, "rs"), none);
  assert.equal(graph.get("rs")?.virtual, false);
  assert.equal(graph.get("rs")?.dependents.size, 1);
});

test("an owner that is not what its reference says is no owner", () => {
  const graph = new OwnerGraph();
  see(graph, "pod", ["rs"]);
  const identity = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "other", name: "rs", uid: "rs" };
  assert.deepEqual(graph.observe(identity, {}).attemptToDelete, ["pod"]);
  assert.deepEqual(see(graph, "late", ["rs"]).attemptToDelete, ["late"]);
});

test("a reference to an owner in another namespace is misplaced, one with another name is not", () => {
  const graph = new OwnerGraph();
  see(graph, "early", ["rs"]);
  const identity = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "other", name: "rs", uid: "rs" };
  const misplaced = (effects: ReturnType<typeof see>) =>
    effects.misplaced?.map(({ dependent, owner }) => [dependent.uid, owner.uid]);
  assert.deepEqual(misplaced(graph.observe(identity, {})), [["early", "rs"]]);
  assert.deepEqual(misplaced(see(graph, "late", ["rs"])), [["late", "rs"]]);
  see(graph, "near");
  const { attemptToDelete, ...rest } = see(graph, "pod", [], { ownerReferences: [reference("near", { name: "far" })] });
  assert.deepEqual([attemptToDelete, rest], [["pod"], { attemptToOrphan: [] }]);
});

test("when an owner is deleted, its dependents are checked", () => {
  const graph = new OwnerGraph();
  see(graph, "rs");
  see(graph, "a", ["rs"]);
  see(graph, "b", ["rs"]);
  assert.deepEqual(graph.forget("rs").attemptToDelete, ["a", "b"]);
  assert.deepEqual(graph.forget("rs"), none);
});

test("foreground deletion wakes the object and its dependents, once", () => {
  const graph = new OwnerGraph();
  see(graph, "rs");
  see(graph, "pod", ["rs"]);
  assert.deepEqual(see(graph, "rs", [], foreground).attemptToDelete, ["pod", "rs"]);
  assert.deepEqual(see(graph, "rs", [], foreground).attemptToDelete, ["rs"]);
});

test("an owner that waits is checked when a dependent is deleted or no longer blocks", () => {
  const graph = new OwnerGraph();
  see(graph, "rs", [], foreground);
  see(graph, "a", ["rs"]);
  see(graph, "b", ["rs"]);
  assert.deepEqual(
    blockingDependents(graph.get("rs") as GraphNode).map(({ identity }) => identity.uid),
    ["a", "b"],
  );
  assert.deepEqual(graph.forget("a").attemptToDelete, ["rs"]);
  assert.deepEqual(see(graph, "b", [], { ownerReferences: [reference("rs", { blockOwnerDeletion: false })] }).attemptToDelete, [
    "rs",
  ]);
  assert.deepEqual(blockingDependents(graph.get("rs") as GraphNode), []);
});

test("orphaning is requested by the finalizer", () => {
  const graph = new OwnerGraph();
  const metadata = { deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["orphan"] };
  assert.deepEqual(see(graph, "rs", [], metadata), { attemptToDelete: [], attemptToOrphan: ["rs"] });
});

test("forgets virtual owners that are no longer referenced", () => {
  const graph = new OwnerGraph();
  see(graph, "pod", ["rs"]);
  see(graph, "pod");
  assert.equal(graph.get("rs"), undefined);
  assert.equal(graph.size, 1);
  see(graph, "pod", ["one", "two"]);
  see(graph, "pod");
  assert.equal(graph.size, 1);
});

test("an owner reference with a wrong name does not affect other dependents of that owner", () => {
  const graph = new OwnerGraph();
  const wrong = (uid: string, name: string) => see(graph, uid, [], { ownerReferences: [reference("rs", { name })] });
  wrong("liar", "b");
  wrong("other", "c");
  see(graph, "pod", ["rs"]);
  const named = (name: string) => ({ apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "default", name, uid: "rs" });
  assert.equal(graph.get("rs")?.identity.name, "b");
  assert.deepEqual(graph.absent(named("b")), { attemptToDelete: ["liar"], attemptToOrphan: [], lookupAgain: true });
  assert.equal(graph.get("rs")?.identity.name, "c");
  assert.deepEqual(graph.absent(named("c")), { attemptToDelete: ["other"], attemptToOrphan: [], lookupAgain: true });
  assert.equal(graph.get("rs")?.identity.name, "rs");
  // After the last of three names the first one has its turn again.
  assert.deepEqual(graph.absent(named("rs")), { attemptToDelete: ["pod"], attemptToOrphan: [], lookupAgain: true });
  assert.equal(graph.get("rs")?.identity.name, "b");
  see(graph, "rs");
  assert.deepEqual(graph.absent(named("b")), { attemptToDelete: ["liar"], attemptToOrphan: [], lookupAgain: false });
  assert.deepEqual(graph.forget("rs").attemptToDelete, ["liar", "other", "pod"]);
});

test("an owner that is nowhere is forgotten with its last name", () => {
  const graph = new OwnerGraph();
  see(graph, "pod", ["rs"]);
  const identity = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "default", name: "rs", uid: "rs" };
  assert.deepEqual(graph.absent(identity), { attemptToDelete: ["pod"], attemptToOrphan: [], lookupAgain: false });
  assert.equal(graph.get("rs"), undefined);
});

for (const { name, states, finalizers, dependents, want } of [
  { name: "no owners", states: [], want: { do: "keep" } },
  { name: "one that lives", states: ["solid"], want: { do: "keep" } },
  { name: "some that live", states: ["solid", "absent"], want: { do: "drop-owners", owners: [reference("0")] } },
  { name: "none that lives", states: ["absent", "absent"], want: { do: "delete", policy: "Background", unblock: false } },
  {
    name: "none, and the wish to orphan",
    states: ["absent"],
    finalizers: ["orphan"],
    want: { do: "delete", policy: "Orphan", unblock: false },
  },
  {
    name: "none, and the wish for foreground",
    states: ["absent"],
    finalizers: ["foregroundDeletion"],
    want: { do: "delete", policy: "Foreground", unblock: false },
  },
  {
    name: "one that waits, and no dependents",
    states: ["waiting-for-dependents"],
    want: { do: "delete", policy: "Background", unblock: false },
  },
  {
    name: "one that waits, and dependents",
    states: ["waiting-for-dependents"],
    dependents: [false],
    want: { do: "delete", policy: "Foreground", unblock: false },
  },
  {
    name: "one that waits and one that is gone, and dependents",
    states: ["waiting-for-dependents", "absent"],
    dependents: [false],
    want: { do: "delete", policy: "Foreground", unblock: false },
  },
  {
    name: "an absent owner and both finalizers",
    states: ["absent"],
    finalizers: ["foregroundDeletion", "orphan"],
    want: { do: "delete", policy: "Orphan", unblock: false },
  },
  {
    name: "one that waits in a circle with one of two dependents",
    states: ["waiting-for-dependents"],
    dependents: [false, true],
    want: { do: "delete", policy: "Foreground", unblock: true },
  },
  {
    name: "one that waits in a circle",
    states: ["waiting-for-dependents"],
    dependents: [true],
    want: { do: "delete", policy: "Foreground", unblock: true },
  },
] as { name: string; states: OwnerState[]; finalizers?: string[]; dependents?: boolean[]; want: unknown }[]) {
  test(`an object with ${name}: ${JSON.stringify(want)}`, () => {
    const nodeOf = (deletingDependents: boolean): GraphNode => ({
      identity: { apiVersion: "v1", kind: "Pod", namespace: "", name: "", uid: "" },
      owners: [],
      dependents: new Set(),
      beingDeleted: false,
      deletingDependents,
      virtual: false,
    });
    const node = { ...nodeOf(false), dependents: new Set((dependents ?? []).map(nodeOf)) };
    const owners = states.map((state, i) => [reference(String(i)), state] as const);
    assert.deepEqual(decideDeletion(node, { finalizers: finalizers ?? [] }, owners), want);
  });
}

test("an owner is checked when a blocking reference to it is removed, not when another one is", () => {
  const graph = new OwnerGraph();
  for (const uid of ["blocked", "other"]) see(graph, uid);
  const identity = { apiVersion: "v1", kind: "Pod", namespace: "default", name: "pod", uid: "pod" };
  const [blocked, other] = [reference("blocked", { blockOwnerDeletion: true }), reference("other")];
  graph.observe(identity, { ownerReferences: [blocked, other] });
  assert.deepEqual(graph.observe(identity, { ownerReferences: [blocked] }).attemptToDelete, []);
  assert.deepEqual(graph.observe(identity, {}).attemptToDelete, ["blocked"]);
});

test("both owners that a dependent no longer blocks are checked", () => {
  const graph = new OwnerGraph();
  for (const uid of ["first", "second"]) see(graph, uid);
  const identity = { apiVersion: "v1", kind: "Pod", namespace: "default", name: "pod", uid: "pod" };
  const both = ["first", "second"].map((uid) => reference(uid, { blockOwnerDeletion: true }));
  graph.observe(identity, { ownerReferences: both });
  const free = both.map((owner) => ({ ...owner, blockOwnerDeletion: false }));
  assert.deepEqual(graph.observe(identity, { ownerReferences: free }).attemptToDelete, ["first", "second"]);
});

test("foreground deletion wakes every dependent", () => {
  const graph = new OwnerGraph();
  see(graph, "rs");
  for (const uid of ["a", "b", "c"]) see(graph, uid, ["rs"]);
  assert.deepEqual(see(graph, "rs", [], foreground).attemptToDelete.toSorted(), ["a", "b", "c", "rs"]);
});

test("two owners that wait are both checked when their dependent is deleted, and each is blocked by its own reference alone", () => {
  const graph = new OwnerGraph();
  for (const uid of ["a", "b"]) see(graph, uid, [], foreground);
  const references = [reference("a"), reference("b", { blockOwnerDeletion: true })];
  see(graph, "pod", [], { ownerReferences: references });
  const blocking = (uid: string) => blockingDependents(graph.get(uid) as GraphNode).length;
  assert.deepEqual([blocking("a"), blocking("b")], [0, 1]);
  assert.deepEqual(graph.forget("pod").attemptToDelete, ["a", "b"]);
});

test("an owner may be named in another version of its group", () => {
  const graph = new OwnerGraph();
  see(graph, "rs");
  assert.deepEqual(see(graph, "pod", [], { ownerReferences: [reference("rs", { apiVersion: "apps/v1beta1" })] }), none);
  assert.deepEqual(
    see(graph, "other", [], { ownerReferences: [reference("rs", { apiVersion: "extensions/v1beta1" })] }).attemptToDelete,
    ["other"],
  );
});

test("an owner that is looked for already is not looked for again because of another reference or name", () => {
  const graph = new OwnerGraph();
  see(graph, "pod", ["rs"]);
  assert.deepEqual(see(graph, "pod", ["rs", "second"]).attemptToDelete, ["second"]);
  assert.deepEqual(see(graph, "liar", [], { ownerReferences: [reference("rs", { name: "b" })] }), none);
});

test("an object with both finalizers is orphaned and waits for its dependents", () => {
  const graph = new OwnerGraph();
  see(graph, "rs");
  see(graph, "pod", ["rs"]);
  const both = { ...foreground, finalizers: ["orphan", "foregroundDeletion"] };
  assert.deepEqual(see(graph, "rs", [], both), { attemptToDelete: ["pod", "rs"], attemptToOrphan: ["rs"] });
});

for (const { what, references } of [
  { what: "kinds", references: ["batch/v1 A n default", "apps/v1 B n default", "v1 C n default"] },
  { what: "groups", references: ["apps/v1 A n default", "batch/v1 A n default", "v1 A n default"] },
  { what: "namespaces", references: ["apps/v1 A n a", "apps/v1 A n b", "apps/v1 A n c"] },
  { what: "names, whatever the kinds", references: ["v1 C l default", "apps/v1 B m default", "batch/v1 A n default"] },
]) {
  test(`an owner that is referenced by several ${what} is looked up under one after the other, and then from the start`, () => {
    const graph = new OwnerGraph();
    for (const [i, text] of references.entries()) {
      const [apiVersion = "", kind = "", name = "", namespace = ""] = text.split(" ");
      const identity = { apiVersion: "v1", kind: "Pod", namespace, name: `p${i}`, uid: `p${i}` };
      graph.observe(identity, { ownerReferences: [{ apiVersion, kind, name, uid: "owner" }] });
    }
    const lookedUp = [...references, ""].map(() => {
      const { identity } = graph.get("owner") as GraphNode;
      const { apiVersion, kind, namespace, name } = identity;
      assert.equal(graph.absent(identity).lookupAgain, true);
      return `${apiVersion} ${kind} ${name} ${namespace}`;
    });
    assert.deepEqual(lookedUp, [...references, references[0]]);
  });
}

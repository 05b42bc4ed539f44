import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { receivedDecisions } from "./received.ts";

const ref = (more: Partial<ObjectRef> = {}): ObjectRef => ({
  ...{ group: "g", resource: "pods", kind: "Pod", namespace: "n", name: "p", uid: "u" },
  ...more,
});
const received = (decision: object) => receivedDecisions("kubelet", { decisions: [decision] }, [ref()]);
const least = { object: ref(), verdict: "done" };
const texts = { source: "", reason: "", summary: "", since: "", lastAt: "" };

test("a decision that says little has empty texts and happened once", () => {
  assert.deepEqual(received(least), [{ component: "kubelet", ...texts, ...least, count: 1 }]);
  const odd = { source: 1, reason: null, summary: {}, since: [], lastAt: true, count: "2", related: {}, details: [] };
  assert.deepEqual(received({ ...least, ...odd }), [{ component: "kubelet", ...texts, ...least, count: 1 }]);
});

test("all fields of a decision are taken, texts of at most 4000 characters and at most 100 related objects", () => {
  const long = "x".repeat(4000);
  const said = {
    ...least,
    ...{ source: long, reason: `${long}R`, summary: "S", plain: "P", since: "s", lastAt: "l", count: 0 },
    ...{ nextTryAt: "n", related: Array.from({ length: 101 }, (_, i) => ref({ name: `r${i}` })) },
    ...{ details: { a: 1 }, remedy: "m" },
  };
  const want = { ...said, component: "kubelet", reason: long, related: said.related.slice(0, 100) };
  assert.deepEqual(received(said), [want]);
  const odd = { plain: 1, nextTryAt: null, related: [null, {}, { resource: "" }, { resource: "x", name: 7 }], remedy: {} };
  const empty = { group: "", resource: "x", kind: "", namespace: "", name: "", uid: "" };
  const shown = { plain: "", nextTryAt: "", related: [empty], remedy: "" };
  assert.deepEqual(received({ ...least, ...odd }), [{ component: "kubelet", ...texts, ...least, count: 1, ...shown }]);
});

for (const verdict of ["waiting", "refused", "failed", "done"])
  test(`the verdict ${verdict} is taken`, () => assert.equal(received({ ...least, verdict })[0]?.verdict, verdict));

for (const verdict of ["guilty", "", undefined, 7])
  test(`the verdict ${verdict} is none`, () => assert.deepEqual(received({ ...least, verdict }), []));

for (const [field, other] of Object.entries({ group: "h", resource: "nodes", namespace: "m", name: "q" }))
  test(`a decision about an object of another ${field} is left out, one of another kind and uid is not`, () => {
    assert.deepEqual(received({ ...least, object: ref({ [field]: other }) }), []);
    assert.equal(received({ ...least, object: ref({ kind: "K", uid: "v" }) }).length, 1);
  });

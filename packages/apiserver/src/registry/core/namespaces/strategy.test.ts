import assert from "node:assert/strict";
import { test } from "node:test";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { defaultNamespace } from "./defaults.ts";
import { namespaceFinalizeStrategy } from "./finalize.ts";
import { namespaceStatusStrategy, namespaceStrategy } from "./strategy.ts";

const ctx = { now: () => Date.parse("2026-01-02T03:04:05Z") } as StrategyContext;
const aNamespace = (finalizers: string[], deletionTimestamp?: string): Namespace =>
  ({
    metadata: { name: "web", ...(deletionTimestamp && { deletionTimestamp }) },
    spec: { finalizers },
    status: { phase: deletionTimestamp ? "Terminating" : "Active" },
  }) as Namespace;
const earlier = "2026-01-01T00:00:00Z";

test("the first deletion of a namespace marks a copy, whatever holds it", () => {
  for (const finalizers of [["kubernetes"], []]) {
    const current = aNamespace(finalizers);
    const begun = namespaceStrategy.beginDeletion?.(current as never, ctx);
    assert.deepEqual(begun, {
      ...current,
      metadata: { name: "web", deletionTimestamp: "2026-01-02T03:04:05Z" },
      status: { phase: "Terminating" },
    });
    assert.deepEqual(current, aNamespace(finalizers));
    const conditions = [{ type: "NamespaceContentRemaining", status: "False" }];
    const reported = { ...current, status: { ...current.status, conditions } } as Namespace;
    assert.partialDeepStrictEqual(namespaceStrategy.beginDeletion?.(reported as never, ctx), {
      status: { phase: "Terminating", conditions },
    });
  }
});

for (const { name, finalizers, want } of [
  { name: "waits while its contents are being deleted", finalizers: ["kubernetes"], want: "pending" },
  { name: "waits for a finalizer of another program", finalizers: ["example.com/own"], want: "pending" },
  { name: "removes it once its contents are gone", finalizers: [], want: undefined },
]) {
  test(`another deletion of a namespace ${name}`, () => {
    const current = aNamespace(finalizers, earlier);
    assert.equal(namespaceStrategy.beginDeletion?.(current as never, ctx), want);
    for (const strategy of [namespaceStrategy, namespaceStatusStrategy, namespaceFinalizeStrategy])
      assert.equal(strategy.completesDeletion?.(current as never), want === undefined);
  });
}

test("an update neither adds, changes nor removes the finalizers of a namespace's spec, nor its status", () => {
  for (const stored of [undefined, [], ["kubernetes"]]) {
    for (const wanted of [undefined, [], ["example.com/own"]]) {
      const of = (finalizers: string[] | undefined, phase: string) =>
        ({ metadata: { name: "web" }, spec: { ...(finalizers && { finalizers }) }, status: { phase } }) as Namespace;
      const next = of(wanted, "Terminating");
      namespaceStrategy.prepareForUpdate?.(next, of(stored, "Active"), ctx);
      assert.deepEqual(next, of(stored, "Active"));
    }
  }
});

for (const { given, want } of [
  { given: undefined, want: ["kubernetes"] },
  { given: [], want: ["kubernetes"] },
  { given: ["example.com/own"], want: ["example.com/own", "kubernetes"] },
  { given: ["kubernetes", "example.com/own"], want: ["kubernetes", "example.com/own"] },
]) {
  test(`a new namespace with the finalizers ${JSON.stringify(given)} has ${want.join(" and ")}, its label, and is active`, () => {
    const next = { metadata: { name: "web", labels: { a: "b" } }, spec: { ...(given && { finalizers: given }) } } as Namespace;
    next.status = { phase: "Terminating" };
    namespaceStrategy.prepareForCreate?.(next as never, ctx);
    const labels = { a: "b", "kubernetes.io/metadata.name": "web" };
    assert.deepEqual(next, { metadata: { name: "web", labels }, spec: { finalizers: want }, status: { phase: "Active" } });
  });
}

test("defaults of a namespace: an empty phase is Active, and the label says the name, whatever it said; none without a name", () => {
  const label = "kubernetes.io/metadata.name";
  for (const { metadata, status, want } of [
    { metadata: { name: "a" }, status: undefined, want: { labels: { [label]: "a" }, phase: "Active" } },
    {
      metadata: { name: "a", labels: { [label]: "b", c: "d" } },
      status: { phase: "" },
      want: { labels: { [label]: "a", c: "d" }, phase: "Active" },
    },
    { metadata: { generateName: "a-" }, status: { phase: "Terminating" }, want: { labels: undefined, phase: "Terminating" } },
  ]) {
    const namespace = { metadata, ...(status && { status }) } as Namespace;
    defaultNamespace(namespace);
    assert.deepEqual({ labels: namespace.metadata.labels, phase: namespace.status?.phase }, want);
  }
});

test("/finalize changes the finalizers of the spec and leaves the status; each of them is validated", () => {
  const [next, current] = [aNamespace(["example.com/own"]), aNamespace(["kubernetes"], earlier)];
  namespaceFinalizeStrategy.prepareForUpdate?.(next as never, current as never, ctx);
  assert.deepEqual([next.spec, next.status], [{ finalizers: ["example.com/own"] }, { phase: "Terminating" }]);
  const errors = namespaceFinalizeStrategy.validateUpdate?.(aNamespace(["kubernetes", "own"]) as never, current as never, ctx);
  assert.deepEqual(
    errors?.map(({ field, badValue }) => [field, badValue]),
    [["spec.finalizers[1]", "own"]],
  );
});

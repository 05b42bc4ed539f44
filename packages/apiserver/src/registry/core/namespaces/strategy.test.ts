import assert from "node:assert/strict";
import { test } from "node:test";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
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
    for (const strategy of [namespaceStrategy, namespaceStatusStrategy])
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

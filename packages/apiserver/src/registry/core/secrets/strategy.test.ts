import assert from "node:assert/strict";
import { test } from "node:test";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { secretStrategy } from "./strategy.ts";

test("many keys are checked and counted in steps, in an update, too", () => {
  const bytes = 20;
  const data = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`!${i}`, Buffer.alloc(bytes).toString("base64")]));
  const object = { apiVersion: "v1", kind: "Secret", metadata: { name: "a" }, type: "Opaque", data } as Secret;
  for (const current of [undefined, { ...object, data: {} }]) {
    const steps = secretStrategy.validateInSteps?.(object, current, {} as StrategyContext);
    assert.ok(steps);
    let count = 0;
    let step = steps.next();
    for (; !step.done; step = steps.next()) count++;
    assert.ok(count >= 10, `${count} steps`);
    // Each key is wrong, and all values together are larger than 1 MiB.
    assert.equal(step.value.length, 60_001);
  }
});

test("an update without a type keeps the type, one with another is left to validation", () => {
  const secret = (type?: string) => ({ metadata: { name: "a" }, ...(type !== undefined && { type }) }) as Secret;
  const updated = (next: Secret) => {
    secretStrategy.prepareForUpdate?.(next, secret("kubernetes.io/tls"), {} as StrategyContext);
    return next.type;
  };
  assert.deepEqual([secret(), secret(""), secret("Opaque")].map(updated), ["kubernetes.io/tls", "kubernetes.io/tls", "Opaque"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { newOperations, observed, storageOperations } from "./storage-operations.ts";

test("operations are measured in seconds, with their outcome, which they keep", async () => {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const begin = newOperations(storageOperations(registry), clock);
  assert.equal(
    await observed(begin("p", "attach"), async () => {
      await clock.advance(2_000);
      return "done";
    }),
    "done",
  );
  const failing = observed(begin("p", "detach"), () => Promise.reject(new Error("away")));
  await assert.rejects(failing, /^Error: away$/);
  const page = await registry.render();
  const line = (operation: string, status: string) =>
    new RegExp(
      `^storage_operation_duration_seconds_(sum|count)\\{.*operation_name="${operation}",status="${status}".*\\} (\\d)$`,
      "gm",
    );
  const values = (operation: string, status: string) =>
    Array.from(page.matchAll(line(operation, status)), ([, , value]) => value);
  assert.deepEqual(values("attach", "success"), ["2", "1"]);
  assert.deepEqual(values("detach", "fail-unknown"), ["0", "1"]);
  assert.deepEqual([values("attach", "fail-unknown"), values("detach", "success")], [[], []]);
});

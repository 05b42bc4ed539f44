import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { FakePod } from "./fake-pod.ts";

const running: Pod = {
  metadata: { name: "web-0", namespace: "shop", uid: "u" },
  spec: { containers: [{ name: "web", image: "example.com/web:1" }], nodeName: "node-1" },
};
const deleted = (graceSeconds: number): Pod => ({
  ...running,
  metadata: { ...running.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: graceSeconds },
});

/** A running Pod whose node deletes it at most once. */
function started() {
  const clock = newFakeClock();
  const deletions: number[] = [];
  const client = {
    patch: async () => running,
    delete: async () => void deletions.push(clock.monotonic()),
  };
  const options = { client: client as unknown as Client, clock, log: discardLogger, rules: () => [], isSilent: () => false };
  const pod = new FakePod(options, running, "10.0.0.1", "10.1.0.1");
  pod.changed(running);
  return { pod, clock, deletions };
}

test("the node removes a deleted pod at once when its containers have ended", async () => {
  const { pod, clock, deletions } = started();
  pod.changed(deleted(30));
  await clock.advance(0);
  assert.equal(deletions.length, 1);
});

test("the node leaves a pod without a grace period to the API server, and removes one that is still there later", async () => {
  const { pod, clock, deletions } = started();
  pod.changed(deleted(0));
  await clock.advance(1_000);
  assert.deepEqual(deletions, []);
  await clock.advance(2_000);
  assert.equal(deletions.length, 1);
  const other = started();
  other.pod.changed(deleted(0));
  other.pod.stop();
  await other.clock.advance(10_000);
  assert.deepEqual(other.deletions, [], "the API server has removed it");
});

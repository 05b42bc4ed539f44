import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newPvProtectionController } from "./controller.ts";

const finalizer = "kubernetes.io/pv-protection";

function aVolume(phase: string, metadata: Partial<PersistentVolume["metadata"]> = {}): PersistentVolume {
  return { metadata: { name: "disk", uid: "disk-uid", finalizers: [finalizer], ...metadata }, spec: {}, status: { phase } };
}

test("gives its finalizer to a volume from before", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumes, aVolume("Available", { finalizers: [] }));
  await run(newPvProtectionController(ctx));
  assert.deepEqual(client.object(persistentVolumes, "disk")?.metadata.finalizers, [finalizer]);
});

test("holds a bound volume until it is bound no more", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const deleted = { deletionTimestamp: "2024-01-01T00:00:00Z" };
  client.put(persistentVolumes, aVolume("Bound", deleted));
  await run(newPvProtectionController(ctx));
  assert.ok(client.object(persistentVolumes, "disk"));
  client.put(persistentVolumes, aVolume("Released", deleted));
  await settle(30);
  assert.equal(client.object(persistentVolumes, "disk"), undefined);
});

test("retries after a conflict", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(persistentVolumes, aVolume("Available", { finalizers: [] }));
  let first = true;
  client.react("update", "persistentvolumes", () => {
    if (!first) return undefined;
    first = false;
    client.put(persistentVolumes, aVolume("Available", { finalizers: ["other"] }));
    return undefined;
  });
  await run(newPvProtectionController(ctx));
  await clock.advance(1000);
  assert.deepEqual(client.object(persistentVolumes, "disk")?.metadata.finalizers, ["other", finalizer]);
});

test("does not try again to change a volume that is gone", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(persistentVolumes, aVolume("Available", { finalizers: [] }));
  let tries = 0;
  client.react("update", "persistentvolumes", ({ name }) => {
    tries++;
    throw notFound(persistentVolumes, name);
  });
  await run(newPvProtectionController(ctx));
  await clock.advance(60_000);
  assert.equal(tries, 1);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { pods } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aPod } from "../testing/builders.ts";
import { type FakeClient, newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { type Newest, newNewest } from "./newest.ts";
import { newSharedInformer } from "./shared-informer.ts";

const key = "default/a";
const written = (resourceVersion: string): Pod => {
  const pod = aPod({ name: "a", uid: "1" });
  return { ...pod, metadata: { ...pod.metadata, resourceVersion } };
};

async function startWithPod(t: TestContext): Promise<{ client: FakeClient; newest: Newest<Pod> }> {
  const client = newFakeClient();
  client.put(pods, aPod({ name: "a", uid: "1" }));
  const informer = newSharedInformer<Pod>({ client, clock: newFakeClock(), log: discardLogger, ref: pods, resyncMs: 0 });
  const newest = newNewest(informer);
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  return { client, newest };
}

test("prefers its own last write to an older cached object", async (t) => {
  const { client, newest } = await startWithPod(t);
  const version = (): number => Number(newest.get(key)?.metadata.resourceVersion);
  const shown = version();
  newest.written(written(String(shown + 7)));
  assert.equal(version(), shown + 7);
  newest.written(written(String(shown + 3)));
  assert.equal(version(), shown + 7, "an older one changes nothing");
  client.put(pods, aPod({ name: "a", uid: "1" }));
  await settle();
  assert.equal(version(), shown + 7, "nor does an older event");
});

test("a version with more digits is the newer one", async (t) => {
  const { newest } = await startWithPod(t);
  for (const version of ["99999", "100000", "99999"]) newest.written(written(version));
  assert.equal(newest.get(key)?.metadata.resourceVersion, "100000");
});

test("a late response to a write does not bring back a deleted object", async (t) => {
  const { client, newest } = await startWithPod(t);
  client.remove(pods, key);
  await settle();
  newest.written(written("999"));
  assert.deepEqual([...newest.list()], [], "the answer to a write that came after its object's end");
  client.put(pods, aPod({ name: "a", uid: "2" }));
  await settle();
  newest.written(written("999"));
  assert.equal(newest.get(key)?.metadata.uid, "2");
});

test("accepts an older version when the cache returns to it, as after a restore of the store", () => {
  const informer = newSharedInformer<Pod>({
    client: newFakeClient(),
    clock: newFakeClock(),
    log: discardLogger,
    ref: pods,
    resyncMs: 0,
  });
  let updated: ((old: Pod, now: Pod) => void) | undefined;
  const watched = Object.create(informer, {
    addHandler: {
      value(handler: Parameters<typeof informer.addHandler>[0]) {
        updated = handler.updated?.bind(handler);
      },
    },
  });
  const newest = newNewest<Pod>(watched);
  updated?.(written("8"), written("9"));
  updated?.(written("9"), written("4"));
  assert.equal(newest.get(key)?.metadata.resourceVersion, "4");
});

test("takes an object that was created again under the same name, whatever its version", async (t) => {
  const { client, newest } = await startWithPod(t);
  newest.written(written("999"));
  client.put(pods, aPod({ name: "a", uid: "2" }));
  await settle();
  assert.equal(newest.get(key)?.metadata.uid, "2");
});

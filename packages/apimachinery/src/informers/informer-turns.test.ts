/** Handlers take as long as the number of other objects that they compare an object with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { pods } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { Turns } from "../process/event-loop/turns.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aPod } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle, waitFor } from "../testing/wait-for.ts";
import { newInformerFactory } from "./factory.ts";

/** An informer whose handler takes more than a slice for each object, and the largest number of objects in one iteration. */
function started(t: { after(fn: () => void): void }, count: number, stopAfter = Number.POSITIVE_INFINITY) {
  let now = 0;
  let inIteration = 0;
  let most = 0;
  let running = true;
  const iterate = (): void => {
    inIteration = 0;
    if (running) setImmediate(iterate).unref();
  };
  iterate();
  const client = newFakeClient();
  client.put(pods, ...Array.from({ length: count }, (_, i) => aPod({ name: `p${i}` })));
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { clock, log: discardLogger, turns: new Turns(() => now) });
  const informer = informers.for<Pod>(pods);
  const seen: string[] = [];
  const synced: boolean[] = [];
  const stop = new AbortController();
  const handle = (change: string, { metadata }: Pod): void => {
    seen.push(`${change}${metadata.name}`);
    synced.push(informer.synced);
    if (seen.length === stopAfter) stop.abort(new Error("the end"));
    now += 10;
    most = Math.max(most, ++inIteration);
  };
  informer.addHandler({
    added: (pod) => handle("+", pod),
    updated: (_, pod) => handle("=", pod),
    deleted: (pod) => handle("-", pod),
  });
  t.after(() => {
    running = false;
    stop.abort(new Error("the test is over"));
  });
  informers.start(stop.signal);
  return { client, clock, informer, seen, synced, stop, most: () => most };
}

test("objects of a list are handled in turns, and the informer is synced after the last one", async (t) => {
  const { informer, synced, stop, most } = started(t, 20);
  await informer.waitForSync(stop.signal);
  assert.deepEqual(synced, Array(20).fill(false));
  assert.ok(most() <= 2, `${most()} in one iteration`);
});

test("changes that arrive together are handled in turns, in order", async (t) => {
  const { client, informer, seen, stop, most } = started(t, 1);
  await informer.waitForSync(stop.signal);
  client.put(pods, ...Array.from({ length: 20 }, (_, i) => aPod({ name: `q${i}` })));
  client.remove(pods, "default/p0");
  await waitFor(() => seen.length === 22);
  assert.deepEqual(seen, ["+p0", ...Array.from({ length: 20 }, (_, i) => `+q${i}`), "-p0"]);
  assert.ok(most() <= 2, `${most()} in one iteration`);
});

test("changes that have arrived are not handled after the end", async (t) => {
  const { client, informer, seen, stop } = started(t, 1, 3);
  await informer.waitForSync(stop.signal);
  client.put(pods, ...Array.from({ length: 20 }, (_, i) => aPod({ name: `q${i}` })));
  await waitFor(() => stop.signal.aborted);
  await settle(30);
  assert.deepEqual(seen, ["+p0", "+q0", "+q1"]);
});

test("a list that is repeated removes and adds in turns what the watch has missed", async (t) => {
  const { client, clock, informer, seen, stop, most } = started(t, 20);
  await informer.waitForSync(stop.signal);
  client.endWatches();
  for (let i = 0; i < 10; i++) client.remove(pods, `default/p${i}`);
  client.put(pods, aPod({ name: "new" }));
  client.compact();
  await waitFor(async () => {
    await clock.advance(1000);
    return seen.includes("+new");
  });
  assert.deepEqual(seen.slice(20), [...Array.from({ length: 10 }, (_, i) => `-p${i}`), "+new"]);
  assert.ok(most() <= 2, `${most()} in one iteration`);
});

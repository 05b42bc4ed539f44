import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { serveDiscovery } from "../../testing/discovery.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newGraphBuilder } from "./graph-builder.ts";

test("the objects of an informer that runs already are observed, and later forgotten, in turns; changes follow in order", async (t) => {
  const world = newTestContext(t);
  const { client, signal } = world;
  let now = 0;
  let inIteration = 0;
  let most = 0;
  const ctx = { ...world.ctx, turns: new Turns(() => now) };
  const iterate = (): void => {
    inIteration = 0;
    if (!signal.aborted) setImmediate(iterate).unref();
  };
  iterate();
  serveDiscovery(client, [{ ...pods, deletable: true }]);
  const named = (name: string): Pod => aPod({ name, uid: name });
  client.put(pods, ...Array.from({ length: 20 }, (_, i) => named(`p${i}`)));
  const informer = ctx.informers.for<Pod>(pods);
  await world.run();
  assert.equal(informer.synced, true);

  const builder = newGraphBuilder(ctx, () => {
    now += 10; // more than a slice
    most = Math.max(most, ++inIteration);
  });
  const discovering = builder.refresh(signal);
  while (builder.graph.size === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(builder.synced, false);
  client.remove(pods, "default/p19"); // observed after it is gone, unless its deletion waits for that
  client.put(pods, named("p20"));
  await discovering;
  await builder.waitForSync(signal);
  assert.equal(builder.synced, true);
  assert.equal(builder.graph.size, 20);
  assert.equal(builder.graph.get("p19"), undefined);
  assert.ok(most <= 2, `${most} in one iteration`);

  serveDiscovery(client, []);
  await world.clock.advance(60_000); // discovery is remembered for a while
  await builder.refresh(signal);
  assert.equal(builder.graph.size, 0);
  assert.ok(most <= 2, `${most} in one iteration`);
});

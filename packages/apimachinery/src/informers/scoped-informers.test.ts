import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { pods } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aPod } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { newInformerFactory } from "./factory.ts";
import { scopedInformers } from "./scoped-informers.ts";

test("all handlers of a scope are removed together, those of others stay, and the informer is the same", async (t) => {
  const client = newFakeClient();
  const factory = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const scope = scopedInformers(factory);
  const [own, others]: [string[], string[]] = [[], []];
  const scoped = scope.informers.for<Pod>(pods);
  for (const name of ["first", "second"])
    scoped.addHandler({ added: ({ metadata }) => void own.push(`${name} ${metadata.name}`) });
  const removeOne = scoped.addHandler({ added: () => assert.fail("it was removed before") });
  removeOne();
  factory.for<Pod>(pods).addHandler({ added: ({ metadata }) => void others.push(metadata.name ?? "") });
  factory.start(stop.signal);
  await factory.waitForSync(stop.signal);
  client.put(pods, aPod({ name: "a" }));
  await settle();
  assert.equal(scoped.lister.get("default/a")?.metadata.name, "a");
  assert.equal(scoped.synced, true);
  scope.removeHandlers();
  client.put(pods, aPod({ name: "b" }));
  await settle();
  assert.deepEqual(
    [own, others],
    [
      ["first a", "second a"],
      ["a", "b"],
    ],
  );
});

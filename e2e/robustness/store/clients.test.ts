import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { countTogether } from "./counter.ts";
import { noNamespaces } from "./etcd-cluster.ts";
import { listTogether } from "./slow-lists.ts";
import { stopReading } from "./slow-watchers.ts";
import { newStage, type Stage } from "./stage.ts";

/** The store under demanding clients; all tests share one stage. */
const skip = await noNamespaces();
let stage: Stage | undefined;
const cleanups: (() => void | Promise<void>)[] = [];

before(async () => {
  if (skip) return;
  stage = await newStage(
    { after: (fn: () => void | Promise<void>) => void cleanups.push(fn) },
    // The first server reads from memory, the second one always from etcd.
    { members: 1, apiServers: 2, flags: (server) => (server === 1 ? ["--watch-cache=false"] : []) },
  );
});
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

for (const [name, scenario] of Object.entries({
  "many clients count with one object in every way to write: no step is lost, every clash is refused": countTogether,
  "watchers that stop reading are ended and never thinned, and no other is affected": stopReading,
  "many large lists at once, half of them read slowly, leave the server small and at everybody's service": listTogether,
})) {
  test(name, { skip }, async (t) => {
    assert.ok(stage);
    await scenario(t, stage);
  });
}

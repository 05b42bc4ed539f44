import assert from "node:assert/strict";
import { test } from "node:test";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RegistryStore } from "../registry/generic/resource.ts";
import { newLoopbackClient } from "./client.ts";

test("a list whose objects are not decoded yet lets others have their turn between them", async () => {
  let decoded = 0;
  const entries = Array.from({ length: 64 }, (_, i) => ({
    object() {
      for (const began = performance.now(); performance.now() - began < 1; ); // more than a slice for all of them
      decoded++;
      return { metadata: { name: `pod-${i}` } };
    },
  }));
  const client = newLoopbackClient({
    handle: async () => {},
    writeError: () => {},
    storeOf: () => ({ list: async () => ({ entries, revision: 7 }) }) as unknown as RegistryStore,
    onRead: () => {},
    turns: new Turns(),
  });
  const seen: number[] = [];
  const listed = client.list(pods);
  while (decoded < entries.length) {
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(decoded);
  }
  const { items, metadata } = await listed;
  assert.deepEqual([items.length, metadata.resourceVersion, items[63]?.metadata.name], [64, "7", "pod-63"]);
  assert.ok(new Set(seen).size > 2, `decoded after each turn: ${seen}`);
});

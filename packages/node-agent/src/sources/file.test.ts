import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { runFileSource } from "./file.ts";
import type { PodSources } from "./merge.ts";

test("a folder is read again for what is written or removed while it is read, without waiting for the time", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const write = (name: string): void => {
    const spec = { containers: [{ name: "c", image: "i:1" }] };
    writeFileSync(join(dir, `${name}.json`), JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec }));
  };
  /** What is done right after each look, before anything else can be. */
  const meanwhile = [() => write("b"), () => rmSync(join(dir, "a.json"))];
  const seen: string[] = [];
  const sources = {
    set(_source: string, pods: readonly { metadata: { name: string } }[]) {
      const names = pods.map(({ metadata }) => metadata.name).join();
      if (seen.at(-1) === names) return;
      seen.push(names);
      meanwhile.shift()?.();
    },
  } as unknown as PodSources;
  write("a");
  const stop = new AbortController();
  const options = { path: dir, nodeName: "n1", frequencyMs: 20_000, sources, clock: newFakeClock(), log: discardLogger };
  const running = runFileSource(options, stop.signal);
  await waitFor(() => seen.length === 3, { what: "the last look" });
  assert.deepEqual(seen, ["a-n1", "a-n1,b-n1", "b-n1"]);
  stop.abort();
  await running;
});

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { runFileSource } from "./file.ts";
import { newPodSources } from "./merge.ts";

const manifest = (image: string): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec: { containers: [{ name: "c", image }] } });
const frequencyMs = 20_000;

/** A folder that is followed. */
async function following(t: TestContext) {
  const path = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  const clock = newFakeClock();
  const did: string[] = [];
  const image = ({ spec }: { spec: { containers: { image?: string }[] } }) => spec.containers[0]?.image;
  const sources = newPodSources(["file"], {
    added: (pod) => void did.push(`added ${image(pod)}`),
    updated: (pod) => void did.push(`updated ${image(pod)}`),
    removed: (pod) => void did.push(`removed ${image(pod)}`),
  });
  let failures = 0;
  const log = { ...discardLogger, error: () => void failures++ };
  const stop = new AbortController();
  const running = runFileSource({ path, frequencyMs, nodeName: "n1", sources, clock, log }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  return {
    clock,
    did,
    failures: () => failures,
    write: (text: string) => writeFile(join(path, "web.yaml"), text),
    remove: () => rm(join(path, "web.yaml")),
  };
}

test("a pod of a file begins with it, changes with it and ends with it", async (t) => {
  const { did, write, remove } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  await write(manifest("i:2"));
  await waitFor(() => did.includes("added i:2"));
  await remove();
  await waitFor(() => did.includes("removed i:2"));
});

test("a file that is half written ends no pod, one that stays so does", async (t) => {
  const { clock, did, failures, write } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  did.length = 0;
  const before = failures();
  await write(manifest("i:1").slice(0, 40));
  await waitFor(() => failures() > before);
  assert.deepEqual([...did], []);
  await waitFor(() => {
    void clock.advance(frequencyMs);
    return did.length > 0;
  });
  assert.deepEqual([...did], ["removed i:1"]);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
});

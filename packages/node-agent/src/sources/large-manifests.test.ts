/** Static pods as large as the agent reads them: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { runFileSource } from "./file.ts";
import { newPodSources } from "./merge.ts";
import { maxManifestBytes, staticPod, staticPods } from "./static-pod.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const dict = (count: number): Record<string, string> => Object.fromEntries(many(count, (at) => [`k${at}`, "v"]));
const origin = { source: "file", from: "/web.yaml", nodeName: "n", now: 0, turns: new Turns() } as const;
const variables = (count: number) => many(count, (at) => ({ name: `VARIABLE_${at}`, value: "v" }));
const manifest = (container: object, spec: object = {}) => ({
  ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "web" } },
  spec: { containers: [{ name: "main", image: "i:1", ...container }], ...spec },
});
const mounts = many(60_000, (at) => ({ name: `v${at}`, mountPath: `/m${at}` }));

async function takesNoLongTurn(t: TestContext, work: () => Promise<void>): Promise<void> {
  const longest = await longestTurnOf(longestTurnMs, work);
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
}

for (const { name, value } of [
  { name: "200,000 variables", value: manifest({ env: variables(200_000) }) },
  { name: "one variable of 9 MB", value: manifest({ env: [{ name: "A", value: "x".repeat(9_000_000) }] }) },
  {
    name: "60,000 volumes and mounts",
    value: manifest({ volumeMounts: mounts }, { volumes: mounts.map((mount) => ({ name: mount.name, emptyDir: {} })) }),
  },
  {
    name: "100,000 containers",
    value: manifest({}, { containers: many(100_000, (at) => ({ name: `c${at}`, image: "i:1" })) }),
  },
  { name: "160,000 labels", value: { ...manifest({}), metadata: { name: "web", labels: dict(160_000) } } },
  { name: "160,000 annotations", value: { ...manifest({}), metadata: { name: "web", annotations: dict(160_000) } } },
]) {
  test(`a manifest of ${name} is read without a long turn`, async (t) => {
    const text = JSON.stringify(value);
    assert.ok(text.length < maxManifestBytes);
    await takesNoLongTurn(t, async () => void (await staticPod(text, origin)));
  });
}

test("a manifest of 500,000 labels, of which the API server would accept no mirror Pod, is refused without a long turn", async (t) => {
  const text = JSON.stringify({ ...manifest({}), metadata: { name: "web", labels: dict(500_000) } });
  assert.ok(text.length < maxManifestBytes);
  const refused = /an object has more than 165000 fields$/;
  await takesNoLongTurn(t, () => assert.rejects(staticPod(text, origin), refused));
});

test("YAML of 8,000 variables, and of documents with as many, is read without a long turn", async (t) => {
  const text = toYaml(manifest({ env: variables(8_000) }));
  await takesNoLongTurn(t, async () => {
    assert.equal((await staticPod(text, origin)).spec.containers[0]?.env?.length, 8_000);
  });
  await takesNoLongTurn(t, async () => assert.equal((await staticPods(`${text}---\n${text}`, origin)).length, 2));
});

test("a folder of 1,000 manifests is read without a long turn; a file of 10 MiB is refused", async (t) => {
  const path = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  for (const at of many(1000, (number) => number))
    await writeFile(join(path, `${at}`), JSON.stringify({ ...manifest({}), metadata: { name: `p${at}` } }));
  await writeFile(join(path, "large"), " ".repeat(maxManifestBytes));
  const failures: string[] = [];
  const log = { ...discardLogger, error: (_: string, err: Error) => void failures.push(err.message) };
  await takesNoLongTurn(t, async () => {
    const clock = newFakeClock();
    let added = 0;
    const sources = newPodSources(["file"], { added: () => void added++, updated() {}, removed() {} });
    const stop = new AbortController();
    const options = { path, nodeName: "n", frequencyMs: 20_000, sources, clock, turns: new Turns(), log };
    const running = runFileSource(options, stop.signal);
    await waitFor(() => clock.waiting > 0);
    stop.abort();
    await running;
    assert.equal(added, 1000);
  });
  assert.equal(failures[0], "the read limit is reached");
});

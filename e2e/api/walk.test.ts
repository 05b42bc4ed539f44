import assert from "node:assert/strict";
import { test } from "node:test";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { newClient, targetOfKubeconfig } from "../../tools/walk/src/client.ts";
import { describe, walk } from "../../tools/walk/src/walk.ts";
import { send } from "../framework/api.ts";
import { settings } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
const seeds = isLong ? [1, 2, 3, 4, 5] : [1 + Math.floor(Date.now() / 86_400_000)]; // another one each day
const count = isLong ? 20_000 : 3000;

for (const seed of seeds) {
  test(`whatever is sent, every answer is a good one (seed ${seed})`, async (t) => {
    const before = await weight();
    const client = newClient(targetOfKubeconfig(kubeconfigFile(settings, "admin")));
    const report = await walk(client, { seed, count, ...(!isLong && { limitMs: 15_000 }) });
    client.close();
    t.diagnostic(`${report.sent} requests: ${JSON.stringify(report.codes)}`);
    assert.deepEqual(report.findings.map(describe), []);
    assert.ok(report.sent > count / 4, `only ${report.sent} requests were answered in time`);
    for (const code of ["200", "201", "400", "404", "422"])
      assert.ok((report.codes[code] ?? 0) > 0, `nothing was answered ${code}`);
    assert.equal((await send("GET", "/readyz")).text, "ok");
    await waitFor("connections and memory go back", async () => {
      const now = await weight();
      return now.files < before.files + 20 && now.heapBytes < before.heapBytes + (200 << 20);
    });
  });
}

/** What a server that leaks has more of after every request. */
async function weight(): Promise<{ files: number; heapBytes: number }> {
  const { text } = await send("GET", "/metrics");
  const value = (name: string): number => Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  return { files: value("process_open_fds"), heapBytes: value("nodejs_heap_size_used_bytes") };
}

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { test } from "node:test";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { type Client, newClient, targetOfKubeconfig } from "../../tools/walk/src/client.ts";
import { readSurface } from "../../tools/walk/src/surface.ts";
import { describe, walk } from "../../tools/walk/src/walk.ts";
import { send } from "../framework/api.ts";
import { settings } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
// The long run starts with a different seed each day.
const seeds = isLong ? [1 + Math.floor(Date.now() / 86_400_000), 1, 2, 3, 4, 5] : [1];
const count = isLong ? 20_000 : 3000;

for (const seed of seeds) {
  test(`generated requests get no 5xx and every error is a Status (seed ${seed})`, async (t) => {
    const before = await weight();
    const client = newClient(targetOfKubeconfig(kubeconfigFile(settings, "admin")));
    const ownDelay = monitorEventLoopDelay({ resolution: 10 });
    ownDelay.enable();
    const report = await walk(client, { seed, count, ...(!isLong && { limitMs: 60_000 }) });
    const after = await weight();
    const made = after.subresources.difference(await knownSubresources(client));
    client.close();
    assert.deepEqual([...made], [], "metrics under names that clients made up");
    t.diagnostic(`${report.sent} requests: ${JSON.stringify(report.codes)}; longest turn ${after.longestTurnSeconds} s`);
    // The server alone needs a tenth of a second. What other processes add to it, they add to this process's own loop, too.
    const limitSeconds = 1 + (2 * ownDelay.max) / 1e9;
    assert.ok(
      after.longestTurnSeconds < limitSeconds,
      `the server's loop was blocked for ${after.longestTurnSeconds} s, allowed are ${limitSeconds} s`,
    );
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

interface Weight {
  readonly files: number;
  readonly heapBytes: number;
  /** Since the last time that the metrics were read. */
  readonly longestTurnSeconds: number;
  /** Subresource labels of the request metrics. */
  readonly subresources: ReadonlySet<string>;
}

/** Resources that grow with every request when the server leaks. */
async function weight(): Promise<Weight> {
  const { text } = await send("GET", "/metrics");
  const value = (name: string): number => Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  return {
    files: value("process_open_fds"),
    heapBytes: value("nodejs_heap_size_used_bytes"),
    longestTurnSeconds: value("nodejs_eventloop_lag_max_seconds"),
    subresources: new Set(Array.from(text.matchAll(/[{,]subresource="([^"]*)"/g), ([, name = ""]) => name)),
  };
}

async function knownSubresources(client: Client): Promise<ReadonlySet<string>> {
  return new Set((await readSurface(client)).resources.map(({ subresource }) => subresource));
}

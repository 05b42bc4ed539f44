import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newKubeScheduler } from "./index.ts";
import { aTestNode, aTestPod } from "./testing/test-cluster.ts";

test("a scheduler in another program binds pods of its configuration's profiles, with the configured back-off", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "scheduler-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  const settings = "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 7\nprofiles: [{schedulerName: mine}]\n";
  await writeFile(file, `apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n${settings}`);
  const clock = newFakeClock();
  const bound: string[] = [];
  const at: number[] = [];
  const listed: Record<string, object[]> = {
    nodes: [aTestNode("a")],
    pods: [aTestPod("web", { spec: { schedulerName: "mine" } }), aTestPod("other")],
  };
  const answer = (body: object, status = 200): TransportResponse => ({
    status,
    headers: { "content-type": "application/json" },
    body: Readable.from([Buffer.from(JSON.stringify(body))]),
  });
  const transport = {
    async request({ method, path, body, signal }: TransportRequest): Promise<TransportResponse> {
      if (path.includes("watch=true"))
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
      if (method === "GET") {
        const resource = /\/(\w+)(\?|$)/.exec(path)?.[1] ?? "";
        return answer({ metadata: { resourceVersion: "1" }, items: listed[resource] ?? [] });
      }
      if (!path.endsWith("/binding")) return answer(JSON.parse(String(body)));
      bound.push(path);
      at.push(clock.monotonic());
      return answer(
        { kind: "Status", status: "Failure", reason: "InternalError", message: "no luck", code: 500, metadata: {} },
        500,
      );
    },
    reconnect() {},
    close() {},
  };
  const stop = new AbortController();
  const running = newKubeScheduler([`--config=${file}`])
    .run({ clientConfig: { host: "https://api:6443", qps: -1 }, transport, clock, signal: stop.signal })
    .catch((err: unknown) => err);
  await settle(100);
  for (let seconds = 0; seconds < 25; seconds++) {
    await clock.advance(1_000);
    await settle(60);
  }
  stop.abort(new Error("the test is over"));
  await running;
  assert.deepEqual([...new Set(bound)], ["/api/v1/namespaces/default/pods/web/binding"]);
  const waits = at.slice(1).map((ms, i) => ms - (at[i] as number));
  assert.deepEqual(waits.slice(0, 3), [5_000, 7_000, 7_000]);
});

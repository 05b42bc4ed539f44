import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { newAgentConfig } from "../config.ts";
import { kubelet } from "../flags.ts";
import type { NodeIdentity } from "../node/identity.ts";
import { configMirrorAnnotation, type NodePod } from "../pod/pod.ts";
import type { PodIntake } from "../pods/intake.ts";
import { aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { openServers } from "./open-servers.ts";

/** The agent's servers, and an API server that allows nothing to anybody. */
async function bench(t: TestContext, ...flags: string[]) {
  const dir = await mkdtemp(join(tmpdir(), "cox-servers-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "ca.crt"), (await newCa({ commonName: "clients" })).certPem);
  const { values, set } = parseFlags(kubelet.flags, [
    "--container-runtime=remote",
    `--root-dir=${dir}`,
    `--cert-dir=${join(dir, "pki")}`,
    "--address=127.0.0.1",
    "--healthz-port=0",
    "--read-only-port=0",
    `--client-ca-file=${join(dir, "ca.crt")}`,
    ...flags,
  ]);
  const clock = newFakeClock();
  const reviews: string[] = [];
  const access = { allowed: false };
  const heartbeat = {
    async create(_: unknown, { spec }: { spec: { token?: string; user?: string } }) {
      reviews.push(spec.user ?? `token ${spec.token}`);
      return spec.user === undefined ? { status: { authenticated: true, user: { username: "joe" } } } : { status: { ...access } };
    },
  } as unknown as Client;
  const stop = new AbortController();
  const mirror = aNodePod({}, { uid: "mirror", annotations: { [configMirrorAnnotation]: "x" } });
  const listed: NodePod[] = [
    aNodePod({}, {}, { phase: "Pending" }),
    mirror,
    aNodePod({}, { name: "b", uid: "b" }, { phase: "Failed" }),
  ];
  const listening = await openServers({
    config: { ...newAgentConfig(values, set), port: 0 },
    featureGates: newFeatureGates("kubelet", {}),
    identity: { machine: { cpuCount: 1, memoryBytes: 1 }, nodeName: "node1", ips: ["127.0.0.1"] } as unknown as NodeIdentity,
    api: { heartbeat },
    runtime: newFakeRuntime(clock),
    metrics: newMetricsRegistry(),
    probeMetrics: newMetricsRegistry(),
    podLogsDir: dir,
    cgroupParentOf: () => "",
    cgroupOfPods: "/kubepods",
    intake: { sources: { list: () => listed }, named: () => undefined } as unknown as PodIntake,
    status: { get: (uid) => (uid === "uid-1" ? { phase: "Running" } : undefined) },
    usages: { of: () => [] },
    events: { problem: () => undefined },
    startedAt: 0,
    clock,
    signal: stop.signal,
    log: newLogger({ write: () => undefined }),
  });
  t.after(async () => {
    stop.abort();
    await listening.close();
  });
  const get = (path: string): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const to = { host: "127.0.0.1", port: listening.port, path, rejectUnauthorized: false, agent: false as const };
      request({ ...to, headers: { authorization: "Bearer x" } }, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          body += piece;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      })
        .on("error", reject)
        .end();
    });
  return { clock, reviews, access, stop, get };
}

test("/pods lists the agent's pods, without mirror pods, and with the status that the agent knows before their own", async (t) => {
  const { get } = await bench(t);
  const { items } = JSON.parse((await get("/pods")).body);
  assert.deepEqual(
    items.map(({ metadata, status }: NodePod) => [metadata.uid, status?.phase]),
    [
      ["uid-1", "Running"],
      ["b", "Failed"],
    ],
  );
});

test("a refusal is kept for its own time, that of access for another; tokens for a third", async (t) => {
  const { clock, reviews, access, get } = await bench(
    t,
    "--authorization-mode=Webhook",
    "--authentication-token-webhook",
    "--authorization-webhook-cache-unauthorized-ttl=10s",
    "--authorization-webhook-cache-authorized-ttl=12s",
    "--authentication-token-webhook-cache-ttl=15s",
  );
  for (const advanceMs of [0, 9_000, 2_000, 5_000]) {
    await clock.advance(advanceMs);
    assert.equal((await get("/pods")).status, 403);
  }
  assert.deepEqual(reviews, ["token x", "joe", "joe", "token x"]);
  access.allowed = true;
  reviews.length = 0;
  for (const [advanceMs, count] of [
    [10_000, 1],
    [11_000, 1],
    [2_000, 2],
  ] as const) {
    await clock.advance(advanceMs);
    assert.equal((await get("/pods")).status, 200);
    assert.equal(reviews.filter((review) => review === "joe").length, count);
  }
});

test("the client CA file is watched until the agent stops", async (t) => {
  const { clock, stop } = await bench(t);
  assert.ok(clock.waiting > 0);
  stop.abort();
  assert.equal(clock.waiting, 0);
});

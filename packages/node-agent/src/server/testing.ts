import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { type RequestOptions, request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger, newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { CertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { newDebugPages } from "@coxswain/apimachinery/serving/pprof";
import type { TlsOptions } from "@coxswain/apimachinery/serving/tls-options";
import type { NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { type FakeRuntime, newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner } from "../testing/runner.ts";
import type { VolumeUsage } from "../volumes/volume-usage.ts";
import { newAuth } from "./auth.ts";
import { newProbeMetrics } from "./metrics.ts";
import { newKubeletHandler } from "./server.ts";

interface Answer {
  status: number;
  body: string;
}

interface ServeOptions {
  mode?: "AlwaysAllow" | "Webhook";
  anonymous?: boolean;
  /** Default true. */
  tokenWebhook?: boolean;
  clientCa?: CertificatePool;
  tls?: TlsOptions;
  readOnly?: boolean;
  /** Default: the running one. */
  pods?: readonly NodePod[];
  volumes?: readonly VolumeUsage[];
  ofSandboxes?: boolean;
}

interface ServedKubelet {
  get(path: string, token?: string, method?: string, tls?: RequestOptions): Promise<Answer>;
  port: number;
  runtime: FakeRuntime;
  pod: NodePod;
  /** A line for each TokenReview and SubjectAccessReview. */
  reviews: string[];
  close(): Promise<void>;
}

/** The handler over plain HTTP, with a fake runtime, one running Pod, and an API server that accepts two tokens. */
export async function serveKubelet(t: TestContext, options: ServeOptions = {}): Promise<ServedKubelet> {
  // Generated certificates are valid from the real current time.
  const clock = options.tls === undefined ? newFakeClock() : newFakeClock(Date.now());
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const dir = await mkdtemp(join(tmpdir(), "cox-server-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const { runner, statusOf } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod();
  await runner.sync(pod, new AbortController().signal);
  const reviews: string[] = [];
  const client = reviewingClient(reviews);
  const probeMetrics = newMetricsRegistry();
  newProbeMetrics(probeMetrics)("liveness", "successful", pod, "main");
  const auth = newAuth({
    client,
    clock,
    log: discardLogger,
    nodeName: "node1",
    anonymous: options.anonymous ?? false,
    tokenWebhook: options.tokenWebhook ?? true,
    tokenTtlMs: 120_000,
    clientCa: options.clientCa,
    metrics: newMetricsRegistry(),
    mode: options.mode ?? "Webhook",
    authorizedTtlMs: 300_000,
    unauthorizedTtlMs: 30_000,
  });
  const byName = (namespace: string, name: string): NodePod | undefined =>
    namespace === pod.metadata.namespace && name === pod.metadata.name ? pod : undefined;
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: options.tls,
    log: discardLogger,
    handler: newKubeletHandler({
      auth: options.readOnly ? undefined : auth,
      log: discardLogger,
      runtime,
      metrics: newMetricsRegistry(),
      probeMetrics,
      podLogsDir: dir,
      cgroupParentOf: () => "",
      sandboxImage: "pause",
      debuggingHandlers: !options.readOnly,
      debugPages: options.readOnly ? undefined : newDebugPages({ log: newLogger({ write: () => undefined }), clock }),
      pods: () => options.pods ?? [pod],
      podByName: byName,
      statusOf,
      stats: {
        runtime,
        nodeName: "node1",
        rootDir: dir,
        pods: () => [pod],
        volumes: () => options.volumes ?? [],
        startedAt: 0,
        now: () => clock.now(),
        ofSandboxes: options.ofSandboxes ?? false,
        cgroupParentOf: () => "",
        podLogsDir: dir,
        systemCgroups: { kubelet: "", runtime: "", misc: "", pods: "" },
      },
      machine: { cpuCount: 2, memoryBytes: 1024 },
      config: () => ({ port: 1 }),
      health: () => undefined,
      now: () => clock.now(),
    }),
  });
  t.after(() => server.close(0));
  return {
    port: server.port,
    runtime,
    pod,
    reviews,
    close: () => server.close(),
    get: (path, token = "admin", method = "GET", tls = {}) =>
      get(server.port, { path, method, ...tls }, token, options.tls !== undefined),
  };
}

/** An API server that knows all tokens but `bad`, and allows everything to `admin`. @param reviews gets a line for each review */
function reviewingClient(reviews: string[]): Client {
  return {
    async create(ref: { resource: string }, body: { spec: Record<string, unknown> }) {
      if (ref.resource === "tokenreviews") {
        const token = body.spec.token;
        reviews.push(`token ${token}`);
        return {
          status: token === "bad" ? { authenticated: false } : { authenticated: true, user: { username: token, groups: [] } },
        };
      }
      const { user, resourceAttributes } = body.spec as {
        user: string;
        resourceAttributes: { verb: string; subresource: string; name: string };
      };
      reviews.push(`access ${user} ${resourceAttributes.verb} ${resourceAttributes.subresource}`);
      return { status: { allowed: user === "admin" } };
    },
  } as Client;
}

function get(port: number, to: RequestOptions, token: string, isSecure: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
    const all = { host: "127.0.0.1", port, headers, agent: false, ...to };
    const sent = (isSecure ? secureRequest : request)(all, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString("utf8") }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

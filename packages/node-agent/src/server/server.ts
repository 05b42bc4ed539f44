import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { answerMetrics } from "@coxswain/apimachinery/serving/metrics-page";
import type { DebugPages } from "@coxswain/apimachinery/serving/pprof";
import type { NodePod } from "../pod/pod.ts";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../runtime/runtime.ts";
import type { Auth } from "./auth.ts";
import { newCadvisor } from "./cadvisor/cadvisor.ts";
import { type CgroupReader, newCgroupReader } from "./cadvisor/cgroup-usage.ts";
import { serveLogs } from "./logs.ts";
import { resourceMetrics } from "./metrics.ts";
import { newCpuSampler, type StatsContext, summary } from "./stats.ts";
import { serveAttach, serveExec, servePortForward, serveRun } from "./streaming.ts";
import { serveSystemLogs } from "./system-logs.ts";

/** Dependencies of the kubelet API handler. */
export interface ServerContext {
  /** Undefined for the read-only port, which has no access control. */
  auth: Auth | undefined;
  log: Logger;
  /** The program's instance; default: one of its own. */
  turns?: Turns | undefined;
  runtime: ContainerRuntime;
  metrics: MetricsRegistry;
  probeMetrics: MetricsRegistry;
  podLogsDir: string;
  debuggingHandlers: boolean;
  /** Folder of /logs/, /var/log; undefined without `enableSystemLogHandler`. */
  systemLogsDir?: string | undefined;
  /** Wanted Pods with their current status. */
  pods: () => readonly NodePod[];
  /** Parent cgroup of a Pod's containers; `""` when the runtime decides. */
  cgroupParentOf: (pod: NodePod) => string;
  sandboxImage: string;
  podByName: (namespace: string, name: string) => NodePod | undefined;
  statusOf: (pod: NodePod) => PodStatus | undefined;
  stats: StatsContext;
  machine: { cpuCount: number; memoryBytes: number };
  /** /debug/pprof/ and /debug/flags/v; undefined when disabled. */
  debugPages?: DebugPages | undefined;
  /** The configuration in effect, for /configz. */
  config: () => Readonly<Record<string, unknown>>;
  /** The health problem of the agent, if any. */
  health: () => string | undefined;
  now: () => number;
}

type Route = (exchange: Exchange, names: readonly string[], query: URLSearchParams, path: string) => Promise<void> | void;

const text = { "content-type": "text/plain; charset=utf-8" };
const json = { "content-type": "application/json" };

/**
 * Handler of the kubelet API: every request is authenticated and authorized. The read-only port serves status and metrics
 * without authentication, but no access to containers.
 * Source: pkg/kubelet/server/server.go
 */
export function newKubeletHandler(context: ServerContext): ExchangeHandler {
  const sampler = newCpuSampler();
  const { runtime, pods, cgroupParentOf, sandboxImage, machine, now, turns = new Turns() } = context;
  let opening: Promise<CgroupReader> | undefined;
  const cadvisor = newCadvisor({ runtime, pods, cgroupParentOf, sandboxImage, machine, now, turns });
  const sendJson = (exchange: Exchange, value: unknown): void => exchange.respond(200, json, JSON.stringify(value));
  const sendText = (exchange: Exchange, body: string): void =>
    exchange.respond(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }, body);
  const off: Route = (exchange) => exchange.respond(405, text, "Debug endpoints are disabled.\n");
  const debug = (route: Route): Route => (context.debuggingHandlers ? route : off);

  const logs: Route = (exchange, names, query, path) => {
    if (context.systemLogsDir === undefined) return exchange.respond(405, text, "logs endpoint is disabled.\n");
    return serveSystemLogs(exchange, context.systemLogsDir, names, path.endsWith("/"), query.toString());
  };

  const routes = new Map<string, Route>([
    ["healthz", (exchange, names) => serveHealth(exchange, context.health, names)],
    ["pods", (exchange) => sendPods(exchange, context, turns)],
    [
      "stats",
      async (exchange, names) => {
        if (names[0] !== "summary") return exchange.respond(404, text, "404 page not found\n");
        opening ??= newCgroupReader();
        sendJson(exchange, await summary(context.stats, sampler, await opening));
      },
    ],
    [
      "metrics",
      async (exchange, names) => {
        switch (names[0]) {
          case undefined:
            return answerMetrics(exchange, context.metrics);
          case "cadvisor":
            return sendText(exchange, await cadvisor());
          case "resource":
            return sendText(exchange, resourceMetrics(await summary(context.stats, sampler)));
          case "probes":
            return answerMetrics(exchange, context.probeMetrics);
          default:
            return exchange.respond(404, text, "404 page not found\n");
        }
      },
    ],
    ["containerLogs", debug((exchange, names, query) => serveLogs(exchange, context, names, query))],
    ["exec", debug((exchange, names, query) => serveExec(exchange, context, names, query))],
    ["attach", debug((exchange, names, query) => serveAttach(exchange, context, names, query))],
    ["portForward", debug((exchange, names, query) => servePortForward(exchange, context, names, query))],
    ["run", debug((exchange, names, query) => serveRun(exchange, context, names, query))],
    ["runningpods", debug(async (exchange) => sendJson(exchange, await runningPods(context)))],
    ["configz", debug((exchange) => sendJson(exchange, { kubeletconfig: context.config() }))],
    ["logs", debug(logs)],
  ]);

  return async (exchange) => {
    const parsed = parsePath(exchange.url);
    try {
      const verdict = await context.auth?.check(exchange, parsed?.path ?? "/");
      if (verdict?.allowed === false) return exchange.respond(verdict.status, text, `${verdict.message}\n`);
      if (parsed === undefined) return exchange.respond(400, text, "400 Bad Request\n");
      if (context.debugPages?.handles(parsed.path)) return await context.debugPages.handle(exchange, parsed.path);
      const [first = "", ...names] = parsed.segments;
      const route = routes.get(first);
      if (route === undefined) return exchange.respond(404, text, "404 page not found\n");
      await route(exchange, names, parsed.query, parsed.path);
    } catch (err) {
      context.log.error("request to the kubelet API failed", err, { method: exchange.method, path: parsed?.path ?? "" });
      if (!exchange.headersSent) exchange.respond(500, text, `${messageOf(err)}\n`);
      else exchange.destroy();
    }
  };
}

/** Handler of `--healthz-port`, without authentication. */
export function newHealthHandler(health: () => string | undefined): ExchangeHandler {
  return (exchange) => {
    const parsed = parsePath(exchange.url);
    const [first, ...names] = parsed?.segments ?? [];
    if (first !== "healthz") return exchange.respond(404, text, "404 page not found\n");
    serveHealth(exchange, health, names);
  };
}

const checks = ["ping", "log", "syncloop"];

function serveHealth(exchange: Exchange, health: () => string | undefined, names: readonly string[]): void {
  const problem = health();
  const [name] = names;
  if (name !== undefined && !checks.includes(name)) {
    exchange.respond(404, text, "404 page not found\n");
    return;
  }
  if (problem === undefined || name === "ping" || name === "log") {
    exchange.respond(200, text, "ok");
    return;
  }
  const lines = checks.map((check) => (check === "syncloop" ? "[-]syncloop failed: reason withheld" : `[+]${check} ok`));
  exchange.respond(
    500,
    text,
    name === undefined ? `${lines.join("\n")}\nhealthz check failed\n` : `internal server error: ${problem}\n`,
  );
}

/** @returns undefined for ambiguous paths: encoded slashes, `..`, NUL */
function parsePath(url: string): { path: string; segments: string[]; query: URLSearchParams } | undefined {
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  if (!path.startsWith("/")) return undefined;
  const segments: string[] = [];
  for (const part of path.slice(1).replace(/\/$/, "").split("/")) {
    let decoded: string;
    try {
      decoded = decodeURIComponent(part);
    } catch {
      return undefined;
    }
    if (decoded === "." || decoded === ".." || /[/\\\0;]/.test(decoded)) return undefined;
    segments.push(decoded);
  }
  // Some routes depend on the trailing slash: /debug/pprof/ and its profiles.
  const folder = path.length > 1 && path.endsWith("/") ? "/" : "";
  return { path: `/${segments.join("/")}${folder}`, segments, query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)) };
}

/** A PodList, Pod by Pod: a node may have 110 of 1.5 MB. */
async function sendPods(exchange: Exchange, context: ServerContext, turns: Turns): Promise<void> {
  const response = exchange.stream(200, json);
  response.write('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[');
  for (const [at, pod] of context.pods().entries()) {
    const turn = turns.next();
    if (turn !== undefined) await turn;
    if (exchange.isGone) return;
    const { apiVersion: _, kind: __, ...rest } = pod;
    const text = JSON.stringify({ ...rest, status: context.statusOf(pod) ?? pod.status ?? {} });
    if (!response.write(at === 0 ? text : `,${text}`)) await response.drained();
  }
  response.end("]}");
}

/** Pods and containers that are running, wanted or not. Source: pkg/kubelet/container/runtime.go ToAPIPod */
async function runningPods({ runtime }: ServerContext): Promise<unknown> {
  const [sandboxes, containers] = await Promise.all([runtime.listPodSandboxes(), runtime.listContainers()]);
  const running = containers.filter(({ state }) => state === containerState.running);
  const pods = new Map<string, { metadata: Record<string, unknown>; spec: { containers: unknown[] | null }; status: object }>();
  const podOf = (labels: Readonly<Record<string, string>>) => {
    const uid = labels[labelNames.podUid];
    if (uid === undefined) return undefined; // not created by a kubelet
    const metadata = {
      name: labels[labelNames.podName],
      namespace: labels[labelNames.podNamespace],
      uid,
      creationTimestamp: null,
    };
    const pod = pods.get(uid) ?? { metadata, spec: { containers: null }, status: {} };
    pods.set(uid, pod);
    return pod;
  };
  for (const { labels, state } of sandboxes) if (state === sandboxState.ready) podOf(labels);
  for (const { labels, metadata, image } of running) {
    const spec = podOf(labels)?.spec;
    if (spec === undefined) continue;
    spec.containers = [...(spec.containers ?? []), { name: metadata?.name, image: image?.image, resources: {} }];
  }
  return { kind: "PodList", apiVersion: "v1", metadata: {}, items: [...pods.values()] };
}

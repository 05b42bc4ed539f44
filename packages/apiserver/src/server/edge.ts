/**
 * The endpoints beside the API: health, metrics, and the keys of service-account tokens. Health and metrics are requested
 * frequently and served directly; the others use Express, which is imported on first use.
 */

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger, RootLogger } from "@coxswain/apimachinery/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { answerHealth, type HealthCheck, healthPage } from "@coxswain/apimachinery/serving/health";
import { answerMetrics } from "@coxswain/apimachinery/serving/metrics-page";
import { type DebugPages, newDebugPages } from "@coxswain/apimachinery/serving/pprof";
import type { IssuerDocuments } from "../authentication/token-issuer.ts";
import { methodNotAllowed } from "../handlers/response.ts";

/** Restricted to GET, unlike the other pages. */
const documentPaths = ["/.well-known/openid-configuration", "/openid/v1/jwks"];

export interface EdgeOptions {
  readonly metrics: MetricsRegistry;
  readonly log: Logger;
  readonly clock: Clock;
  /** Serves /debug/pprof and /debug/flags, the latter changing this logger; undefined: neither is served. */
  readonly profiling: RootLogger | undefined;
  /** Whether DELETE /metrics resets the metrics. */
  readonly resetsMetrics?: boolean;
  /** For this time after startup /livez ignores unfinished hooks. */
  readonly livezGraceMs: number;
  readonly documents: IssuerDocuments | undefined;
}

export interface Edge {
  /** @returns undefined when the path is none of these pages; otherwise resolves when the response is sent */
  handle(exchange: Exchange): void | Promise<void> | undefined;
  handles(path: string): boolean;
  /** Paths for the index at `/`. */
  paths(): string[];
  addCheck(name: string, run: () => Promise<void>, warning?: () => Promise<string | undefined>): void;
  /** Adds a check of /readyz only. */
  addReadyCheck(name: string, run: () => Promise<void>): void;
  /**
   * Adds a check of a startup step.
   * @param name as shown: `poststarthook/bootstrap-controller`
   * @param problem why the step is not finished; undefined when it is
   */
  addHook(name: string, problem: () => string | undefined): void;
  /** Names of the failing checks of /readyz. */
  failedChecks(): Promise<string[]>;
  /** Makes /readyz fail from now on. */
  shutDown(): void;
}

/** Creates the endpoints with the checks `ping` and `log`. */
export function newEdge(options: EdgeOptions): Edge {
  const { clock, log, livezGraceMs } = options;
  const startedMs = clock.now();
  let shuttingDown = false;
  const everywhere: HealthCheck[] = [
    { name: "ping", run() {} },
    { name: "log", run() {} },
  ];
  const readyOnly: HealthCheck[] = [];
  const hooks: { name: string; problem: () => string | undefined }[] = [];
  const shutdown: HealthCheck = {
    name: "shutdown",
    run() {
      if (shuttingDown) throw new Error("process is shutting down");
    },
  };
  const hookChecks = (lenient: boolean): HealthCheck[] =>
    hooks.map(({ name, problem }) => ({
      name,
      run() {
        const reason = problem();
        if (reason === undefined) return;
        if (lenient && clock.now() - startedMs < livezGraceMs) return;
        throw new Error(reason);
      },
    }));
  const checksOf = (page: string): HealthCheck[] => {
    switch (page) {
      case "livez":
        return [...everywhere, ...hookChecks(true)];
      case "readyz":
        return [...everywhere, ...readyOnly, ...hookChecks(false), shutdown];
      default:
        return [...everywhere, ...hookChecks(false)];
    }
  };
  const debug: DebugPages | undefined =
    options.profiling === undefined ? undefined : newDebugPages({ log: options.profiling, clock });
  let pages: Promise<ExchangeHandler> | undefined;
  const answerPage = async (exchange: Exchange): Promise<void> => {
    pages ??= import("./pages.ts").then(({ newPages }) => newPages(options));
    await (await pages)(exchange);
  };
  const isDocument = (path: string): boolean => options.documents !== undefined && documentPaths.includes(path);
  const isPage = (path: string): boolean => path === "/metrics" || isDocument(path);
  /** All methods but DELETE read. Source: k8s.io/apiserver pkg/server/routes/metrics.go */
  const answerMetricsPage = (exchange: Exchange): Promise<void> | void => {
    if (exchange.method !== "DELETE" || options.resetsMetrics !== true) return answerMetrics(exchange, options.metrics);
    options.metrics.reset();
    exchange.respond(200, { "content-type": "text/plain; charset=utf-8" }, "metrics reset\n");
  };

  return {
    handles: (path) => healthPage(path) !== undefined || isPage(path) || debug?.handles(path) === true,
    handle(exchange) {
      const path = exchange.url.split("?")[0] as string;
      const health = healthPage(path);
      if (health !== undefined) return answerHealth(exchange, health.page, health.check, checksOf(health.page), log);
      if (debug?.handles(path)) return debug.handle(exchange, path);
      if (isDocument(path) && exchange.method !== "GET") throw methodNotAllowed();
      if (path === "/metrics") return answerMetricsPage(exchange) ?? Promise.resolve();
      return isPage(path) ? answerPage(exchange) : undefined;
    },
    paths() {
      const health = ["healthz", "livez", "readyz"].flatMap((page) => [
        `/${page}`,
        ...checksOf(page).map(({ name }) => `/${page}/${name}`),
      ]);
      const documents = options.documents === undefined ? [] : documentPaths;
      return [...health, ...documents, ...(debug?.paths ?? []), "/metrics"];
    },
    addCheck: (name, run, warning) => void everywhere.push({ name, run, ...(warning && { warning }) }),
    addReadyCheck: (name, run) => void readyOnly.push({ name, run }),
    addHook: (name, problem) => void hooks.push({ name, problem }),
    async failedChecks() {
      const results = await Promise.allSettled(checksOf("readyz").map(async (check) => check.run()));
      return checksOf("readyz")
        .filter((_, i) => results[i]?.status === "rejected")
        .map(({ name }) => name);
    },
    shutDown() {
      shuttingDown = true;
    },
  };
}

/**
 * The endpoints beside the API: health, metrics, and the keys of service-account tokens. Health and metrics are requested
 * frequently and served directly; the others use Express, which is imported on first use.
 */

import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger, RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { answerHealth, type HealthCheck, healthPage } from "@coxswain/apimachinery/serving/health";
import { answerMetrics } from "@coxswain/apimachinery/serving/metrics-page";
import { type DebugPages, newDebugPages } from "@coxswain/apimachinery/serving/pprof";
import type { IssuerDocuments } from "../authentication/token-issuer.ts";
import { methodNotAllowed } from "../handlers/negotiation.ts";

/** Restricted to GET, unlike the other pages. */
const documentPaths = ["/.well-known/openid-configuration", "/openid/v1/jwks"];

interface EdgeOptions {
  readonly metrics: MetricsRegistry;
  readonly log: Logger;
  readonly clock: Clock;
  /** Serves /debug/pprof and /debug/flags, the latter changing this logger; undefined: neither is served. */
  readonly profiling: RootLogger | undefined;
  /** Whether DELETE /metrics resets the metrics. */
  readonly resetsMetrics?: boolean;
  /** Time after startup for which /livez ignores unfinished hooks. */
  readonly livezGraceMs: number;
  readonly documents: IssuerDocuments | undefined;
}

/** The endpoints beside the API: health checks, of which `ping` and `log` are always there, metrics, debug pages and issuer documents. */
export class Edge {
  readonly #options: EdgeOptions;
  /** Monotonic: a clock that is set back does not lengthen the grace period. */
  readonly #startedMs: number;
  #shuttingDown = false;
  readonly #everywhere: HealthCheck[] = [
    { name: "ping", run() {} },
    { name: "log", run() {} },
  ];
  readonly #readyOnly: HealthCheck[] = [];
  readonly #hooks: { name: string; problem: () => string | undefined }[] = [];
  readonly #shutdown: HealthCheck;
  readonly #debug: DebugPages | undefined;
  #pages: Promise<ExchangeHandler> | undefined;

  constructor(options: EdgeOptions) {
    this.#options = options;
    const { clock } = options;
    this.#startedMs = clock.monotonic();
    this.#shutdown = {
      name: "shutdown",
      run: () => {
        if (this.#shuttingDown) throw new Error("process is shutting down");
      },
    };
    this.#debug = options.profiling === undefined ? undefined : newDebugPages({ log: options.profiling, clock });
  }

  /** Whether `handle` would answer the path, which is without query. */
  handles(path: string): boolean {
    return healthPage(path) !== undefined || this.#isPage(path) || this.#debug?.handles(path) === true;
  }

  /** @returns undefined when the path is none of these pages; otherwise resolves when the response is sent */
  handle(exchange: Exchange): void | Promise<void> | undefined {
    const { log } = this.#options;
    const path = exchange.url.split("?")[0]!;
    const health = healthPage(path);
    if (health !== undefined) return answerHealth(exchange, health.page, health.check, this.#checksOf(health.page), log);
    if (this.#debug?.handles(path)) return this.#debug.handle(exchange, path);
    if (this.#isDocument(path) && exchange.method !== "GET") throw methodNotAllowed();
    if (path === "/metrics") return this.#answerMetricsPage(exchange) ?? Promise.resolve();
    return this.#isPage(path) ? this.#answerPage(exchange) : undefined;
  }

  /** Paths for the index at `/`. */
  paths(): string[] {
    const health = ["healthz", "livez", "readyz"].flatMap((page) => [
      `/${page}`,
      ...this.#checksOf(page).map(({ name }) => `/${page}/${name}`),
    ]);
    const documents = this.#options.documents === undefined ? [] : documentPaths;
    return [...health, ...documents, ...(this.#debug?.paths ?? []), "/metrics"];
  }

  /** Adds a check of /healthz, /livez and /readyz. @param warning a text for `?verbose`, which does not fail the check */
  addCheck(name: string, run: () => Promise<void>, warning?: () => Promise<string | undefined>): void {
    this.#everywhere.push({ name, run, ...(warning && { warning }) });
  }

  /** Adds a check of /readyz only. */
  addReadyCheck(name: string, run: () => Promise<void>): void {
    this.#readyOnly.push({ name, run });
  }

  /**
   * Adds a check of a startup step.
   * @param name as shown: `poststarthook/bootstrap-controller`
   * @param problem why the step is not finished; undefined when it is
   */
  addHook(name: string, problem: () => string | undefined): void {
    this.#hooks.push({ name, problem });
  }

  /** Names of the failing checks of /readyz. */
  async failedChecks(): Promise<string[]> {
    const results = await Promise.allSettled(this.#checksOf("readyz").map(async (check) => check.run()));
    return this.#checksOf("readyz")
      .filter((_, i) => results[i]?.status === "rejected")
      .map(({ name }) => name);
  }

  /** Makes /readyz fail from now on. */
  shutDown(): void {
    this.#shuttingDown = true;
  }

  #hookChecks(lenient: boolean): HealthCheck[] {
    const { clock, livezGraceMs } = this.#options;
    return this.#hooks.map(({ name, problem }) => ({
      name,
      run: () => {
        const reason = problem();
        if (reason === undefined) return;
        if (lenient && clock.monotonic() - this.#startedMs < livezGraceMs) return;
        throw new Error(reason);
      },
    }));
  }

  #checksOf(page: string): HealthCheck[] {
    switch (page) {
      case "livez":
        return [...this.#everywhere, ...this.#hookChecks(true)];
      case "readyz":
        return [...this.#everywhere, ...this.#readyOnly, ...this.#hookChecks(false), this.#shutdown];
      default:
        return [...this.#everywhere, ...this.#hookChecks(false)];
    }
  }

  async #answerPage(exchange: Exchange): Promise<void> {
    this.#pages ??= import("./pages.ts").then(({ newPages }) => newPages(this.#options));
    await (await this.#pages)(exchange);
  }

  #isDocument(path: string): boolean {
    return this.#options.documents !== undefined && documentPaths.includes(path);
  }

  #isPage(path: string): boolean {
    return path === "/metrics" || this.#isDocument(path);
  }

  /** All methods but DELETE read. Source: k8s.io/apiserver pkg/server/routes/metrics.go */
  #answerMetricsPage(exchange: Exchange): Promise<void> | void {
    if (exchange.method !== "DELETE" || this.#options.resetsMetrics !== true)
      return answerMetrics(exchange, this.#options.metrics);
    this.#options.metrics.reset();
    exchange.respond(200, { "content-type": "text/plain; charset=utf-8" }, "metrics reset\n");
  }
}

import type { RequestListener, Server } from "node:http";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { createServer } from "@coxswain/apimachinery/transport/node-http";

/** Where a port listens. */
interface Address {
  readonly host: string;
  readonly port: number;
}

export interface StatusPortsOptions {
  /** For load balancers outside the cluster, which send no connections to a node whose rules are out of date. */
  readonly health: Address | undefined;
  /** For programs of the node. */
  readonly metrics: Address | undefined;
  /** How long the oldest change has been waiting for the kernel, in ms; 0 when none does. */
  readonly lateMs: () => number;
  /** Age of the oldest change from which on the rules count as out of date, in ms. */
  readonly mostLateMs: number;
  readonly renderMetrics: () => Promise<string>;
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  readonly log: Logger;
  readonly clock: Clock;
}

const retryMs = 5_000;
/** Timeout of a client that does not send its request or does not read the response. */
const requestTimeoutMs = 10_000;
const mostConnections = 256;

/**
 * kube-proxy's two ports: health of the node's rules, and metrics. Both are plain HTTP and read-only. Sources:
 * pkg/proxy/healthcheck/proxier_health.go, cmd/kube-proxy/app/server.go
 */
export class StatusPorts {
  readonly #options: StatusPortsOptions;

  constructor(options: StatusPortsOptions) {
    this.#options = options;
  }

  /** Listens until `signal` is aborted; an address that is taken is tried again. Does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { health, metrics } = this.#options;
    const running = [
      ...(health === undefined ? [] : [this.#serve("healthz", health, this.#health, signal)]),
      ...(metrics === undefined ? [] : [this.#serve("metrics", metrics, this.#metrics, signal)]),
    ];
    await Promise.all(running);
  }

  readonly #health: RequestListener = ({ url }, response) => {
    if (pathOf(url) !== "/healthz") return void response.writeHead(404).end();
    const { clock, lateMs, mostLateMs } = this.#options;
    const now = clock.now();
    const late = lateMs();
    const isHealthy = late < mostLateMs;
    response.writeHead(isHealthy ? 200 : 503, {
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
    });
    // As kube-proxy: while healthy it is the present, whether or not there was something to write.
    response.end(`{"lastUpdated": "${timeText(isHealthy ? now : now - late)}","currentTime": "${timeText(now)}"}`);
  };

  readonly #metrics: RequestListener = ({ url }, response) => {
    const text = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
    switch (pathOf(url)) {
      case "/healthz":
        return void response.writeHead(200, text).end("ok");
      case "/proxyMode":
        return void response.writeHead(200, text).end("iptables");
      case "/metrics":
        return void this.#options.renderMetrics().then(
          (page) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(page),
          (err: unknown) => response.writeHead(500, text).end(String(err)),
        );
      default:
        return void response.writeHead(404, text).end("404 page not found\n");
    }
  };

  async #serve(what: string, { host, port }: Address, answer: RequestListener, signal: AbortSignal): Promise<void> {
    const { log, clock, recorder, nodeName } = this.#options;
    while (!signal.aborted) {
      const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
        if (request.method === "GET" || request.method === "HEAD") answer(request, response);
        else response.writeHead(405, { allow: "GET, HEAD" }).end();
      });
      server.maxConnections = mostConnections;
      const ended = Promise.withResolvers<Error | undefined>();
      server.once("error", ended.resolve);
      const stop = (): void => ended.resolve(undefined);
      signal.addEventListener("abort", stop, { once: true });
      server.listen({ host, port });
      const err = await ended.promise;
      signal.removeEventListener("abort", stop);
      await closed(server);
      if (err === undefined) return;
      const message = `failed to start proxier ${what} on ${host}:${port}: ${err.message}`;
      log.error("cannot listen; trying again", err, { what, host, port, afterMs: retryMs });
      const node = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
      if (what === "healthz") recorder.event(node, "Warning", "FailedToStartProxierHealthcheck", message);
      await clock.sleep(retryMs, signal).catch(() => {});
    }
  }
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

const pathOf = (url = "/"): string => url.replace(/\?.*/s, "");

/** As Go prints times. */
const timeText = (ms: number): string => new Date(ms).toISOString().replace("T", " ").replace("Z", " +0000 UTC");

/**
 * Pure: the value of an address flag.
 * @param written `host:port`; IPv6 addresses in brackets. Empty: none
 * @throws ConfigError for anything else
 */
export function parseAddress(flag: string, written: string): Address | undefined {
  if (written === "") return undefined;
  const { host, port = "" } = /^(?:\[(?<host>[\da-fA-F:.]+)\]|(?<host>[^:[\]]+)):(?<port>\d{1,5})$/.exec(written)?.groups ?? {};
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new ConfigError(`--${flag} must be an address and a port as in 0.0.0.0:10256, not ${JSON.stringify(written)}`);
  return { host, port: Number(port) };
}

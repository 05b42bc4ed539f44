import { type Client, newClient } from "../client/client.ts";
import { userAgentOf } from "../client/config.ts";
import { loadKubeconfig } from "../client/kubeconfig.ts";
import { clientMetrics } from "../client/metrics.ts";
import { ConfigError } from "../flags/run-main.ts";
import { messageOf } from "../objects/errors/message.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { RootLogger } from "../process/logging/logger.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import { privilegedGroup } from "./authentication/user.ts";
import { delegatedAuthentication } from "./delegated/authentication.ts";
import { delegatedAuthorization } from "./delegated/authorization.ts";
import { type Guard, newGuard } from "./delegated/guard.ts";
import { openTrust, type TrustFlags } from "./delegated/trust.ts";
import type { Exchange } from "./exchange.ts";
import { answerHealth, healthPage } from "./health.ts";
import { startHttpServer, type TlsOptions } from "./https-server.ts";
import { answerMetrics } from "./metrics-page.ts";
import { newDebugPages } from "./pprof.ts";
import { selfSignedPair } from "./self-signed.ts";
import { parseSniCertKey } from "./tls-options.ts";

/** Flags of a component's secure port, as in the flag tables of the controller manager and the scheduler. */
export interface ComponentServingFlags extends TrustFlags {
  readonly "secure-port": number;
  readonly "bind-address": string;
  readonly "tls-cert-file": string;
  readonly "tls-private-key-file": string;
  readonly "cert-dir": string;
  readonly "tls-sni-cert-key": readonly string[];
  readonly "tls-min-version": string;
  readonly "tls-cipher-suites": readonly string[];
  readonly "permit-port-sharing": boolean;
  readonly "http2-max-streams-per-connection": number;
  readonly "authentication-kubeconfig": string;
  readonly "authorization-kubeconfig": string;
  readonly "authentication-token-webhook-cache-ttl": number;
  readonly "authorization-webhook-cache-authorized-ttl": number;
  readonly "authorization-webhook-cache-unauthorized-ttl": number;
  readonly "authorization-always-allow-paths": readonly string[];
  readonly profiling: boolean;
}

interface ComponentServerOptions {
  readonly name: string;
  readonly flags: ComponentServingFlags;
  readonly log: RootLogger;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Health checks by name; a check that throws has failed. Without any, `ping` is served. */
  readonly checks: Readonly<Record<string, () => void | Promise<void>>>;
  /** Checks that are listed and can be queried by name, but do not fail the page: a restart would not repair them. */
  readonly informativeChecks?: Readonly<Record<string, () => void | Promise<void>>>;
  /** Effective configuration by name, for /configz. */
  readonly configz: () => Readonly<Record<string, unknown>>;
  /** Additional metrics pages by path: `/metrics/resources`. */
  readonly metricsPages?: Readonly<Record<string, () => Promise<string>>>;
}

export interface ComponentServer {
  readonly port: number;
  /**
   * Rejects with a ConfigError when the cluster's authentication configuration cannot be looked up because a ready API server
   * refuses the request. Never resolves.
   */
  readonly failed: Promise<never>;
  /** Graceful shutdown: running requests are aborted after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/**
 * Serves /healthz, /livez, /readyz, /metrics and /configz of the controller manager and the scheduler, and /debug/pprof/ with
 * --profiling, behind delegated authentication and authorization. Without a certificate a self-signed one is created.
 * @returns undefined when --secure-port is 0
 * @throws ConfigError when it cannot listen
 */
export async function startComponentServer(options: ComponentServerOptions): Promise<ComponentServer | undefined> {
  const { flags, log, metrics } = options;
  const metricsPages = new Map(Object.entries(options.metricsPages ?? {}));
  if (flags["secure-port"] === 0) return undefined;
  const ending = new AbortController();
  const { guard, failed } = await guardOf(options, ending.signal).catch((err: unknown) => {
    ending.abort(); // what was opened before the failure
    throw err;
  });
  const debug = newDebugPages({ log, clock: options.clock });
  const own = Object.entries(options.checks).map(([name, run]) => ({ name, run }));
  const informative = Object.entries(options.informativeChecks ?? {}).map(([name, run]) => ({ name, run, informative: true }));
  const checks = [...(own.length > 0 ? own : [{ name: "ping", run: () => {} }]), ...informative];
  const answer = async (exchange: Exchange, path: string): Promise<void> => {
    const health = healthPage(path);
    if (health !== undefined) return answerHealth(exchange, health.page, health.check, checks, log);
    if (path === "/metrics") return answerMetrics(exchange, metrics);
    const render = metricsPages.get(path);
    if (render !== undefined) return exchange.respond(200, { "content-type": metrics.contentType }, await render());
    if (path === "/configz")
      return exchange.respond(200, { "content-type": "application/json" }, JSON.stringify(options.configz()));
    if (flags.profiling && debug.handles(path)) return debug.handle(exchange, path);
    exchange.respond(404, plainText, "404 page not found\n");
  };
  try {
    const server = await startHttpServer({
      port: flags["secure-port"],
      bindAddress: flags["bind-address"],
      tls: await tlsOptions(options.name, flags),
      reusePort: flags["permit-port-sharing"],
      maxConcurrentStreams: flags["http2-max-streams-per-connection"] || undefined,
      log,
      metrics,
      async handler(exchange) {
        const path = exchange.url.split("?")[0]!;
        if (await guard(exchange, path)) await answer(exchange, path);
      },
    });
    log.info("Serving securely", { address: `${flags["bind-address"]}:${server.port}` });
    return {
      port: server.port,
      failed,
      async close(graceMs) {
        await server.close(graceMs).finally(() => ending.abort());
      },
    };
  } catch (err) {
    ending.abort();
    throw new ConfigError(`failed to serve on ${flags["bind-address"]}:${flags["secure-port"]}: ${messageOf(err)}`, {
      cause: err,
    });
  }
}

/** @throws ConfigError for an invalid kubeconfig or certificate file */
async function guardOf(
  options: ComponentServerOptions,
  signal: AbortSignal,
): Promise<{ guard: Guard; failed: ComponentServer["failed"] }> {
  const { flags, log, clock, metrics } = options;
  const clientOf = async (kubeconfig: string, what: string): Promise<Client | undefined> => {
    if (kubeconfig === "") return undefined;
    const config = await loadKubeconfig(kubeconfig).catch((err: Error) => {
      throw new ConfigError(`failed to get ${what} kubeconfig: ${err.message}`, { cause: err });
    });
    const own = { qps: -1, userAgent: userAgentOf(options.name) };
    const client = newClient({ ...config, ...own }, { observer: clientMetrics(metrics) });
    signal.addEventListener("abort", () => client.close(), { once: true });
    return client;
  };
  const authentication = await clientOf(flags["authentication-kubeconfig"], "delegated authentication");
  const authorization = await clientOf(flags["authorization-kubeconfig"], "delegated authorization");
  if (authorization === undefined) {
    log.warn(
      "--authorization-kubeconfig is not set: the API server cannot be queried, and only --authorization-always-allow-paths are allowed",
    );
  }
  try {
    const trust = await openTrust({ flags, client: authentication, clock, log, signal });
    const guard = newGuard({
      authenticate: delegatedAuthentication({
        trust,
        client: authentication,
        tokenTtlMs: flags["authentication-token-webhook-cache-ttl"],
        anonymous: true,
        clock,
        metrics,
      }),
      authorize: delegatedAuthorization({
        client: authorization,
        authorizedTtlMs: flags["authorization-webhook-cache-authorized-ttl"],
        unauthorizedTtlMs: flags["authorization-webhook-cache-unauthorized-ttl"],
        alwaysAllowGroups: [privilegedGroup],
        alwaysAllowPaths: flags["authorization-always-allow-paths"],
        clock,
        metrics,
      }),
      log,
    });
    const failed = new Promise<never>((_, reject) => {
      trust.lookedUp.catch((err: unknown) => {
        if (!signal.aborted) reject(new ConfigError(messageOf(err), { cause: err }));
      });
    });
    failed.catch(() => {}); // avoids an unhandled rejection when the caller ignores it
    return { guard, failed };
  } catch (err) {
    throw new ConfigError(messageOf(err), { cause: err });
  }
}

const plainText = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };

async function tlsOptions(name: string, flags: ComponentServingFlags): Promise<TlsOptions> {
  const given = { certFile: flags["tls-cert-file"], keyFile: flags["tls-private-key-file"] };
  const made = {
    certDir: flags["cert-dir"],
    pairName: name,
    host: "localhost",
    dnsNames: ["localhost"],
    ips: ["127.0.0.1", "::1"],
  };
  return {
    ...(given.certFile === "" ? await selfSignedPair(made) : given),
    clientCaFile: flags["client-ca-file"] || undefined,
    clientCaFiles: [flags["requestheader-client-ca-file"]].filter((file) => file !== ""),
    // Authorities may also come from the cluster, later.
    requestClientCertificate: true,
    sni: flags["tls-sni-cert-key"].map(parseSniCertKey),
    minVersion: flags["tls-min-version"] || undefined,
    cipherSuites: flags["tls-cipher-suites"],
  };
}

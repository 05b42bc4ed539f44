import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import { ConfigError } from "../flags/run-main.ts";
import type { RootLogger } from "../logging/logger.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import { newDelegatedAuth } from "./delegated-auth.ts";
import type { Exchange } from "./exchange.ts";
import { answerHealth, healthPage } from "./health.ts";
import { type HttpServer, startHttpServer, type TlsOptions } from "./https-server.ts";
import { newDebugPages } from "./pprof.ts";
import { selfSignedPair } from "./self-signed.ts";
import { parseSniCertKey } from "./tls-options.ts";

/** The flags of a component's own port, as the tables of the controller manager and the scheduler have them. */
export interface ComponentServingFlags {
  readonly "secure-port": number;
  readonly "bind-address": string;
  readonly "tls-cert-file": string;
  readonly "tls-private-key-file": string;
  readonly "cert-dir": string;
  readonly "tls-sni-cert-key": readonly string[];
  readonly "tls-min-version": string;
  readonly "tls-cipher-suites": readonly string[];
  readonly "client-ca-file": string;
  readonly "permit-port-sharing": boolean;
  readonly "http2-max-streams-per-connection": number;
  readonly "authentication-token-webhook-cache-ttl": number;
  readonly "authorization-webhook-cache-authorized-ttl": number;
  readonly "authorization-webhook-cache-unauthorized-ttl": number;
  readonly "authorization-always-allow-paths": readonly string[];
  readonly profiling: boolean;
}

export interface ComponentServerOptions {
  readonly name: string;
  readonly flags: ComponentServingFlags;
  /** Asks the API server about callers; undefined when no kubeconfig was given for it. */
  readonly client: Client | undefined;
  readonly log: RootLogger;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Name → throws when it is not well. */
  readonly checks: Readonly<Record<string, () => void | Promise<void>>>;
  /** The configuration in force, by its name. */
  readonly configz: () => Readonly<Record<string, unknown>>;
}

/**
 * /healthz, /livez, /readyz, /metrics, /configz of the controller manager and the scheduler, behind delegated
 * authentication and authorization, with /debug/pprof/ where --profiling is on. Without a certificate a self-signed one
 * is made.
 * @returns undefined when --secure-port is 0
 * @throws ConfigError when it cannot listen
 */
export async function startComponentServer(options: ComponentServerOptions): Promise<HttpServer | undefined> {
  const { flags, log, metrics } = options;
  if (flags["secure-port"] === 0) return undefined;
  const auth = newDelegatedAuth({
    client: options.client,
    clock: options.clock,
    log,
    tokenTtlMs: flags["authentication-token-webhook-cache-ttl"],
    authorizedTtlMs: flags["authorization-webhook-cache-authorized-ttl"],
    unauthorizedTtlMs: flags["authorization-webhook-cache-unauthorized-ttl"],
    alwaysAllowPaths: flags["authorization-always-allow-paths"],
  });
  const debug = newDebugPages({ log, clock: options.clock });
  const checks = [{ name: "ping", run: () => {} }, ...Object.entries(options.checks).map(([name, run]) => ({ name, run }))];
  const answer = async (exchange: Exchange, path: string): Promise<void> => {
    const health = healthPage(path);
    if (health !== undefined) return answerHealth(exchange, health.page, health.check, checks, log);
    if (path === "/metrics") return exchange.respond(200, { "content-type": metrics.contentType }, await metrics.render());
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
      async handler(exchange) {
        const path = exchange.url.split("?")[0] as string;
        const refusal = await auth.check(exchange, path);
        if (refusal !== undefined) return exchange.respond(refusal.status, plainText, `${refusal.message}\n`);
        await answer(exchange, path);
      },
    });
    log.info("Serving securely", { address: `${flags["bind-address"]}:${server.port}` });
    return server;
  } catch (err) {
    throw new ConfigError(`failed to serve on ${flags["bind-address"]}:${flags["secure-port"]}: ${(err as Error).message}`, {
      cause: err,
    });
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
    sni: flags["tls-sni-cert-key"].map(parseSniCertKey),
    minVersion: flags["tls-min-version"] || undefined,
    cipherSuites: flags["tls-cipher-suites"],
  };
}

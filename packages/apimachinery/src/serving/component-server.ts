import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import { ConfigError } from "../flags/run-main.ts";
import type { Logger } from "../logging/logger.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import { newCa, newCertificate } from "./certificates.ts";
import { newDelegatedAuth } from "./delegated-auth.ts";
import type { Exchange } from "./exchange.ts";
import { type HttpServer, startHttpServer, type TlsOptions } from "./https-server.ts";

/** The flags of a component's own port, as the tables of the controller manager and the scheduler have them. */
export interface ComponentServingFlags {
  readonly "secure-port": number;
  readonly "bind-address": string;
  readonly "tls-cert-file": string;
  readonly "tls-private-key-file": string;
  readonly "tls-min-version": string;
  readonly "tls-cipher-suites": readonly string[];
  readonly "client-ca-file": string;
  readonly "permit-port-sharing": boolean;
  readonly "http2-max-streams-per-connection": number;
  readonly "authentication-token-webhook-cache-ttl": number;
  readonly "authorization-webhook-cache-authorized-ttl": number;
  readonly "authorization-webhook-cache-unauthorized-ttl": number;
  readonly "authorization-always-allow-paths": readonly string[];
}

export interface ComponentServerOptions {
  readonly name: string;
  readonly flags: ComponentServingFlags;
  /** Asks the API server about callers; undefined when no kubeconfig was given for it. */
  readonly client: Client | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Name → throws when it is not well. */
  readonly checks: Readonly<Record<string, () => void | Promise<void>>>;
  /** The configuration in force, by its name. */
  readonly configz: () => Readonly<Record<string, unknown>>;
}

/**
 * /healthz, /livez, /readyz, /metrics, /configz of the controller manager and the scheduler, behind delegated
 * authentication and authorization. A certificate is made for the time of the process when none is given.
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
  const answer = async (exchange: Exchange, path: string): Promise<void> => {
    if (/^\/(healthz|livez|readyz)(\/|$)/.test(path)) return answerHealth(exchange, path, options.checks);
    if (path === "/metrics") return exchange.respond(200, { "content-type": metrics.contentType }, await metrics.render());
    if (path === "/configz")
      return exchange.respond(200, { "content-type": "application/json" }, JSON.stringify(options.configz()));
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

async function answerHealth(exchange: Exchange, path: string, checks: ComponentServerOptions["checks"]): Promise<void> {
  const [, endpoint = "", only] = path.split("/");
  const lines: string[] = [];
  let failed = false;
  for (const [name, check] of Object.entries({ ping: () => {}, ...checks })) {
    if (only !== undefined && only !== name) continue;
    try {
      await check();
      lines.push(`[+]${name} ok`);
    } catch {
      failed = true;
      lines.push(`[-]${name} failed: reason withheld`);
    }
  }
  if (only !== undefined && lines.length === 0) return exchange.respond(404, plainText, "404 page not found\n");
  const isVerbose = new URLSearchParams(exchange.url.split("?")[1] ?? "").has("verbose");
  const all = `${lines.join("\n")}\n${endpoint} check ${failed ? "failed" : "passed"}\n`;
  exchange.respond(failed ? 500 : 200, plainText, failed || isVerbose ? all : "ok");
}

async function tlsOptions(name: string, flags: ComponentServingFlags): Promise<TlsOptions> {
  const shared = {
    clientCaFile: flags["client-ca-file"] || undefined,
    minVersion: flags["tls-min-version"] || undefined,
    cipherSuites: flags["tls-cipher-suites"].length > 0 ? flags["tls-cipher-suites"] : undefined,
  };
  if (flags["tls-cert-file"] !== "")
    return { ...shared, certFile: flags["tls-cert-file"], keyFile: flags["tls-private-key-file"] };
  const ca = await newCa({ commonName: `${name}-ca` });
  const pair = await newCertificate({
    commonName: name,
    organizations: [],
    dnsNames: ["localhost"],
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca,
  });
  return { ...shared, cert: pair.certPem, key: pair.keyPem };
}

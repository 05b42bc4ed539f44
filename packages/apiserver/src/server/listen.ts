/** The HTTPS listener, configured from the flags. Without a certificate a self-signed pair is created in --cert-dir. */
import { hostname } from "node:os";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { type HttpServer, startHttpServer, type TlsOptions } from "@coxswain/apimachinery/serving/https-server";
import { selfSignedPair } from "@coxswain/apimachinery/serving/self-signed";
import { parseSniCertKey } from "@coxswain/apimachinery/serving/tls-options";
import type { HeaderMemory } from "@coxswain/apimachinery/transport/http2/server/input";
import type { ApiserverConfig } from "../config.ts";
import definitions from "../metrics.json" with { type: "json" };
import { firstAddress } from "./first-address.ts";

/** @throws Error when the port is in use or a certificate file is invalid */
export async function listen(
  config: ApiserverConfig,
  handler: ExchangeHandler,
  log: Logger,
  metrics: MetricsRegistry,
  turns: Turns,
  headerMemory: HeaderMemory,
): Promise<HttpServer> {
  const { flags } = config;
  const handshakeErrors = metrics.counter(definitions.apiserver_tls_handshake_errors_total);
  return startHttpServer({
    port: flags["secure-port"],
    bindAddress: flags["bind-address"],
    tls: await tlsOptions(config),
    handler,
    turns,
    headerMemory,
    log: log.named("serving"),
    answerTimeoutMs: flags["request-timeout"],
    reusePort: flags["permit-port-sharing"],
    ...(flags["http2-max-streams-per-connection"] > 0 ? { maxConcurrentStreams: flags["http2-max-streams-per-connection"] } : {}),
    onHandshakeError: () => handshakeErrors.inc(),
    metrics,
  });
}

async function tlsOptions(config: ApiserverConfig): Promise<TlsOptions> {
  const { flags } = config;
  const pair =
    flags["tls-cert-file"] === ""
      ? await selfSigned(config)
      : { certFile: flags["tls-cert-file"], keyFile: flags["tls-private-key-file"] };
  return {
    ...pair,
    clientCaFiles: [flags["client-ca-file"], flags["requestheader-client-ca-file"]].filter((file) => file !== ""),
    sni: flags["tls-sni-cert-key"].map(parseSniCertKey),
    minVersion: flags["tls-min-version"],
    cipherSuites: flags["tls-cipher-suites"],
  };
}

function selfSigned({ flags, advertiseAddress, serviceClusterIpRange }: ApiserverConfig): ReturnType<typeof selfSignedPair> {
  return selfSignedPair({
    certDir: flags["cert-dir"],
    pairName: "apiserver",
    host: advertiseAddress,
    dnsNames: ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost", hostname().toLowerCase()],
    ips: [advertiseAddress, "127.0.0.1", firstAddress(serviceClusterIpRange[0]!)],
  });
}

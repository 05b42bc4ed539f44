import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { type HttpServer, startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { newDebugPages } from "@coxswain/apimachinery/serving/pprof";
import { selfSignedPair } from "@coxswain/apimachinery/serving/self-signed";
import { parseSniCertKey } from "@coxswain/apimachinery/serving/tls-options";
import type { AgentConfig } from "../agent-config.ts";
import { servingCertificateFile } from "../node/certificates.ts";
import type { Auth } from "./auth.ts";
import { countRequests } from "./request-metrics.ts";
import { newHealthHandler, newKubeletHandler, type ServerContext } from "./server.ts";

export interface ListenOptions {
  config: AgentConfig;
  context: Omit<ServerContext, "auth" | "debuggingHandlers" | "systemLogsDir" | "log">;
  auth: Auth;
  nodeName: string;
  ips: readonly string[];
  clock: Clock;
  log: RootLogger;
}

export interface Listening {
  /** The bound ports; differ from the configuration when that is 0. */
  port: number;
  healthzPort: number;
  close(): Promise<void>;
}

/** Starts the configured servers: kubelet API, read-only port, health checks. @throws Error when one fails; none is left open */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { config, auth, clock, log } = options;
  const context = { ...options.context, log };
  const bindAddress = config.address;
  const counted = (serverType: "readwrite" | "readonly", all: ServerContext): ExchangeHandler =>
    countRequests(newKubeletHandler(all), { registry: context.metrics, serverType, clock });
  const open = {
    api: async (): Promise<HttpServer> =>
      startHttpServer({
        port: config.port,
        bindAddress,
        tls: await tlsOf(options),
        log,
        metrics: context.metrics,
        handler: counted("readwrite", {
          ...context,
          auth,
          debuggingHandlers: config.enableDebuggingHandlers,
          systemLogsDir: config.enableSystemLogHandler ? "/var/log" : undefined,
          debugPages: config.enableDebuggingHandlers ? newDebugPages({ log, clock }) : undefined,
        }),
      }),
    readOnly: () =>
      startHttpServer({
        port: config.readOnlyPort,
        bindAddress,
        log,
        metrics: context.metrics,
        handler: counted("readonly", { ...context, auth: undefined, debuggingHandlers: false }),
      }),
    health: () =>
      startHttpServer({
        port: config.healthzPort,
        bindAddress: config.healthzBindAddress,
        log,
        metrics: context.metrics,
        handler: newHealthHandler(context.health),
      }),
  };
  const servers: HttpServer[] = [];
  const start = async (wanted: boolean, opening: () => Promise<HttpServer>): Promise<HttpServer | undefined> => {
    if (!wanted) return undefined;
    const server = await opening();
    servers.push(server);
    return server;
  };
  const close = async (): Promise<void> => void (await Promise.all(servers.map((server) => server.close(0))));
  try {
    const api = await start(config.enableServer, open.api);
    await start(config.readOnlyPort > 0, open.readOnly);
    const health = await start(config.healthzPort > 0, open.health);
    return { port: api?.port ?? config.port, healthzPort: health?.port ?? config.healthzPort, close };
  } catch (err) {
    await close();
    throw err;
  }
}

async function tlsOf({ config, nodeName, ips }: ListenOptions) {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, certDir } = config;
  const selfSigned = () =>
    selfSignedPair({ certDir, pairName: "kubelet", host: nodeName, dnsNames: [nodeName], ips: [...ips, "127.0.0.1"] });
  const files = async () => {
    if (certFile !== "" || keyFile !== "") return { certFile, keyFile };
    if (!config.rotateServerCertificates) return selfSigned();
    const both = await servingCertificateFile(certDir, selfSigned);
    return { certFile: both, keyFile: both };
  };
  return {
    ...(await files()),
    clientCaFile: config.clientCaFile || undefined,
    sni: config.tlsSniCertKeys.map(parseSniCertKey),
    minVersion: config.tlsMinVersion || undefined,
    cipherSuites: config.tlsCipherSuites.length === 0 ? undefined : config.tlsCipherSuites,
  };
}

/**
 * Starts and stops the API server. It listens before it opens the storage, so that the health endpoints report what is missing
 * while etcd is unavailable; it stops in the reverse order.
 */
import { randomUUID } from "node:crypto";
import { SetOnce } from "@coxswain/apimachinery/objects/meta/set-once";
import type { Logger, RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import type { HttpServer } from "@coxswain/apimachinery/serving/https-server";
import { formatLocation } from "./aggregation/service-resolver.ts";
import { followAuthenticationInfo } from "./bootstrap/authentication-info.ts";
import { type IdentityLeaseOptions, keepIdentityLease } from "./bootstrap/identity-lease.ts";
import {
  type KubernetesServiceLoop,
  type KubernetesServiceOptions,
  type LiveServers,
  runKubernetesService,
} from "./bootstrap/kubernetes-service.ts";
import { newMasterCount } from "./bootstrap/master-count.ts";
import { newServerLeases, serverLeasesResource } from "./bootstrap/server-leases.ts";
import type { ApiserverConfig } from "./config.ts";
import type { OpenRequests } from "./filters/lifetime.ts";
import { newObjectCounts } from "./flow-control/object-counts.ts";
import { autoregistrationHook } from "./server/aggregator-hooks.ts";
import { Edge } from "./server/edge.ts";
import { firstAddress } from "./server/first-address.ts";
import { type ApiserverRuntime, type Foundation, newFoundation } from "./server/foundation.ts";
import { listen } from "./server/listen.ts";
import { connectModules, type Modules } from "./server/modules.ts";
import { openStorageWithRetry } from "./server/open-storage.ts";
import { ownHost } from "./server/own-host.ts";
import { newPostStartHooks } from "./server/post-start-hooks.ts";
import { issuerDocumentsOf } from "./server/service-accounts.ts";
import { untilServable, whileStarting } from "./server/start-gate.ts";
import { startHooks } from "./server/start-hooks.ts";
import { untilAborted } from "./server/until-aborted.ts";
import { newEncryptionMetrics } from "./storage/etcd/encryption-metrics.ts";
import { newKmsCheck } from "./storage/etcd/kms-health.ts";
import type { StorageSet } from "./storage/open.ts";
import { assetsFolder } from "./ui/assets-folder.ts";
import { UiPages } from "./ui/pages.ts";

export type { ApiserverRuntime } from "./server/foundation.ts";

export interface RunningApiserver {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  readonly port: number;
  /** Resolves when all modules are connected and the hooks have run. Rejects when that is impossible: the server has to be stopped then. */
  readonly started: Promise<void>;
  /** Resolves when every check of /readyz passes. */
  ready(signal?: AbortSignal): Promise<void>;
  readonly requests: OpenRequests;
  /** Drains and stops the server; connections that are still open after the grace period are closed. */
  stop(graceMs?: number): Promise<void>;
}

const readyPollMs = 20;
/** Minimum time to flush buffered audit events at shutdown, however short the grace period is. */
const leastFlushMs = 2000;
/** Time to finish sending responses after the last request has ended. Source: genericapiserver.go ShutdownTimeout */
const lastAnswersMs = 2_000;

/** @throws Error when the port is taken or a certificate is unreadable; an unreachable etcd is waited for */
export async function startApiserver(config: ApiserverConfig, runtime: ApiserverRuntime): Promise<RunningApiserver> {
  const stopping = new AbortController();
  const foundation = newFoundation(config, runtime, stopping.signal);
  const server = new Apiserver(foundation, stopping);
  await server.listen(runtime.listen);
  server.start(runtime);
  return server;
}

/** Health, metrics and the other pages beside the API. */
function openEdge({ config, metrics, log, clock, keys }: Foundation): Edge {
  const { flags } = config;
  return new Edge({
    metrics,
    log,
    clock,
    profiling: flags.profiling && isRoot(log) ? log : undefined,
    resetsMetrics: flags.profiling,
    livezGraceMs: flags["livez-grace-period"],
    documents: issuerDocumentsOf(config, keys, log),
  });
}

const traced = ({ tracer }: Foundation, handler: ExchangeHandler): ExchangeHandler => tracer?.requests(handler) ?? handler;

/** The page is served before the filters, which require credentials. */
function withUi({ config, log }: Foundation, handler: ExchangeHandler): ExchangeHandler {
  if (!config.flags.ui) return handler;
  const pages = new UiPages(assetsFolder, log);
  return (exchange) => (pages.handle(exchange) ? undefined : handler(exchange));
}

class Apiserver implements RunningApiserver {
  readonly #foundation: Foundation;
  readonly #edge: Edge;
  readonly #listener = new SetOnce<HttpServer>("the listener");
  readonly #stopping: AbortController;
  #started: Promise<void> = Promise.resolve();
  #storage: StorageSet | undefined;
  #kubernetesService: KubernetesServiceLoop | undefined;
  #isConnected = false;
  /** Whether requests reach the router. */
  #isOpen = false;

  /** @param stopping its signal is that of the foundation */
  constructor(foundation: Foundation, stopping: AbortController) {
    this.#foundation = foundation;
    this.#edge = openEdge(foundation);
    this.#stopping = stopping;
    this.#addStorageChecks();
  }

  get url(): string {
    const host = ownHost(this.#foundation.config.flags["bind-address"]);
    return `https://${formatLocation({ host, port: this.port })}`;
  }

  get port(): number {
    return this.#listener.get().port;
  }

  get started(): Promise<void> {
    return this.#started;
  }

  get requests(): OpenRequests {
    return this.#foundation.drain;
  }

  /** Serves health checks, and 503 for everything else, until `start` has connected the modules. */
  async listen(listenFor = listen): Promise<void> {
    const { config, log, metrics, turns, memory } = this.#foundation;
    const starting = whileStarting(this.#edge, { anonymousAuth: config.flags["anonymous-auth"] });
    this.#listener.set(await listenFor(config, traced(this.#foundation, starting), log, metrics, turns, memory.headers));
    log.info("Serving securely", { address: `${config.flags["bind-address"]}:${this.port}` });
  }

  start(runtime: ApiserverRuntime): void {
    const { log, signal } = this.#foundation;
    this.#started = this.#start(runtime);
    this.#started.catch((err: unknown) => {
      if (!signal.aborted) log.error("the start failed", err);
    });
  }

  async ready(wanted?: AbortSignal): Promise<void> {
    await (wanted === undefined ? this.#started : Promise.race([this.#started, untilAborted(wanted)]));
    while ((await this.#edge.failedChecks()).length > 0) await this.#foundation.clock.sleep(readyPollMs, wanted);
  }

  async stop(graceMs = this.#foundation.config.flags["request-timeout"]): Promise<void> {
    const { config, clock, drain, auditor, exporter, certificates } = this.#foundation;
    this.#edge.shutDown();
    await this.#kubernetesService?.stop();
    if (config.flags["shutdown-delay-duration"] > 0) await clock.sleep(config.flags["shutdown-delay-duration"]);
    if (config.flags["shutdown-send-retry-after"]) {
      // The listener stays open, because new requests are answered with Retry-After or a closed connection.
      drain.sendRetryAfter = true;
      await drain.end(graceMs, clock);
      await this.#listener.get().close(Math.min(graceMs, lastAnswersMs));
    } else {
      // Stops listening; open connections get GOAWAY.
      const closed = this.#listener.get().close(graceMs);
      await drain.end(graceMs, clock);
      await closed;
    }
    await auditor?.backend.stop(AbortSignal.timeout(Math.max(graceMs, leastFlushMs)));
    this.#stopping.abort(new Error("the server has stopped"));
    await this.#started.catch(() => {});
    this.#storage?.stop();
    await exporter?.close();
    certificates.close();
  }

  async #start({ aroundEtcd: around, etcdClient: client }: ApiserverRuntime): Promise<void> {
    const { config, clock, featureEnabled } = this.#foundation;
    const objectCounts = newObjectCounts(clock, config.flags["etcd-count-metric-poll-period"]);
    const storage = await openStorageWithRetry(this.#foundation, { around, client }, (...count) => objectCounts.set(...count));
    this.#storage = storage;
    const modules = connectModules({
      ...this.#foundation,
      storage,
      self: () => ({ host: ownHost(config.flags["bind-address"]), port: this.port }),
      edge: this.#edge,
      fairness: config.flags["enable-priority-and-fairness"] && featureEnabled("APIPriorityAndFairness"),
      objectCounts,
    });
    await this.#serve(modules, this.#kubernetesServiceOptions(modules, storage), this.#identityOf(modules));
  }

  #addStorageChecks(): void {
    const { config, metrics, clock } = this.#foundation;
    const checkEtcd = async (): Promise<void> => {
      // Not ready either when the modules could not be connected: the server answers 503 to all but health checks.
      if (this.#storage === undefined || !this.#isConnected) throw new Error("etcd has not been reached yet");
      await this.#storage.health();
    };
    this.#edge.addCheck("etcd", checkEtcd, async () => this.#storage?.warning());
    const encryptionMetrics = newEncryptionMetrics(metrics, clock); // shown without encryption, too
    config.encryption?.countIn(encryptionMetrics);
    for (const [i, { name, service }] of (config.encryption?.kms ?? []).entries()) {
      this.#edge.addCheck(`kms-provider-${i}`, newKmsCheck(name, service, clock));
    }
  }

  #kubernetesServiceOptions({ client }: Modules, storage: StorageSet): KubernetesServiceOptions {
    const { config, clock, log } = this.#foundation;
    return {
      client,
      servers: liveServers(config.flags, storage),
      advertiseAddress: config.advertiseAddress,
      securePort: this.port,
      clusterIp: firstAddress(config.serviceClusterIpRange[0]!),
      nodePort: config.flags["kubernetes-service-node-port"],
      clock,
      log,
    };
  }

  #identityOf({ client }: Modules): IdentityLeaseOptions | undefined {
    const { config, clock, log, featureEnabled } = this.#foundation;
    if (!featureEnabled("APIServerIdentity")) return undefined;
    return {
      client,
      identity: `kube-apiserver-${randomUUID()}`,
      durationSeconds: config.flags["identity-lease-duration-seconds"],
      renewIntervalSeconds: config.flags["identity-lease-renew-interval-seconds"],
      clock,
      log,
    };
  }

  /** Runs the hooks, and opens the router to requests as soon as startup is complete. */
  async #serve(modules: Modules, service: KubernetesServiceOptions, identity: IdentityLeaseOptions | undefined): Promise<void> {
    const { clock, log, signal, certificates } = this.#foundation;
    const hooks = startHooks(this.#foundation, modules, service, identity);
    const running = newPostStartHooks(hooks, clock, log);
    const unregistered = (): readonly string[] => modules.aggregator.autoregistration.missing();
    for (const { name } of hooks) {
      this.#edge.addHook(`poststarthook/${name}`, () => running.problem(name));
      if (name !== autoregistrationHook) continue;
      this.#edge.addHook("autoregister-completion", () => {
        const missing = unregistered();
        return missing.length === 0 ? undefined : `missing APIService: [${missing.join(" ")}]`;
      });
    }
    this.#edge.addReadyCheck("informer-sync", async () => {
      // Not ready until the router is open: a client that saw the server ready must not get 503.
      if (!modules.synced() || !this.#isOpen) throw new Error("informers are not synced yet");
    });
    modules.informers.start(signal);
    this.#isConnected = true;
    const hooksDone = running.run(signal);
    hooksDone.catch(() => {}); // awaited below, or the server has stopped
    await untilServable({
      missing: () => [...running.unfinished(), ...(modules.synced() ? [] : ["informer-sync"]), ...unregistered()],
      failingMs: () => running.failingMs(),
      lastStep: hooksDone,
      clock,
      log,
      signal,
    });
    this.#listener.get().handleWith(traced(this.#foundation, withUi(this.#foundation, modules.serve)));
    this.#isOpen = true;
    await hooksDone;
    const info = () => certificates.authenticationInfo();
    certificates.onAuthorities(followAuthenticationInfo({ client: modules.client, info, clock, log, signal }));
    if (identity !== undefined) keepIdentityLease(identity, signal);
    void modules.repair.run(signal).catch(() => {}); // ends with the server
    this.#kubernetesService = runKubernetesService(service);
    await this.#kubernetesService.begun;
  }
}

/** @returns undefined when another program writes the endpoints of the service `kubernetes` */
function liveServers(flags: ApiserverConfig["flags"], storage: StorageSet): LiveServers | undefined {
  switch (flags["endpoint-reconciler-type"]) {
    case "none":
      return undefined;
    case "master-count":
      return newMasterCount(flags["apiserver-count"]);
    default:
      return newServerLeases(storage.for(serverLeasesResource));
  }
}

function isRoot(log: Logger): log is RootLogger {
  return "setVerbosity" in log;
}

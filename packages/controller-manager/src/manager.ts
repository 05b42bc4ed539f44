import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type Client, type ClientFamily, newClientFamily } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { configFromFlags } from "@coxswain/apimachinery/client/in-cluster";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import { type LeaderStatus, newLeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { newResourceLock, type ResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { waitForServer } from "@coxswain/apimachinery/controller/wait-for-server";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { type InformerFactoryOptions, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures } from "@coxswain/apimachinery/informers/metrics";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { queueMetrics } from "@coxswain/apimachinery/workqueue/metrics";
import { type CatalogueEntry, catalogue } from "./catalogue.ts";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { type Share, shareOf } from "./leader-migration.ts";
import { ResourceDiscovery } from "./resource-discovery.ts";
import { requireHealthyServer } from "./server-health.ts";
import { serviceAccountTokens } from "./service-account-tokens.ts";
import { type ControllerHealth, newControllerHealth, supervise } from "./supervise.ts";

interface ManagerOptions {
  readonly config: ControllerManagerConfig;
  readonly clientConfig: ClientConfig;
  /** Replaces the connections to the server of the client configuration. */
  readonly transport?: Transport;
  readonly log: Logger;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly metrics: MetricsRegistry;
  readonly featureGates: FeatureGates;
  /** Status of the main lock, for health checks. */
  readonly leadership?: LeaderStatus | undefined;
  /** Receives controller failures, for health checks. */
  readonly health?: ControllerHealth | undefined;
  /** Receives the controllers' decisions; default: a log that is not read. */
  readonly decisions?: DecisionLog | undefined;
  /** Replaces the default catalogue. */
  readonly controllers?: readonly CatalogueEntry[] | undefined;
  readonly signal: AbortSignal;
}

/** Options with the metrics that all controllers share. */
interface SharedOptions extends ManagerOptions {
  readonly onInformerFailure: NonNullable<InformerFactoryOptions["onFailure"]>;
  readonly queueMetrics: ReturnType<typeof queueMetrics>;
}

/** Reason why the manager stopped. */
type ManagerEnd = "stopped" | "leadership-lost";

/**
 * Acquires the leader lock, then starts informers and controllers; controllers fail independently of each other. With
 * leader migration, a second lock is acquired while the first is held, for the migrating controllers.
 * Resolves when `signal` is aborted or a lock is lost.
 */
export async function runManager(given: ManagerOptions): Promise<ManagerEnd> {
  const { config, clientConfig, transport, clock, metrics, signal } = given;
  const options = { ...given, onInformerFailure: informerFailures(metrics), queueMetrics: queueMetrics(metrics, clock) };
  const family = newClientFamily(
    { ...clientConfig, omitsManagedFields },
    { clock, observer: clientMetrics(metrics), ...(transport && { transport }) },
  );
  const { leaderElection, leaderMigration } = config;
  // Losing one of the two locks also ends the other leadership.
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  const leadAnd = async (lock: ResourceLock, name: string, work: (leading: AbortSignal) => Promise<unknown>): Promise<void> => {
    await lead({ ...options, signal: ended }, family, lock, name, work);
    ending.abort(new Error("leaderelection lost"));
  };
  try {
    const unlimitedClient = family.member({ qps: -1, userAgent: userAgentOf(program) });
    const waited = waitForServer(unlimitedClient, { purpose: "the controllers", clock, log: options.log, signal });
    if (!(await unlessAborted(waited, signal))) return "stopped";
    if (!leaderElection.enabled) {
      await runControllers(options, family, "main", signal);
      return "stopped";
    }
    const { resourceLock, resourceNamespace, resourceName } = leaderElection;
    await leadAnd(newResourceLock(resourceLock, resourceNamespace, resourceName), resourceName, async (leading) => {
      const parts = [runControllers(options, family, "main", leading)];
      if (leaderMigration !== undefined) {
        options.log.info("starting leader migration");
        const { leaderName } = leaderMigration;
        const lock = newResourceLock(leaderMigration.resourceLock, resourceNamespace, leaderName);
        parts.push(leadAnd(lock, leaderName, (also) => runControllers(options, family, "migrated", also)));
      }
      await Promise.all(parts);
    });
    return signal.aborted ? "stopped" : "leadership-lost";
  } finally {
    family.close();
  }
}

/** Runs `work` while holding the lock. Resolves when the leadership has ended and `work` has finished. */
async function lead(
  { config, log, clock, metrics, leadership, signal }: ManagerOptions,
  family: ClientFamily,
  lock: ResourceLock,
  name: string,
  work: (leading: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const status =
    name === config.leaderElection.resourceName && leadership !== undefined
      ? leadership
      : newLeaderStatus({ name, leaseDurationMs: config.leaderElection.leaseDurationMs, clock, metrics });
  let running: Promise<unknown> = Promise.resolve();
  await runLeaderElection({
    ...config.leaderElection,
    client: family.apart({ qps: -1, userAgent: userAgentOf(program, "leader-election") }),
    lock,
    identity: `${hostname()}_${randomUUID()}`,
    // After a restart the next leader does not have to wait for the lease to expire.
    releaseOnCancel: true,
    onStarted(leading) {
      running = work(leading);
      running.catch((err) => log.fatal("controllers failed", err));
    },
    status,
    recorder: newEventRecorder({ client: family.member({ userAgent: userAgentOf(program) }), component: program, log, clock }),
    onNewLeader: (identity) => log.info("new leader elected", { identity }),
    log,
    clock,
    signal,
  });
  await running;
}

const program = "kube-controller-manager";
/** Removed from cached objects: no controller reads managedFields. */
const omitsManagedFields = true;

/**
 * Loads the client configuration from the flags.
 * @throws ConfigError when it cannot be loaded
 */
export async function loadClientConfig(
  config: Pick<ControllerManagerConfig, "kubeconfig" | "master" | "contentType">,
): Promise<ClientConfig> {
  const { kubeconfig, master, contentType } = config;
  try {
    return { ...(await configFromFlags(kubeconfig, master)), contentType, userAgent: userAgentOf(program) };
  } catch (err) {
    throw new ConfigError(`unable to load the client configuration: ${causesOf(err)}`);
  }
}

async function runControllers(options: SharedOptions, family: ClientFamily, share: Share, signal: AbortSignal): Promise<void> {
  const { config, log, clock, metrics, controllers = catalogue, health = newControllerHealth({ clock, metrics }) } = options;
  const unlimitedClient = family.member({ qps: -1, userAgent: userAgentOf(program) });
  if (!(await unlessAborted(requireHealthyServer(unlimitedClient, clock, log, signal), signal))) return;
  const jitter = 1 + Math.random();
  const informers = newInformerFactory(family.member({ qps: -1, userAgent: userAgentOf(program, "shared-informers") }), {
    log: log.named("informers"),
    clock,
    onFailure: options.onInformerFailure,
    turns: options.turns.ahead, // reconciles of what the caches do not show yet would be in vain
    resyncMs: config.minResyncPeriodMs * jitter,
  });
  const discovery = new ResourceDiscovery(informers.client, clock);
  const made = controllers.flatMap((entry): { name: string; controller: Runnable }[] => {
    if (!config.controllers.has(entry.name) || shareOf(config.leaderMigration, entry.name) !== share) return [];
    const ctx = contextOf(options, family, { informers, discovery }, entry);
    const controller = supervise({ name: entry.name, ctx, make: entry.make, health, log, clock });
    if (controller === undefined) log.info("Skipping", { controller: entry.name });
    return controller === undefined ? [] : [{ name: entry.name, controller }];
  });
  informers.start(signal);
  if (share === "main" && options.decisions !== undefined) {
    const { decisions, turns } = options;
    void answerQuestions({ client: unlimitedClient, recipient: program, decisions, clock, turns, log, signal });
  }
  const running: Promise<void>[] = [];
  for (const { name, controller } of made) {
    if (signal.aborted) break;
    log.v(1)?.info("Starting", { controller: name });
    running.push(controller.run(signal));
    if (config.controllerStartIntervalMs > 0) await clock.sleep(config.controllerStartIntervalMs, signal).catch(() => {});
  }
  log.info("controllers started", { count: made.length });
  await Promise.all(running);
}

/** Waits for `work`; returns false when `signal` was aborted in the meantime. */
async function unlessAborted(work: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  await work.catch((err: unknown) => {
    if (!signal.aborted) throw err;
  });
  return !signal.aborted;
}

function contextOf(
  options: SharedOptions,
  family: ClientFamily,
  shared: Pick<ControllerContext, "informers" | "discovery">,
  entry: CatalogueEntry,
): ControllerContext {
  const { config, clock, metrics } = options;
  const log = options.log.named(entry.name);
  const newMember = membersOf(options, family, entry);
  const recorderOf = (component: string) => newEventRecorder({ client: newMember(), component, log, clock });
  return {
    client: newMember(),
    decisions: options.decisions ?? new DecisionLog({ component: program, clock }),
    ...shared,
    recorder: recorderOf(entry.component ?? entry.user),
    recorderOf,
    config,
    log,
    clock,
    queueMetrics: options.queueMetrics,
    turns: options.turns,
    registry: metrics,
    featureGates: options.featureGates,
  };
}

/** Factory of the clients of one controller: each has its own rate limit, and optionally the controller's service account. */
function membersOf(
  { config, clientConfig, clock, metrics }: ManagerOptions,
  family: ClientFamily,
  entry: CatalogueEntry,
): () => Client {
  const { qps = 1, burst = 1 } = entry.rate ?? {};
  const own = { qps: config.qps * qps, burst: config.burst * burst, userAgent: userAgentOf(program, entry.user) };
  if (!config.useServiceAccountCredentials || entry.withManagersRights === true) return () => family.member(own);
  const { host, ca, caFile, insecure, serverName, contentType } = clientConfig;
  const tokenSource = serviceAccountTokens(family.member(own), entry.user, clock);
  const ownConfig = { host, ca, caFile, insecure, serverName, contentType, tokenSource, omitsManagedFields };
  const ownFamily = newClientFamily(ownConfig, { clock, observer: clientMetrics(metrics) });
  return () => ownFamily.member(own);
}

import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import { watchedCertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import type { AgentConfig } from "../agent-config.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { NodeIdentity } from "../node/identity.ts";
import { isMirrorPod } from "../pod/pod.ts";
import type { PodIntake } from "../pods/intake.ts";
import type { LifecycleEvents } from "../runtime/lifecycle-events.ts";
import { effectiveConfiguration } from "../settings/effective.ts";
import type { StatusManager } from "../status/status-manager.ts";
import type { VolumeUsages } from "../volumes/volume-usage.ts";
import { type Auth, newAuth } from "./auth.ts";
import { type Listening, listen } from "./listen.ts";
import type { ServerContext } from "./server.ts";

interface OpenServersOptions
  extends Pick<ServerContext, "turns" | "runtime" | "metrics" | "probeMetrics" | "podLogsDir" | "cgroupParentOf"> {
  config: AgentConfig;
  featureGates: FeatureGates;
  identity: NodeIdentity;
  /** Client for delegated authentication and authorization; undefined in standalone mode. */
  api: Pick<ApiConnection, "heartbeat"> | undefined;
  intake: PodIntake;
  status: Pick<StatusManager, "get">;
  usages: Pick<VolumeUsages, "of">;
  events: Pick<LifecycleEvents, "problem">;
  /** The cgroup of all Pods. */
  cgroupOfPods: string;
  /** Start time of the agent, in ms since the epoch. */
  startedAt: number;
  clock: Clock;
  signal: AbortSignal;
  log: RootLogger;
}

/** Starts the agent's HTTP servers. `signal` stops watching the client CA file; the servers are stopped by `close`. */
export function openServers(options: OpenServersOptions): Promise<Listening> {
  const { config, identity, intake, status, events, clock, log } = options;
  const { runtime, metrics, probeMetrics, podLogsDir, cgroupParentOf, startedAt } = options;
  const { machine, nodeName, ips } = identity;
  const { sources } = intake;
  const { now } = clock;
  return listen({
    config,
    nodeName,
    ips,
    clock,
    log,
    auth: openAuth(options),
    context: {
      turns: options.turns,
      runtime,
      metrics,
      probeMetrics,
      podLogsDir,
      cgroupParentOf,
      sandboxImage: config.sandboxImage,
      pods: () => sources.list().filter((pod) => !isMirrorPod(pod)),
      podByName: (...args) => intake.named(...args),
      statusOf: (pod) => status.get(pod.metadata.uid) ?? pod.status,
      stats: {
        runtime,
        nodeName,
        rootDir: config.rootDir,
        pods: sources.list,
        volumes: options.usages.of,
        startedAt,
        now,
        ofSandboxes: options.featureGates.enabled("PodAndContainerStatsFromCRI"),
        cgroupParentOf,
        podLogsDir,
        systemCgroups: {
          kubelet: config.kubeletCgroups,
          runtime: config.runtimeCgroups,
          misc: config.systemCgroups,
          pods: options.cgroupOfPods,
        },
      },
      machine,
      config: () => effectiveConfiguration(config),
      health: events.problem,
      now,
    },
  });
}

function openAuth({ config, identity, api, metrics, clock, signal, log }: OpenServersOptions): Auth {
  const clientCa = config.clientCaFile === "" ? undefined : watchedCertificatePool(config.clientCaFile, undefined, clock);
  signal.addEventListener("abort", () => clientCa?.close(), { once: true });
  return newAuth({
    client: api?.heartbeat,
    clock,
    log,
    metrics,
    nodeName: identity.nodeName,
    anonymous: config.anonymousAuth,
    tokenWebhook: config.webhookAuth,
    tokenTtlMs: config.webhookAuthCacheTtlMs,
    clientCa,
    mode: config.authorizationMode,
    authorizedTtlMs: config.authorizedTtlMs,
    unauthorizedTtlMs: config.unauthorizedTtlMs,
  });
}

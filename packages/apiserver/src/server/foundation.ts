import { randomUUID } from "node:crypto";
import { DecisionLog, decisionLimitBytes } from "@coxswain/apimachinery/decisions/decision-log";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { type Clock, realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { VerificationKey } from "../authentication/service-account-keys.ts";
import type { ApiserverConfig } from "../config.ts";
import { newTunnels, type Tunnels } from "../egress/tunnels.ts";
import type { Auditor } from "../filters/audit.ts";
import { Drain } from "../filters/lifetime.ts";
import type { EtcdOptions } from "../storage/cluster.ts";
import { newAuditor } from "./audit.ts";
import { WatchedCertificates } from "./certificates.ts";
import type { listen } from "./listen.ts";
import { type MemoryBudget, newMemoryBudget } from "./memory-budget.ts";
import { serviceAccountKeys } from "./service-accounts.ts";
import { readTracingConfiguration, type TracingConfiguration } from "./tracing/configuration.ts";
import { newSpanExporter, type SpanExporter } from "./tracing/exporter.ts";
import { passThrough } from "./tracing/pass-through.ts";
import { newTracer, type Tracer } from "./tracing/tracer.ts";

export interface ApiserverRuntime {
  readonly log: Logger;
  readonly featureGates: FeatureGates;
  readonly clock?: Clock;
  /** See EtcdOptions.around. */
  readonly aroundEtcd?: EtcdOptions["around"];
  /** See EtcdOptions.client. */
  readonly etcdClient?: EtcdOptions["client"];
  /**
   * Whether metrics have the memory, CPU and event loop of the process; default true. The native observers behind them are never released,
   * so that tests with many servers in one process switch them off.
   */
  readonly processMetrics?: boolean;
  /** Takes requests; default: an HTTPS listener. */
  readonly listen?: typeof listen;
  /** Dials nodes, pods, Services and webhooks for which the egress configuration names no proxy. */
  readonly connect?: Connect | undefined;
}

/** Created before the server listens, and shared by all its modules. */
export interface Foundation {
  readonly config: ApiserverConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly featureEnabled: (gate: string) => boolean;
  readonly turns: Turns;
  readonly metrics: MetricsRegistry;
  readonly memory: MemoryBudget;
  readonly decisions: DecisionLog;
  readonly exporter: SpanExporter | undefined;
  readonly tracer: Tracer | undefined;
  readonly tunnels: Tunnels;
  readonly auditor: Auditor | undefined;
  readonly certificates: WatchedCertificates;
  /** Verify tokens of service accounts. */
  readonly keys: readonly VerificationKey[];
  readonly drain: Drain;
  /** Aborted when the server has stopped. */
  readonly signal: AbortSignal;
}

/** @throws Error when a file that a flag names cannot be read */
export function newFoundation(config: ApiserverConfig, runtime: ApiserverRuntime, signal: AbortSignal): Foundation {
  const { flags } = config;
  const { log, clock = realClock, featureGates, processMetrics = true } = runtime;
  const tracing = tracingOf(flags, featureGates);
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics, buildInfo: true, turns, ...metricsOptions(flags) });
  const exporter = tracing && newSpanExporter({ ...tracing, service: tracedService(), clock, log });
  const untraced = featureGates.enabled("APIServerTracing") ? passThrough : undefined;
  const { connect } = runtime;
  const tunnels = { ...(connect && { cluster: connect, controlplane: connect }), ...newTunnels(config.egress, clock, metrics) };
  return {
    config,
    clock,
    log,
    featureEnabled: (gate) => featureGates.enabled(gate),
    turns,
    metrics,
    memory: newMemoryBudget(metrics),
    decisions: new DecisionLog({
      component: "kube-apiserver",
      clock,
      registry: metrics,
      limitBytes: decisionLimitBytes(process.env),
    }),
    exporter,
    tracer: exporter ? newTracer(exporter, tracing.samplingRatePerMillion, clock) : untraced,
    tunnels,
    auditor: newAuditor(flags, { clock, log, metrics, connect: tunnels.controlplane }),
    certificates: new WatchedCertificates(flags, clock, log),
    keys: serviceAccountKeys(config),
    drain: new Drain(),
    signal,
  };
}

/** @returns undefined when nothing is traced @throws Error for the flag without its gate, and for what the file says */
function tracingOf(flags: ApiserverConfig["flags"], featureGates: FeatureGates): TracingConfiguration | undefined {
  const file = flags["tracing-config-file"];
  if (file === "") return undefined;
  if (featureGates.enabled("APIServerTracing")) return readTracingConfiguration(file);
  throw new Error("APIServerTracing feature is not enabled, but tracing config file was provided");
}

/** Attributes that identify this process in its spans. */
const tracedService = (): Record<string, string> => ({
  "service.name": "apiserver",
  "service.instance.id": `kube-apiserver-${randomUUID()}`,
});

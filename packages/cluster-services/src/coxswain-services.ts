import { hostname } from "node:os";
import { newClient, newClientFamily } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { configFromFlags } from "@coxswain/apimachinery/client/in-cluster";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import { checkDurations, type LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import { newLeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { newResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { ConfigError, type Runtime, runMain } from "@coxswain/apimachinery/flags/run-main";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { causesOf, messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startComponentServer } from "@coxswain/apimachinery/serving/component-server";
import { applyRights } from "./apply-rights.ts";
import { chooseParts } from "./choose-parts.ts";
import { coxswainServices, type ServicesFlags } from "./flags.ts";
import { keepIdleMemorySmall } from "./idle-memory.ts";
import { newPartHealth } from "./part-health.ts";
import { parts } from "./parts.ts";
import { removeLeft } from "./remove-left.ts";
import { rightsOf } from "./rights.ts";
import { program, runParts } from "./run-parts.ts";

const applyRightsMs = 60_000;
/**
 * Constant retransmission time, so that connections recover soon after the API server was unreachable (see `run-parts.ts`); the
 * kernel would double the time with each lost packet. Informers reconnect by themselves.
 */
const quickly = { connectTimeoutMs: 1_000, retriesOfLost: 1 };

await runMain(coxswainServices, run);

/** coxswain-services: serves health and metrics immediately, and runs the chosen parts. */
async function run(flags: ServicesFlags, { log, signal }: Runtime): Promise<void> {
  const chosen = chooseParts(parts, { enable: flags.enable, disable: flags.disable });
  const leaderElection = leaderElectionOf(flags);
  if (flags["print-rights"]) {
    const { resourceNamespace: leaseNamespace, resourceName: leaseName } = leaderElection;
    const items = rightsOf(chosen, { leaseNamespace, leaseName });
    process.stdout.write(toYaml({ apiVersion: "v1", kind: "List", items }));
    return;
  }
  if (flags["apply-rights"]) {
    const { resourceNamespace: leaseNamespace, resourceName: leaseName } = leaderElection;
    const config = await loadConfig(flags);
    const client = newClient({ ...config, qps: -1, userAgent: userAgentOf(program) });
    try {
      const timeout = AbortSignal.any([signal, AbortSignal.timeout(applyRightsMs)]);
      const names = await applyRights(client, rightsOf(chosen, { leaseNamespace, leaseName }), timeout);
      process.stdout.write(names.map((name) => `${name} applied\n`).join(""));
    } catch (err) {
      throw new ConfigError(`cannot write the rights of ${program} to ${config.host}: ${causesOf(err)}`, { cause: err });
    } finally {
      client.close();
    }
    return;
  }
  if (flags.cleanup) return (await import("./clean-up.ts")).cleanUpMachine(flags);
  const clock = realClock;
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics: true, turns, ...metricsOptions(flags) });
  const clientConfig = await loadConfig(flags);
  const own = {
    contentType: flags["kube-api-content-type"],
    userAgent: userAgentOf(program),
    omitsManagedFields: true,
    ...quickly,
  };
  const family = newClientFamily({ ...clientConfig, ...own }, { observer: clientMetrics(metrics) });
  const { resourceName: name, leaseDurationMs } = leaderElection;
  const usesLease = leaderElection.enabled && chosen.some(({ runs }) => runs === "once");
  const leadership = usesLease ? newLeaderStatus({ name, leaseDurationMs, clock, metrics }) : undefined;
  const health = newPartHealth({ clock, metrics });
  const server = await startComponentServer({
    name: program,
    flags,
    log,
    clock,
    metrics,
    checks: leadership === undefined ? {} : { leaderElection: leadership.check },
    // A failed part does not fail the health check: restarting the process would interrupt the other parts and not repair this
    // one.
    informativeChecks: Object.fromEntries(chosen.map((part) => [part.name, () => health.check(part.name)])),
    configz: () => ({ "services.coxswain": { parts: chosen.map((part) => part.name), leaderElection } }),
  });
  log.info("starting", { parts: chosen.map((part) => part.name).join() });
  await removeLeft(flags, { all: parts, chosen, log });
  void keepIdleMemorySmall({ clock, signal });
  const nodeName = flags["node-name"] || hostname().toLowerCase();
  try {
    const running = runParts({
      ...{ parts: chosen, flags, nodeName, family, leaderElection, leadership, health, log, clock, turns, metrics, signal },
    });
    await (server === undefined ? running : Promise.race([running, server.failed]));
  } finally {
    await server?.close(0);
    family.close();
  }
}

/** @throws ConfigError */
function loadConfig(flags: ServicesFlags): Promise<ClientConfig> {
  return configFromFlags(flags.kubeconfig, flags.master).catch((err: unknown) => {
    throw new ConfigError(`unable to load the client configuration: ${causesOf(err)}`, { cause: err });
  });
}

/** @throws ConfigError for an unknown lock type and for inconsistent durations */
function leaderElectionOf(flags: ServicesFlags): LeaderElectionConfig {
  const config = {
    enabled: flags["leader-elect"],
    leaseDurationMs: flags["leader-elect-lease-duration"],
    renewDeadlineMs: flags["leader-elect-renew-deadline"],
    retryPeriodMs: flags["leader-elect-retry-period"],
    resourceLock: flags["leader-elect-resource-lock"],
    resourceName: flags["leader-elect-resource-name"],
    resourceNamespace: flags["leader-elect-resource-namespace"],
  };
  if (!config.enabled) return config;
  const problem = checkDurations(config);
  if (problem !== undefined) throw new ConfigError(`--leader-elect: ${problem}`);
  try {
    newResourceLock(config.resourceLock, config.resourceNamespace, config.resourceName);
  } catch (err) {
    throw new ConfigError(`--leader-elect-resource-lock: ${messageOf(err)}`, { cause: err });
  }
  return config;
}

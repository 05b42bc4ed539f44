import { readFileSync } from "node:fs";
import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import { checkDurations } from "@coxswain/apimachinery/controller/leader-election";
import { resourceLockKinds } from "@coxswain/apimachinery/controller/resource-lock";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { type FeatureGates, newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newRuleCheck } from "@coxswain/apimachinery/flags/rule-check";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { enabledControllers } from "./catalogue.ts";
import { cloudControllers } from "./cloud/without-cloud.ts";
import { certificateSigningOf } from "./config/certificate-signing.ts";
import { cloudConfigOf } from "./config/cloud.ts";
import type { Concurrency, ControllerManagerConfig } from "./config/controller-manager-config.ts";
import { volumesConfigOf } from "./config/volumes.ts";
import { nodeIpamConfigOf } from "./controllers/nodeipam/config.ts";
import { type ControllerManagerFlags, flagTable } from "./flags.ts";
import { leaderMigrationOf } from "./leader-migration.ts";

/**
 * Validates the flags and computes the configuration; reads the PEM, template and migration files that flags name.
 * @param featureGates defaults to the gates of 1.23
 * @param set names of the flags given on the command line
 * @throws ConfigError with all validation errors in one message
 */
export function completeConfig(
  flags: ControllerManagerFlags,
  featureGates: FeatureGates = newFeatureGates("kube-controller-manager", {}),
  set: ReadonlySet<string> = new Set(),
): ControllerManagerConfig {
  const errors: string[] = [];
  const leaderElection: LeaderElectionConfig = {
    enabled: flags["leader-elect"],
    leaseDurationMs: flags["leader-elect-lease-duration"],
    renewDeadlineMs: flags["leader-elect-renew-deadline"],
    retryPeriodMs: flags["leader-elect-retry-period"],
    resourceLock: flags["leader-elect-resource-lock"],
    resourceName: flags["leader-elect-resource-name"],
    resourceNamespace: flags["leader-elect-resource-namespace"],
  };
  if (leaderElection.enabled) errors.push(...leaderElectionErrors(leaderElection));
  const leaderMigration = leaderMigrationOf(flags, errors);
  const cloud = cloudConfigOf(flags, errors);
  const controllers = enabledControllers(flags.controllers, errors, featureGates.enabled);
  if (cloud.external) for (const name of cloudControllers) controllers.delete(name);
  const nodeIpam = nodeIpamConfigOf(flags, errors, set);
  const rootCa = readPem(flags["root-ca-file"], "--root-ca-file", errors);
  const serviceAccountKey = readPem(flags["service-account-private-key-file"], "--service-account-private-key-file", errors);
  const certificateSigning = certificateSigningOf(flags, errors);
  const volumes = volumesConfigOf(flags, errors);
  const concurrency: Concurrency = {
    deployment: flags["concurrent-deployment-syncs"],
    replicaSet: flags["concurrent-replicaset-syncs"],
    replicationController: flags["concurrent-rc-syncs"],
    statefulSet: flags["concurrent-statefulset-syncs"],
    endpoint: flags["concurrent-endpoint-syncs"],
    endpointSlice: flags["concurrent-service-endpoint-syncs"],
    endpointSliceMirroring: flags["mirroring-concurrent-service-endpoint-syncs"],
    garbageCollector: flags["concurrent-gc-syncs"],
    namespace: flags["concurrent-namespace-syncs"],
    resourceQuota: flags["concurrent-resource-quota-syncs"],
    serviceAccountToken: flags["concurrent-serviceaccount-token-syncs"],
    ttlAfterFinished: flags["concurrent-ttl-after-finished-syncs"],
    ephemeralVolume: flags["concurrent-ephemeralvolume-syncs"],
  };
  const rules = newRuleCheck(flagTable.table, flags);
  errors.push(...rules.of("concurrent-ephemeralvolume-syncs"), ...rules.others());
  if (errors.length > 0) throw new ConfigError(errors.join("; "));
  return {
    controllers,
    kubeconfig: flags.kubeconfig,
    master: flags.master,
    qps: flags["kube-api-qps"],
    burst: flags["kube-api-burst"],
    contentType: flags["kube-api-content-type"],
    minResyncPeriodMs: flags["min-resync-period"],
    controllerStartIntervalMs: flags["controller-start-interval"],
    leaderElection,
    leaderMigration,
    cloud,
    concurrency,
    endpointUpdatesBatchMs: flags["endpoint-updates-batch-period"],
    endpointSliceUpdatesBatchMs: flags["endpointslice-updates-batch-period"],
    maxEndpointsPerSlice: flags["max-endpoints-per-slice"],
    mirroring: {
      maxEndpointsPerSubset: flags["mirroring-max-endpoints-per-subset"],
      updatesBatchMs: flags["mirroring-endpointslice-updates-batch-period"],
    },
    horizontalPodAutoscaler: {
      syncPeriodMs: flags["horizontal-pod-autoscaler-sync-period"],
      downscaleStabilizationMs: flags["horizontal-pod-autoscaler-downscale-stabilization"],
      rules: {
        tolerance: flags["horizontal-pod-autoscaler-tolerance"],
        cpuInitializationMs: flags["horizontal-pod-autoscaler-cpu-initialization-period"],
        initialReadinessMs: flags["horizontal-pod-autoscaler-initial-readiness-delay"],
      },
    },
    garbageCollector: flags["enable-garbage-collector"],
    namespaceSyncPeriodMs: flags["namespace-sync-period"],
    resourceQuotaSyncPeriodMs: flags["resource-quota-sync-period"],
    nodeIpam,
    nodeLifecycle: {
      monitorPeriodMs: flags["node-monitor-period"],
      monitorGraceMs: flags["node-monitor-grace-period"],
      startupGraceMs: flags["node-startup-grace-period"],
      podEvictionTimeoutMs: flags["pod-eviction-timeout"],
      taintManager: flags["enable-taint-manager"],
      evictionRate: flags["node-eviction-rate"],
      secondaryEvictionRate: flags["secondary-node-eviction-rate"],
      largeClusterSizeThreshold: flags["large-cluster-size-threshold"],
      unhealthyZoneThreshold: flags["unhealthy-zone-threshold"],
    },
    terminatedPodGcThreshold: flags["terminated-pod-gc-threshold"],
    useServiceAccountCredentials: flags["use-service-account-credentials"],
    rootCa,
    serviceAccountKey,
    certificateSigning,
    volumes,
  };
}

function leaderElectionErrors(config: LeaderElectionConfig): string[] {
  const durations = checkDurations(config);
  const errors = durations === undefined ? [] : [durations];
  if (!(resourceLockKinds as readonly string[]).includes(config.resourceLock))
    errors.push(`Invalid lock-type ${config.resourceLock}`);
  if (config.resourceName === "") errors.push("--leader-elect-resource-name must not be empty");
  if (config.resourceNamespace === "") errors.push("--leader-elect-resource-namespace must not be empty");
  return errors;
}

function readPem(path: string, flag: string, errors: string[]): string | undefined {
  if (path === "") return undefined;
  try {
    const text = readFileSync(path, "utf8");
    if (!text.includes("-----BEGIN ")) errors.push(`${flag}: ${path} holds no PEM block`);
    return text;
  } catch (err) {
    errors.push(`${flag}: ${messageOf(err)}`);
    return undefined;
  }
}

import { readFileSync } from "node:fs";
import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import { checkDurations } from "@coxswain/apimachinery/controller/leader-election";
import { resourceLockKinds } from "@coxswain/apimachinery/controller/resource-lock";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { type FeatureGates, newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { enabledControllers } from "./catalogue.ts";
import { type CertificateSigningConfig, certificateSigningOf } from "./certificates/signing-flags.ts";
import { type CloudConfig, cloudConfigOf } from "./cloud/cloud-flags.ts";
import { cloudControllers } from "./cloud/without-cloud.ts";
import { type NodeIpamConfig, nodeIpamConfigOf } from "./controllers/nodeipam/ranges-of-flags.ts";
import type { ControllerManagerFlags } from "./flags.ts";
import { type LeaderMigration, leaderMigrationOf } from "./leader-migration.ts";
import { type VolumesConfig, volumesConfigOf } from "./volumes/config.ts";

/** What the flags come to, checked. Times are in ms. */
export interface ControllerManagerConfig {
  /** Names of the controllers to run. */
  readonly controllers: ReadonlySet<string>;
  readonly kubeconfig: string;
  readonly master: string;
  readonly qps: number;
  readonly burst: number;
  readonly contentType: string;
  readonly minResyncPeriodMs: number;
  readonly controllerStartIntervalMs: number;
  readonly leaderElection: LeaderElectionConfig;
  readonly leaderMigration: LeaderMigration | undefined;
  readonly cloud: CloudConfig;
  readonly concurrency: Concurrency;
  readonly endpointUpdatesBatchMs: number;
  readonly endpointSliceUpdatesBatchMs: number;
  readonly maxEndpointsPerSlice: number;
  readonly mirroring: { readonly maxEndpointsPerSubset: number; readonly updatesBatchMs: number };
  readonly horizontalPodAutoscaler: HorizontalPodAutoscalerConfig;
  readonly garbageCollector: boolean;
  readonly namespaceSyncPeriodMs: number;
  readonly resourceQuotaSyncPeriodMs: number;
  readonly nodeIpam: NodeIpamConfig;
  readonly nodeLifecycle: NodeLifecycleConfig;
  /** Terminated Pods beyond so many are deleted; 0 or less: none. */
  readonly terminatedPodGcThreshold: number;
  readonly useServiceAccountCredentials: boolean;
  /** PEM, for `kube-root-ca.crt` and token secrets. */
  readonly rootCa: string | undefined;
  /** PEM of the key that signs service account tokens. */
  readonly serviceAccountKey: string | undefined;
  readonly certificateSigning: CertificateSigningConfig;
  readonly volumes: VolumesConfig;
}

/** Workers of each controller. */
export interface Concurrency {
  readonly deployment: number;
  readonly replicaSet: number;
  readonly replicationController: number;
  readonly statefulSet: number;
  readonly endpoint: number;
  readonly endpointSlice: number;
  readonly endpointSliceMirroring: number;
  readonly garbageCollector: number;
  readonly namespace: number;
  readonly resourceQuota: number;
  readonly serviceAccountToken: number;
  readonly ephemeralVolume: number;
  readonly ttlAfterFinished: number;
}

export interface HorizontalPodAutoscalerConfig {
  readonly syncPeriodMs: number;
  readonly downscaleStabilizationMs: number;
  readonly rules: {
    readonly tolerance: number;
    readonly cpuInitializationMs: number;
    readonly initialReadinessMs: number;
  };
}

export interface NodeLifecycleConfig {
  readonly monitorPeriodMs: number;
  readonly monitorGraceMs: number;
  readonly startupGraceMs: number;
  readonly podEvictionTimeoutMs: number;
  readonly taintManager: boolean;
  /** Nodes a second. */
  readonly evictionRate: number;
  readonly secondaryEvictionRate: number;
  readonly largeClusterSizeThreshold: number;
  readonly unhealthyZoneThreshold: number;
}

/** Flags that upstream holds within bounds. */
const bounds = [
  ["concurrent-service-endpoint-syncs", 1, 50],
  ["max-endpoints-per-slice", 1, 1000],
  ["mirroring-concurrent-service-endpoint-syncs", 1, 50],
  ["mirroring-max-endpoints-per-subset", 1, 1000],
] as const;

/**
 * @param featureGates those of 1.23 by default
 * @param set flags that stood on the command line
 * @throws ConfigError for flags that cannot be honoured, all of them in one message
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
  if (concurrency.ephemeralVolume < 1) errors.push("concurrent-ephemeralvolume-syncs must be greater than 0");
  for (const [flag, least, most] of bounds) {
    if (flags[flag] < least) errors.push(`${flag} must not be less than ${least}, but got ${flags[flag]}`);
    else if (flags[flag] > most) errors.push(`${flag} must not be more than ${most}, but got ${flags[flag]}`);
  }
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

import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import type { LeaderMigration } from "../leader-migration.ts";
import type { CertificateSigningConfig } from "./certificate-signing.ts";
import type { CloudConfig } from "./cloud.ts";
import type { VolumesConfig } from "./volumes.ts";

/** Validated configuration. Times are in ms. */
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
  /** Number of terminated Pods to keep; 0 or less disables the deletion. */
  readonly terminatedPodGcThreshold: number;
  readonly useServiceAccountCredentials: boolean;
  /** CA bundle (PEM) for `kube-root-ca.crt` and token Secrets. */
  readonly rootCa: string | undefined;
  /** Private key (PEM) that signs service account tokens. */
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
  /** Nodes per second. */
  readonly evictionRate: number;
  readonly secondaryEvictionRate: number;
  readonly largeClusterSizeThreshold: number;
  readonly unhealthyZoneThreshold: number;
}

/** Configuration of Pod CIDR allocation. */
export interface NodeIpamConfig {
  /** At most one per address family; each node gets a subnet of each. Empty: the allocation is disabled. */
  readonly ranges: readonly NodeRange[];
  /** Service CIDRs, which are excluded from the allocation. */
  readonly serviceCidrs: readonly string[];
}

export interface NodeRange {
  readonly cidr: string;
  /** Mask size of a node's subnet. */
  readonly maskSize: number;
}

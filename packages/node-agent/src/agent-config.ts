import type { MetricsRegistryOptions } from "@coxswain/apimachinery/metrics/registry";

/** Configuration of the agent, merged from flags and configuration file. Durations are in milliseconds. */
export interface AgentConfig {
  rootDir: string;
  certDir: string;
  /** Format: see parseSniCertKey. */
  tlsSniCertKeys: readonly string[];
  kubeconfig: string;
  bootstrapKubeconfig: string;
  rotateCertificates: boolean;
  /** `--rotate-server-certificates`: the serving certificate is requested from the API server. */
  rotateServerCertificates: boolean;
  runtimeEndpoint: string;
  imageEndpoint: string;
  sandboxImage: string;
  hostnameOverride: string;
  nodeIp: string;
  /** `--enable-controller-attach-detach`: the attach/detach controller attaches volumes, not the agent. */
  controllerAttachDetach: boolean;
  keepTerminatedPodVolumes: boolean;
  /** Interval of volume usage measurements; 0 or less disables them. */
  volumeStatsMs: number;
  nodeLabels: Readonly<Record<string, string>>;
  registerWithTaints: readonly { key: string; value?: string; effect: string }[];
  registerNode: boolean;
  registerSchedulable: boolean;
  providerId: string;
  podCidr: string;

  staticPodPath: string;
  staticPodUrl: string;
  staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  fileCheckFrequencyMs: number;
  httpCheckFrequencyMs: number;
  syncFrequencyMs: number;

  enableServer: boolean;
  address: string;
  port: number;
  tlsCertFile: string;
  tlsPrivateKeyFile: string;
  tlsCipherSuites: readonly string[];
  tlsMinVersion: string;
  anonymousAuth: boolean;
  webhookAuth: boolean;
  webhookAuthCacheTtlMs: number;
  clientCaFile: string;
  authorizationMode: "AlwaysAllow" | "Webhook";
  authorizedTtlMs: number;
  unauthorizedTtlMs: number;
  enableDebuggingHandlers: boolean;
  /** Serves /var/log under /logs/. */
  enableSystemLogHandler: boolean;
  healthzPort: number;
  /** Credential provider plugins; `configFile` is `""` for none. */
  imageCredentialProviders: { configFile: string; binDir: string };
  /** Port of the unauthenticated read-only server; 0 disables it. */
  readOnlyPort: number;
  healthzBindAddress: string;

  clusterDns: readonly string[];
  clusterDomain: string;
  resolvConf: string;

  nodeStatusUpdateFrequencyMs: number;
  nodeStatusReportFrequencyMs: number;
  nodeLeaseDurationSeconds: number;
  nodeStatusMaxImages: number;
  maxPods: number;
  podsPerCore: number;

  runtimeRequestTimeoutMs: number;
  serializeImagePulls: boolean;
  registryQps: number;
  registryBurst: number;
  imageMinAgeMs: number;
  imageGcHighThreshold: number;
  imageGcLowThreshold: number;
  containerLogMaxSizeBytes: number;
  containerLogMaxFiles: number;
  maxDeadPerContainer: number;
  maxDead: number;
  deadMinAgeMs: number;

  cgroupsPerQos: boolean;
  /** `systemd`; any other value selects `cgroupfs`. */
  cgroupDriver: string;
  cgroupRoot: string;
  /** The agent's own cgroup; `""` leaves the agent where it is. */
  kubeletCgroups: string;
  systemCgroups: string;
  cpuCfsQuota: boolean;
  cpuCfsPeriodMs: number;
  podPidsLimit: number;
  kubeReserved: Readonly<Record<string, string>>;
  systemReserved: Readonly<Record<string, string>>;
  kubeReservedCgroup: string;
  systemReservedCgroup: string;
  /** A CPU list such as `0,2-3`; `""` for none. */
  reservedCpus: string;
  /** `memory` → `50%`. */
  qosReserved: Readonly<Record<string, string>>;
  evictionHard: Readonly<Record<string, string>>;
  evictionSoft: Readonly<Record<string, string>>;
  evictionSoftGraceMs: Readonly<Record<string, number>>;
  evictionMinReclaim: Readonly<Record<string, string>>;
  evictionMaxPodGraceSeconds: number;
  evictionTransitionMs: number;
  enforceNodeAllocatable: readonly string[];
  allocatableIgnoresEviction: boolean;
  cpuManagerPolicy: string;
  cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  cpuManagerReconcileMs: number;
  memoryManagerPolicy: string;
  reservedMemory: readonly ReservedMemory[];
  topologyManagerPolicy: string;
  topologyManagerScope: string;
  allowedUnsafeSysctls: readonly string[];
  seccompDefault: boolean;
  failSwapOn: boolean;
  /** `LimitedSwap` or `UnlimitedSwap`; empty means `LimitedSwap`. */
  swapBehavior: string;
  /** Fraction of the memory limit above which a container is throttled (feature gate MemoryQoS). */
  memoryThrottlingFactor: number;
  protectKernelDefaults: boolean;
  oomScoreAdj: number;
  maxOpenFiles: number;
  runOnce: boolean;
  lockFile: string;
  exitOnLockContention: boolean;
  dynamicConfigDir: string;
  hairpinMode: string;
  makeIptablesUtilChains: boolean;
  iptablesMasqueradeBit: number;
  iptablesDropBit: number;
  featureGates: Readonly<Record<string, boolean>>;

  /** How long node shutdown is delayed for Pods to terminate, and the part of it reserved for critical Pods. */
  shutdownGraceMs: number;
  shutdownGraceCriticalMs: number;
  /** Replaces the two grace periods. */
  shutdownGroups: readonly ShutdownGroup[];

  /** Directory of FlexVolume drivers. */
  volumePluginDir: string;

  metrics: MetricsRegistryOptions;

  kubeApiQps: number;
  kubeApiBurst: number;
  contentType: string;
  eventQps: number;
  eventBurst: number;

  /** The KubeletConfiguration as read from the file, for /configz. */
  written: Readonly<Record<string, unknown>>;
}

/** A decoded configuration file before validation. */
export type Written = Readonly<Record<string, unknown>>;

/** Grace period of Pods with this priority or higher, up to the priority of the next group. */
export interface ShutdownGroup {
  priority: number;
  shutdownGracePeriodSeconds: number;
}

/** Memory of one NUMA node that is reserved for the system; keys of `limits` are `memory` and `hugepages-<size>`. */
export interface ReservedMemory {
  numaNode: number;
  limits: Readonly<Record<string, string>>;
}

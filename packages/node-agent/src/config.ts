import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { parseDuration } from "@coxswain/apimachinery/meta/time";
import type { KubeletFlags } from "./flags.ts";
import { parseThresholds } from "./resources/eviction.ts";

/** What the agent does, from its flags and its configuration file. Durations are in milliseconds. */
export interface AgentConfig {
  rootDir: string;
  certDir: string;
  /** See parseSniCertKey. */
  tlsSniCertKeys: readonly string[];
  kubeconfig: string;
  bootstrapKubeconfig: string;
  rotateCertificates: boolean;
  runtimeEndpoint: string;
  imageEndpoint: string;
  sandboxImage: string;
  hostnameOverride: string;
  nodeIp: string;
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
  healthzPort: number;
  /** Plugins with registry logins; `configFile` is `""` for none. */
  imageCredentialProviders: { configFile: string; binDir: string };
  /** Serves without credentials; 0: not at all. */
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
  cgroupRoot: string;
  cpuCfsQuota: boolean;
  cpuCfsPeriodMs: number;
  podPidsLimit: number;
  kubeReserved: Readonly<Record<string, string>>;
  systemReserved: Readonly<Record<string, string>>;
  evictionHard: Readonly<Record<string, string>>;
  evictionSoft: Readonly<Record<string, string>>;
  evictionSoftGraceMs: Readonly<Record<string, number>>;
  evictionMinReclaim: Readonly<Record<string, string>>;
  evictionMaxPodGraceSeconds: number;
  evictionTransitionMs: number;
  enforceNodeAllocatable: readonly string[];
  allowedUnsafeSysctls: readonly string[];
  seccompDefault: boolean;
  failSwapOn: boolean;
  featureGates: Readonly<Record<string, boolean>>;

  kubeApiQps: number;
  kubeApiBurst: number;
  eventQps: number;
  eventBurst: number;

  /** The KubeletConfiguration as it was written, for /configz. */
  written: Readonly<Record<string, unknown>>;
}

type Written = Readonly<Record<string, unknown>>;

/**
 * Flags on top of the file of `--config`. Without a file the flags' own defaults hold, with one the file's: a file makes
 * the kubelet API closed to strangers, flags alone leave it open.
 * @param set names that stood on the command line
 * @throws ConfigError
 * Source: cmd/kubelet/app/server.go, pkg/kubelet/apis/config/v1beta1/defaults.go
 */
export function newAgentConfig(flags: KubeletFlags, set: ReadonlySet<string>): AgentConfig {
  const path = flags.config;
  const file: Written = path === "" ? {} : readFile(path);
  const hasFile = path !== "";

  /** The flag when it was given, else the file's field, else the default of whichever of the two is in force. */
  const pick = <T>(flag: keyof KubeletFlags & string, field: string, fileDefault?: T): T => {
    const written = at(file, field);
    if (!set.has(flag) && written !== undefined && written !== null) return written as T;
    if (!set.has(flag) && hasFile && fileDefault !== undefined) return fileDefault;
    return flags[flag] as unknown as T;
  };
  const pickDuration = (flag: keyof KubeletFlags & string, field: string): number => {
    const written = at(file, field);
    if (set.has(flag) || written === undefined || written === null) return flags[flag] as unknown as number;
    const ms = parseDuration(String(written));
    if (ms === undefined) throw new ConfigError(`${path}: ${field}: ${JSON.stringify(written)} is not a duration`);
    return ms === 0 ? (flags[flag] as unknown as number) : ms;
  };
  const mode = pick<string>("authorization-mode", "authorization.mode", "Webhook");
  if (mode !== "AlwaysAllow" && mode !== "Webhook") throw new ConfigError(`unknown authorization-mode: ${mode}`);
  if (flags["container-runtime"] !== "remote") {
    throw new ConfigError(
      `container runtime ${JSON.stringify(flags["container-runtime"])} is not built in: use --container-runtime=remote with --container-runtime-endpoint`,
    );
  }
  if (pick<string>("cgroup-driver", "cgroupDriver") !== "cgroupfs") {
    throw new ConfigError("--cgroup-driver: only cgroupfs is supported");
  }
  const updateMs = pickDuration("node-status-update-frequency", "nodeStatusUpdateFrequency");
  const logSize = Quantity.tryParse(pick<string>("container-log-max-size", "containerLogMaxSize"));
  if (logSize === undefined) throw new ConfigError("invalid configuration: containerLogMaxSize is not a quantity");
  const config: AgentConfig = {
    rootDir: flags["root-dir"],
    certDir: flags["cert-dir"],
    tlsSniCertKeys: flags["tls-sni-cert-key"],
    kubeconfig: flags.kubeconfig,
    bootstrapKubeconfig: flags["bootstrap-kubeconfig"] || flags["experimental-bootstrap-kubeconfig"],
    rotateCertificates: pick("rotate-certificates", "rotateCertificates", false),
    runtimeEndpoint: flags["container-runtime-endpoint"],
    imageEndpoint: flags["image-service-endpoint"],
    sandboxImage: flags["pod-infra-container-image"],
    hostnameOverride: flags["hostname-override"],
    nodeIp: flags["node-ip"],
    nodeLabels: flags["node-labels"],
    registerWithTaints: taintsOf(flags["register-with-taints"], at(file, "registerWithTaints")),
    registerNode: pick("register-node", "registerNode", true),
    registerSchedulable: flags["register-schedulable"],
    providerId: pick("provider-id", "providerID"),
    podCidr: pick("pod-cidr", "podCIDR"),

    staticPodPath: pick("pod-manifest-path", "staticPodPath"),
    staticPodUrl: pick("manifest-url", "staticPodURL"),
    staticPodUrlHeader: pick("manifest-url-header", "staticPodURLHeader"),
    fileCheckFrequencyMs: pickDuration("file-check-frequency", "fileCheckFrequency"),
    httpCheckFrequencyMs: pickDuration("http-check-frequency", "httpCheckFrequency"),
    syncFrequencyMs: pickDuration("sync-frequency", "syncFrequency"),

    enableServer: pick("enable-server", "enableServer", true),
    address: pick("address", "address", "0.0.0.0"),
    port: pick("port", "port", 10250),
    tlsCertFile: pick("tls-cert-file", "tlsCertFile"),
    tlsPrivateKeyFile: pick("tls-private-key-file", "tlsPrivateKeyFile"),
    tlsCipherSuites: pick("tls-cipher-suites", "tlsCipherSuites"),
    tlsMinVersion: pick("tls-min-version", "tlsMinVersion"),
    anonymousAuth: pick("anonymous-auth", "authentication.anonymous.enabled", false),
    webhookAuth: pick("authentication-token-webhook", "authentication.webhook.enabled", true),
    webhookAuthCacheTtlMs: pickDuration("authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL"),
    clientCaFile: pick("client-ca-file", "authentication.x509.clientCAFile"),
    authorizationMode: mode,
    authorizedTtlMs: pickDuration("authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL"),
    unauthorizedTtlMs: pickDuration("authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL"),
    enableDebuggingHandlers: pick("enable-debugging-handlers", "enableDebuggingHandlers", true),
    healthzPort: pick("healthz-port", "healthzPort", 10248),
    readOnlyPort: pick("read-only-port", "readOnlyPort", 0),
    imageCredentialProviders: {
      configFile: flags["image-credential-provider-config"],
      binDir: flags["image-credential-provider-bin-dir"],
    },
    healthzBindAddress: pick("healthz-bind-address", "healthzBindAddress", "127.0.0.1"),

    clusterDns: pick("cluster-dns", "clusterDNS"),
    clusterDomain: pick("cluster-domain", "clusterDomain"),
    resolvConf: pick("resolv-conf", "resolvConf", "/etc/resolv.conf"),

    nodeStatusUpdateFrequencyMs: updateMs,
    nodeStatusReportFrequencyMs: durationOf(at(file, "nodeStatusReportFrequency")) ?? 300_000,
    nodeLeaseDurationSeconds: Number(at(file, "nodeLeaseDurationSeconds") ?? 0) || 40,
    nodeStatusMaxImages: pick("node-status-max-images", "nodeStatusMaxImages", 50),
    maxPods: pick<number>("max-pods", "maxPods", 110) || 110,
    podsPerCore: pick("pods-per-core", "podsPerCore"),

    runtimeRequestTimeoutMs: pickDuration("runtime-request-timeout", "runtimeRequestTimeout"),
    serializeImagePulls: pick("serialize-image-pulls", "serializeImagePulls", true),
    registryQps: pick("registry-qps", "registryPullQPS", 5),
    registryBurst: pick<number>("registry-burst", "registryBurst", 10) || 10,
    imageMinAgeMs: pickDuration("minimum-image-ttl-duration", "imageMinimumGCAge"),
    imageGcHighThreshold: pick("image-gc-high-threshold", "imageGCHighThresholdPercent", 85),
    imageGcLowThreshold: pick("image-gc-low-threshold", "imageGCLowThresholdPercent", 80),
    containerLogMaxSizeBytes: logSize.value(),
    containerLogMaxFiles: pick("container-log-max-files", "containerLogMaxFiles", 5),
    maxDeadPerContainer: flags["maximum-dead-containers-per-container"],
    maxDead: flags["maximum-dead-containers"],
    deadMinAgeMs: flags["minimum-container-ttl-duration"],

    cgroupsPerQos: pick("cgroups-per-qos", "cgroupsPerQOS", true),
    cgroupRoot: pick("cgroup-root", "cgroupRoot"),
    cpuCfsQuota: pick("cpu-cfs-quota", "cpuCFSQuota", true),
    cpuCfsPeriodMs: pickDuration("cpu-cfs-quota-period", "cpuCFSQuotaPeriod"),
    podPidsLimit: pick("pod-max-pids", "podPidsLimit", -1),
    kubeReserved: pick("kube-reserved", "kubeReserved"),
    systemReserved: pick("system-reserved", "systemReserved"),
    evictionHard: pick("eviction-hard", "evictionHard"),
    evictionSoft: pick("eviction-soft", "evictionSoft"),
    evictionSoftGraceMs: durationsOf(pick("eviction-soft-grace-period", "evictionSoftGracePeriod")),
    evictionMinReclaim: pick("eviction-minimum-reclaim", "evictionMinimumReclaim"),
    evictionMaxPodGraceSeconds: pick("eviction-max-pod-grace-period", "evictionMaxPodGracePeriod"),
    evictionTransitionMs: pickDuration("eviction-pressure-transition-period", "evictionPressureTransitionPeriod"),
    enforceNodeAllocatable: pick("enforce-node-allocatable", "enforceNodeAllocatable", ["pods"]),
    allowedUnsafeSysctls: pick("allowed-unsafe-sysctls", "allowedUnsafeSysctls"),
    seccompDefault: pick("seccomp-default", "seccompDefault", false),
    failSwapOn: pick("fail-swap-on", "failSwapOn", true),
    featureGates: { ...(at(file, "featureGates") as Record<string, boolean> | undefined), ...flags["feature-gates"] },

    kubeApiQps: pick<number>("kube-api-qps", "kubeAPIQPS", 5) || 5,
    kubeApiBurst: pick<number>("kube-api-burst", "kubeAPIBurst", 10) || 10,
    eventQps: pick("event-qps", "eventRecordQPS", 5),
    eventBurst: pick<number>("event-burst", "eventBurst", 10) || 10,
    written: file,
  };
  const strange = unknownFields(file);
  if (strange.length > 0) {
    const list = strange.map((name) => `unknown field ${JSON.stringify(name)}`).join(", ");
    throw new ConfigError(`failed to load config file ${path}: strict decoding error: ${list}`);
  }
  const problems = checkConfig(config);
  if (problems.length > 0) throw new ConfigError(problems.length === 1 ? (problems[0] as string) : `[${problems.join(", ")}]`);
  return config;
}

/** Pure: everything that is wrong, at once. Source: pkg/kubelet/apis/config/validation/validation.go */
export function checkConfig(config: AgentConfig): string[] {
  const problems: string[] = [];
  const between = (name: string, value: number, min: number, max: number): void => {
    if (!(value >= min && value <= max))
      problems.push(`invalid configuration: ${name} ${value} must be between ${min} and ${max}, inclusive`);
  };
  between("port", config.port, 1, 65_535);
  between("healthzPort", config.healthzPort, 0, 65_535);
  between("readOnlyPort", config.readOnlyPort, 0, 65_535);
  between("imageGCHighThresholdPercent", config.imageGcHighThreshold, 0, 100);
  between("imageGCLowThresholdPercent", config.imageGcLowThreshold, 0, 100);
  if (config.imageGcLowThreshold >= config.imageGcHighThreshold && config.imageGcHighThreshold !== config.imageGcLowThreshold) {
    problems.push(
      `invalid configuration: imageGCLowThresholdPercent ${config.imageGcLowThreshold} must be less than imageGCHighThresholdPercent ${config.imageGcHighThreshold}`,
    );
  }
  if (config.containerLogMaxFiles < 2) problems.push("invalid configuration: containerLogMaxFiles must be >= 2");
  if (config.maxPods < 0) problems.push(`invalid configuration: maxPods ${config.maxPods} must not be a negative number`);
  if (config.podsPerCore < 0)
    problems.push(`invalid configuration: podsPerCore ${config.podsPerCore} must not be a negative number`);
  if (config.eventBurst < 0)
    problems.push(`invalid configuration: eventBurst ${config.eventBurst} must not be a negative number`);
  try {
    parseThresholds({
      hard: config.evictionHard,
      soft: config.evictionSoft,
      softGraceMs: config.evictionSoftGraceMs,
      minReclaim: config.evictionMinReclaim,
    });
  } catch (err) {
    problems.push(`invalid configuration: ${(err as Error).message}`);
  }
  for (const name of Object.keys(config.nodeLabels)) {
    const problem = forbiddenLabel(name);
    if (problem !== undefined) problems.push(problem);
  }
  return problems;
}

const allowedKubernetesLabels = new Set([
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "kubernetes.io/arch",
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
]);

/** In the names of the project a node may say only what it cannot lie about to its gain. */
function forbiddenLabel(name: string): string | undefined {
  const slash = name.indexOf("/");
  const domain = slash < 0 ? "" : name.slice(0, slash);
  const inside = (suffix: string): boolean => domain === suffix || domain.endsWith(`.${suffix}`);
  if (!inside("kubernetes.io") && !inside("k8s.io")) return undefined;
  if (inside("kubelet.kubernetes.io") || inside("node.kubernetes.io") || allowedKubernetesLabels.has(name)) return undefined;
  return `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${name}]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (${[...allowedKubernetesLabels].join(", ")})`;
}

/** Fields of KubeletConfiguration that the agent acts on. */
const honouredFields = [
  "apiVersion",
  "kind",
  "address",
  "allowedUnsafeSysctls",
  "authentication",
  "authorization",
  "cgroupDriver",
  "cgroupRoot",
  "cgroupsPerQOS",
  "clusterDNS",
  "clusterDomain",
  "containerLogMaxFiles",
  "containerLogMaxSize",
  "cpuCFSQuota",
  "cpuCFSQuotaPeriod",
  "enableDebuggingHandlers",
  "enableServer",
  "enforceNodeAllocatable",
  "eventBurst",
  "eventRecordQPS",
  "evictionHard",
  "evictionMaxPodGracePeriod",
  "evictionMinimumReclaim",
  "evictionPressureTransitionPeriod",
  "evictionSoft",
  "evictionSoftGracePeriod",
  "failSwapOn",
  "featureGates",
  "fileCheckFrequency",
  "healthzBindAddress",
  "healthzPort",
  "httpCheckFrequency",
  "imageGCHighThresholdPercent",
  "imageGCLowThresholdPercent",
  "imageMinimumGCAge",
  "kubeAPIBurst",
  "kubeAPIQPS",
  "kubeReserved",
  "maxPods",
  "nodeLeaseDurationSeconds",
  "nodeStatusMaxImages",
  "nodeStatusReportFrequency",
  "nodeStatusUpdateFrequency",
  "podPidsLimit",
  "podsPerCore",
  "port",
  "providerID",
  "readOnlyPort",
  "registerNode",
  "registerWithTaints",
  "registryBurst",
  "registryPullQPS",
  "resolvConf",
  "rotateCertificates",
  "runtimeRequestTimeout",
  "seccompDefault",
  "serializeImagePulls",
  "staticPodPath",
  "staticPodURL",
  "staticPodURLHeader",
  "syncFrequency",
  "systemReserved",
  "tlsCertFile",
  "tlsCipherSuites",
  "tlsMinVersion",
  "tlsPrivateKeyFile",
];

/** The others, with the value that says what happens here anyway: any other value has no effect, and that is told. */
const otherFields: Readonly<Record<string, unknown>> = {
  configMapAndSecretChangeDetectionStrategy: "Get",
  contentType: undefined,
  cpuManagerPolicy: "none",
  cpuManagerPolicyOptions: undefined,
  cpuManagerReconcilePeriod: undefined,
  enableContentionProfiling: false,
  enableControllerAttachDetach: true,
  enableDebugFlagsHandler: undefined,
  enableProfilingHandler: undefined,
  enableSystemLogHandler: false,
  hairpinMode: undefined,
  iptablesDropBit: undefined,
  iptablesMasqueradeBit: undefined,
  kernelMemcgNotification: false,
  kubeReservedCgroup: "",
  kubeletCgroups: "",
  logging: undefined,
  makeIPTablesUtilChains: undefined,
  maxOpenFiles: undefined,
  memoryManagerPolicy: "None",
  memorySwap: undefined,
  memoryThrottlingFactor: undefined,
  oomScoreAdj: undefined,
  podCIDR: "",
  protectKernelDefaults: false,
  qosReserved: undefined,
  reservedMemory: undefined,
  reservedSystemCPUs: "",
  runOnce: false,
  serverTLSBootstrap: false,
  showHiddenMetricsForVersion: "",
  shutdownGracePeriod: "0s",
  shutdownGracePeriodByPodPriority: undefined,
  shutdownGracePeriodCriticalPods: "0s",
  streamingConnectionIdleTimeout: undefined,
  systemCgroups: "",
  systemReservedCgroup: "",
  topologyManagerPolicy: "none",
  topologyManagerScope: "container",
  volumePluginDir: undefined,
  volumeStatsAggPeriod: undefined,
};

function unknownFields(file: Written): string[] {
  return Object.keys(file).filter((name) => !honouredFields.includes(name) && !Object.hasOwn(otherFields, name));
}

/** Fields of the file that were set and do nothing, for the log at start. */
export function ineffectiveFields(file: Written): string[] {
  return Object.keys(file).filter((name) => Object.hasOwn(otherFields, name) && file[name] !== otherFields[name]);
}

function readFile(path: string): Written {
  try {
    return readConfigFile(path, "KubeletConfiguration", ["kubelet.config.k8s.io/v1beta1"]);
  } catch (err) {
    throw new ConfigError((err as Error).message);
  }
}

function at(object: Written, path: string): unknown {
  let value: unknown = object;
  for (const part of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

function durationOf(value: unknown): number | undefined {
  const ms = value === undefined ? undefined : parseDuration(String(value));
  return ms === 0 ? undefined : ms;
}

function durationsOf(written: unknown): Record<string, number> {
  const durations: Record<string, number> = {};
  for (const [name, text] of Object.entries((written ?? {}) as Record<string, unknown>)) {
    const ms = parseDuration(String(text));
    if (ms === undefined)
      throw new ConfigError(`invalid configuration: grace period of ${name} is not a duration: ${String(text)}`);
    durations[name] = ms;
  }
  return durations;
}

/** `key=value:effect,…` */
function taintsOf(flag: unknown, field: unknown): { key: string; value?: string; effect: string }[] {
  if (Array.isArray(field) && (flag === undefined || flag === "" || (Array.isArray(flag) && flag.length === 0)))
    return field as never;
  const texts = Array.isArray(flag) ? (flag as string[]) : String(flag ?? "").split(",");
  return texts
    .filter((text) => text !== "")
    .map((text) => {
      const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text);
      if (match === null) throw new ConfigError(`invalid taint spec: ${text}, invalid taint effect`);
      const value = match[2];
      return { key: match[1] as string, ...(value === undefined ? {} : { value }), effect: match[3] as string };
    });
}

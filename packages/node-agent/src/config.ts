import { dirname, resolve } from "node:path";
import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { parseDuration } from "@coxswain/apimachinery/meta/time";
import type { AgentConfig, ShutdownGroup, Written } from "./agent-config.ts";
import { checkConfig } from "./config-checks.ts";
import { asConfigError } from "./config-error.ts";
import { absolutePaths, unknownFields } from "./config-fields.ts";
import type { KubeletFlags } from "./flags.ts";
import { parseReservedMemory } from "./resources/memory/reserved-memory.ts";

const defaultCfsPeriodMs = 100;
const defaultMemoryThrottlingFactor = 0.8;

/**
 * Merges flags over the file of `--config`. Without a file the defaults of the flags apply, with a file those of
 * KubeletConfiguration: e.g. anonymous authentication is disabled with a file and enabled with flags only.
 * @param set names of the flags that were given on the command line
 * @param local feature gates to use where neither file nor flags set them
 * @throws ConfigError
 * Source: cmd/kubelet/app/server.go, pkg/kubelet/apis/config/v1beta1/defaults.go
 */
export function newAgentConfig(
  flags: KubeletFlags,
  set: ReadonlySet<string>,
  local: Readonly<Record<string, boolean>> = {},
): AgentConfig {
  checkDynamicConfigFlag(flags);
  const path = flags.config;
  const file: Written = path === "" ? {} : readConfiguration(path);
  const hasFile = path !== "";

  /** The flag if it was given, else the file's field, else the default (the file's when there is a file). */
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
  const updateMs = pickDuration("node-status-update-frequency", "nodeStatusUpdateFrequency");
  const logSize = Quantity.tryParse(pick<string>("container-log-max-size", "containerLogMaxSize"));
  if (logSize === undefined) throw new ConfigError("invalid configuration: containerLogMaxSize is not a quantity");
  const featureGates = {
    ...local,
    ...(at(file, "featureGates") as Record<string, boolean> | undefined),
    ...flags["feature-gates"],
  };
  const gates = asConfigError(() => newFeatureGates("kubelet", featureGates));
  const config: AgentConfig = {
    rootDir: flags["root-dir"],
    certDir: flags["cert-dir"],
    tlsSniCertKeys: flags["tls-sni-cert-key"],
    kubeconfig: flags.kubeconfig,
    bootstrapKubeconfig: flags["bootstrap-kubeconfig"] || flags["experimental-bootstrap-kubeconfig"],
    rotateCertificates: pick("rotate-certificates", "rotateCertificates", false),
    rotateServerCertificates: pick("rotate-server-certificates", "serverTLSBootstrap", false),
    runtimeEndpoint: flags["container-runtime-endpoint"],
    imageEndpoint: flags["image-service-endpoint"],
    sandboxImage: flags["pod-infra-container-image"],
    hostnameOverride: flags["hostname-override"],
    nodeIp: flags["node-ip"],
    controllerAttachDetach: pick("enable-controller-attach-detach", "enableControllerAttachDetach", true),
    keepTerminatedPodVolumes: flags["keep-terminated-pod-volumes"],
    volumeStatsMs: pickDuration("volume-stats-agg-period", "volumeStatsAggPeriod"),
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
    enableSystemLogHandler: (at(file, "enableSystemLogHandler") as boolean | null | undefined) ?? true,
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
    shutdownGraceMs: durationOf(at(file, "shutdownGracePeriod")) ?? 0,
    shutdownGraceCriticalMs: durationOf(at(file, "shutdownGracePeriodCriticalPods")) ?? 0,
    shutdownGroups: (at(file, "shutdownGracePeriodByPodPriority") ?? []) as ShutdownGroup[],
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
    cgroupDriver: pick("cgroup-driver", "cgroupDriver"),
    cgroupRoot: pick("cgroup-root", "cgroupRoot"),
    kubeletCgroups: pick("kubelet-cgroups", "kubeletCgroups"),
    systemCgroups: pick("system-cgroups", "systemCgroups"),
    cpuCfsQuota: pick("cpu-cfs-quota", "cpuCFSQuota", true),
    cpuCfsPeriodMs: gates.enabled("CustomCPUCFSQuotaPeriod")
      ? pickDuration("cpu-cfs-quota-period", "cpuCFSQuotaPeriod")
      : defaultCfsPeriodMs,
    podPidsLimit: pick("pod-max-pids", "podPidsLimit", -1),
    kubeReserved: pick("kube-reserved", "kubeReserved"),
    systemReserved: pick("system-reserved", "systemReserved"),
    kubeReservedCgroup: pick("kube-reserved-cgroup", "kubeReservedCgroup"),
    systemReservedCgroup: pick("system-reserved-cgroup", "systemReservedCgroup"),
    reservedCpus: pick("reserved-cpus", "reservedSystemCPUs"),
    qosReserved: pick("qos-reserved", "qosReserved"),
    evictionHard: pick("eviction-hard", "evictionHard"),
    evictionSoft: pick("eviction-soft", "evictionSoft"),
    evictionSoftGraceMs: durationsOf(pick("eviction-soft-grace-period", "evictionSoftGracePeriod")),
    evictionMinReclaim: pick("eviction-minimum-reclaim", "evictionMinimumReclaim"),
    evictionMaxPodGraceSeconds: pick("eviction-max-pod-grace-period", "evictionMaxPodGracePeriod"),
    evictionTransitionMs: pickDuration("eviction-pressure-transition-period", "evictionPressureTransitionPeriod"),
    enforceNodeAllocatable: pick("enforce-node-allocatable", "enforceNodeAllocatable", ["pods"]),
    allocatableIgnoresEviction: flags["experimental-allocatable-ignore-eviction"],
    cpuManagerPolicy: pick("cpu-manager-policy", "cpuManagerPolicy", "none"),
    cpuManagerPolicyOptions: pick("cpu-manager-policy-options", "cpuManagerPolicyOptions") ?? {},
    cpuManagerReconcileMs: pickDuration("cpu-manager-reconcile-period", "cpuManagerReconcilePeriod"),
    memoryManagerPolicy: pick("memory-manager-policy", "memoryManagerPolicy", "None"),
    reservedMemory: asConfigError(() => parseReservedMemory(flags["reserved-memory"], at(file, "reservedMemory"))),
    topologyManagerPolicy: pick("topology-manager-policy", "topologyManagerPolicy", "none"),
    topologyManagerScope: pick("topology-manager-scope", "topologyManagerScope", "container"),
    allowedUnsafeSysctls: pick("allowed-unsafe-sysctls", "allowedUnsafeSysctls"),
    seccompDefault: pick("seccomp-default", "seccompDefault", false),
    failSwapOn: pick("fail-swap-on", "failSwapOn", true),
    swapBehavior: String(at(file, "memorySwap.swapBehavior") ?? ""),
    memoryThrottlingFactor: Number(at(file, "memoryThrottlingFactor") ?? defaultMemoryThrottlingFactor),
    protectKernelDefaults: pick("protect-kernel-defaults", "protectKernelDefaults", false),
    oomScoreAdj: pick("oom-score-adj", "oomScoreAdj", -999),
    maxOpenFiles: pick<number>("max-open-files", "maxOpenFiles", 1_000_000) || 1_000_000,
    runOnce: pick("runonce", "runOnce", false),
    lockFile: flags["lock-file"],
    exitOnLockContention: flags["exit-on-lock-contention"],
    dynamicConfigDir: flags["dynamic-config-dir"],
    hairpinMode: pick("hairpin-mode", "hairpinMode", "promiscuous-bridge"),
    makeIptablesUtilChains: pick("make-iptables-util-chains", "makeIPTablesUtilChains", true),
    iptablesMasqueradeBit: pick("iptables-masquerade-bit", "iptablesMasqueradeBit", 14),
    iptablesDropBit: pick("iptables-drop-bit", "iptablesDropBit", 15),
    featureGates,

    volumePluginDir: pick("volume-plugin-dir", "volumePluginDir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
    metrics: metricsOptions({
      ...flags,
      "show-hidden-metrics-for-version": pick("show-hidden-metrics-for-version", "showHiddenMetricsForVersion", ""),
    }),

    kubeApiQps: pick<number>("kube-api-qps", "kubeAPIQPS", 5) || 5,
    kubeApiBurst: pick<number>("kube-api-burst", "kubeAPIBurst", 10) || 10,
    contentType: pick("kube-api-content-type", "contentType", "application/vnd.kubernetes.protobuf"),
    eventQps: pick("event-qps", "eventRecordQPS", 5),
    eventBurst: pick<number>("event-burst", "eventBurst", 10) || 10,
    written: file,
  };
  const problems = checkConfig(config, gates);
  if (problems.length > 0) throw new ConfigError(problems.length === 1 ? (problems[0] as string) : `[${problems.join(", ")}]`);
  return config;
}

/**
 * Validated before the file is read: a feature gate in the file does not count.
 * Source: cmd/kubelet/app/options ValidateKubeletFlags
 */
function checkDynamicConfigFlag(flags: KubeletFlags): void {
  const gates = asConfigError(() => newFeatureGates("kubelet", flags["feature-gates"]));
  if (flags["dynamic-config-dir"] === "" || gates.enabled("DynamicKubeletConfig")) return;
  throw new ConfigError("the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag");
}

/**
 * Reads a KubeletConfiguration; relative paths are resolved against its directory.
 * @throws ConfigError when the file cannot be read, has another kind, or has values of the wrong type
 * Source: pkg/kubelet/kubeletconfig/configfiles/configfiles.go
 */
export function readConfiguration(path: string): Written {
  const file = asConfigError(() => readConfigFile(path, "KubeletConfiguration", ["kubelet.config.k8s.io/v1beta1"]));
  try {
    unknownFields(file);
  } catch (err) {
    throw new ConfigError(`failed to load config file ${path}: failed to decode: ${(err as Error).message}`);
  }
  return absolutePaths(file, dirname(resolve(path)));
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

/** Parses `key=value:effect,…`; the file's field is used when the flag is empty. */
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

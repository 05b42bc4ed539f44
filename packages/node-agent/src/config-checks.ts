import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { formatDuration } from "@coxswain/apimachinery/meta/time";
import type { AgentConfig } from "./agent-config.ts";
import { parseCpus } from "./resources/cpu/cpu-set.ts";
import { parseThresholds } from "./resources/eviction-thresholds.ts";
import { nodeIpProblem } from "./resources/machine.ts";
import { reservedMemoryProblems } from "./resources/memory/reserved-memory.ts";
import { parseQosReserved } from "./resources/qos-reserve.ts";

type NumberField = { [K in keyof AgentConfig]: AgentConfig[K] extends number ? K : never }[keyof AgentConfig];
type TextField = { [K in keyof AgentConfig]: AgentConfig[K] extends string ? K : never }[keyof AgentConfig];

/** Field, its name in the file and its flag, and the allowed range. */
const ranges: readonly (readonly [field: NumberField, name: string, min: number, max: number])[] = [
  ["port", "port (--port)", 1, 65_535],
  ["healthzPort", "healthzPort (--healthz-port)", 0, 65_535],
  ["readOnlyPort", "readOnlyPort (--read-only-port)", 0, 65_535],
  ["imageGcHighThreshold", "imageGCHighThresholdPercent (--image-gc-high-threshold)", 0, 100],
  ["imageGcLowThreshold", "imageGCLowThresholdPercent (--image-gc-low-threshold)", 0, 100],
  ["iptablesDropBit", "iptablesDropBit (--iptables-drop-bit)", 0, 31],
  ["iptablesMasqueradeBit", "iptablesMasqueradeBit (--iptables-masquerade-bit)", 0, 31],
  ["oomScoreAdj", "oomScoreAdj (--oom-score-adj)", -1000, 1000],
];

const notNegative: readonly (readonly [field: NumberField, name: string])[] = [
  ["eventBurst", "eventBurst (--event-burst)"],
  ["eventQps", "eventRecordQPS (--event-qps)"],
  ["kubeApiBurst", "kubeAPIBurst (--kube-api-burst)"],
  ["kubeApiQps", "kubeAPIQPS (--kube-api-qps)"],
  ["maxOpenFiles", "maxOpenFiles (--max-open-files)"],
  ["maxPods", "maxPods (--max-pods)"],
  ["podsPerCore", "podsPerCore (--pods-per-core)"],
  ["registryBurst", "registryBurst (--registry-burst)"],
  ["registryQps", "registryPullQPS (--registry-qps)"],
];

const choices: readonly (readonly [field: TextField, values: readonly string[], problem: (value: string) => string])[] = [
  [
    "topologyManagerPolicy",
    ["none", "best-effort", "restricted", "single-numa-node"],
    (value) =>
      `topologyManagerPolicy (--topology-manager-policy) ${value} must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`,
  ],
  [
    "topologyManagerScope",
    ["container", "pod"],
    (value) => `topologyManagerScope (--topology-manager-scope) ${value} must be one of: "container", or "pod"`,
  ],
  [
    "hairpinMode",
    ["none", "hairpin-veth", "promiscuous-bridge"],
    (value) =>
      `option ${value} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`,
  ],
];

/** Pure: all validation errors of a configuration. Source: pkg/kubelet/apis/config/validation/validation.go */
export function checkConfig(config: AgentConfig, gates: FeatureGates): string[] {
  const problems: string[] = [];
  const invalid = (text: string): void => void problems.push(`invalid configuration: ${text}`);
  const fails = (what: () => unknown): string | undefined => {
    try {
      what();
    } catch (err) {
      return (err as Error).message;
    }
    return undefined;
  };

  for (const [field, name, min, max] of ranges) {
    if (!(config[field] >= min && config[field] <= max))
      invalid(`${name} ${config[field]} must be between ${min} and ${max}, inclusive`);
  }
  for (const [field, name] of notNegative)
    if (config[field] < 0) invalid(`${name} ${config[field]} must not be a negative number`);
  for (const [field, values, problem] of choices)
    if (!values.includes(config[field])) invalid(problem(JSON.stringify(config[field])));
  if (config.imageGcLowThreshold > config.imageGcHighThreshold) {
    invalid(
      `imageGCLowThresholdPercent (--image-gc-low-threshold) ${config.imageGcLowThreshold} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${config.imageGcHighThreshold}`,
    );
  }
  if (config.rotateServerCertificates && !gates.enabled("RotateKubeletServerCertificate"))
    invalid("serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  if (!gates.enabled("TopologyManager")) {
    if (config.topologyManagerPolicy !== "none")
      invalid(`topologyManagerPolicy ${config.topologyManagerPolicy} requires feature gate TopologyManager`);
    if (config.topologyManagerScope !== "container")
      invalid(`topologyManagerScope ${config.topologyManagerScope} requires feature gate TopologyManager`);
  }
  if (config.containerLogMaxFiles < 2) invalid("containerLogMaxFiles must be >= 2");
  if (gates.enabled("CustomCPUCFSQuotaPeriod") && !(config.cpuCfsPeriodMs >= 1 && config.cpuCfsPeriodMs <= 1000)) {
    invalid(
      `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) ${formatDuration(config.cpuCfsPeriodMs)} must be between 1ms and 1sec, inclusive`,
    );
  }
  const thresholds = fails(() =>
    parseThresholds({
      hard: config.evictionHard,
      soft: config.evictionSoft,
      softGraceMs: config.evictionSoftGraceMs,
      minReclaim: config.evictionMinReclaim,
    }),
  );
  if (thresholds !== undefined) invalid(thresholds);
  problems.push(...enforcementProblems(config), ...reservedMemoryProblems(config.reservedMemory));
  if (config.systemCgroups !== "" && config.cgroupRoot === "")
    invalid("systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
  if (config.reservedCpus !== "") {
    if (config.systemReservedCgroup !== "" || config.kubeReservedCgroup !== "") {
      invalid(
        "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
      );
    }
    const list = fails(() => parseCpus(config.reservedCpus));
    if (list !== undefined)
      invalid(`unable to parse reservedSystemCPUs (--reserved-cpus) ${config.reservedCpus}, error: ${list}`);
  }
  for (const problem of shutdownProblems(config, gates)) invalid(problem);
  if (!gates.enabled("NodeSwap")) {
    if (config.swapBehavior !== "") invalid("memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled");
  } else if (!["", "LimitedSwap", "UnlimitedSwap"].includes(config.swapBehavior)) {
    const valid = '"", "LimitedSwap", or "UnlimitedSwap"';
    invalid(`memorySwap.swapBehavior ${goQuote(config.swapBehavior)} must be one of: ${valid}`);
  }
  const factor = config.memoryThrottlingFactor;
  if (!(factor > 0 && factor <= 1))
    invalid(`memoryThrottlingFactor ${factor} must be greater than 0 and less than or equal to 1.0`);
  const qosReserved = fails(() => parseQosReserved(config.qosReserved));
  if (qosReserved !== undefined) problems.push(qosReserved);
  if (config.exitOnLockContention && config.lockFile === "")
    problems.push("cannot exit on lock file contention: no lock file specified");
  for (const problem of [nodeIpProblem(config.nodeIp), ...Object.keys(config.nodeLabels).map(forbiddenLabel)]) {
    if (problem !== undefined) problems.push(problem);
  }
  return problems;
}

function* shutdownProblems(config: AgentConfig, gates: FeatureGates): Generator<string> {
  const { shutdownGraceMs: total, shutdownGraceCriticalMs: critical, shutdownGroups: groups } = config;
  // Go's format of a struct that wraps a duration.
  const show = (ms: number): string => `{${formatDuration(ms)}}`;
  if (gates.enabled("GracefulNodeShutdown")) {
    if (critical > total) yield `shutdownGracePeriodCriticalPods ${show(critical)} must be <= shutdownGracePeriod ${show(total)}`;
    for (const [name, ms] of Object.entries({ shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: critical })) {
      if (ms < 0 || (ms > 0 && ms < 1000)) yield `${name} ${show(ms)} must be either zero or otherwise >= 1 sec`;
    }
  } else if (total > 0 || critical > 0) {
    yield "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown";
  }
  if (groups.length === 0) return;
  if (!gates.enabled("GracefulNodeShutdownBasedOnPodPriority")) {
    yield "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority";
  } else if (total > 0 || critical > 0) {
    yield "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time";
  }
}

/** `--enforce-node-allocatable` value → the cgroup setting that it requires. */
const enforcements: Readonly<Record<string, { field: TextField; name: string } | undefined>> = {
  pods: undefined,
  "system-reserved": { field: "systemReservedCgroup", name: "systemReservedCgroup (--system-reserved-cgroup)" },
  "kube-reserved": { field: "kubeReservedCgroup", name: "kubeReservedCgroup (--kube-reserved-cgroup)" },
  none: undefined,
};

function enforcementProblems(config: AgentConfig): string[] {
  const problems: string[] = [];
  const enforce = config.enforceNodeAllocatable;
  const field = "enforceNodeAllocatable (--enforce-node-allocatable)";
  if (!config.cgroupsPerQos && enforce.some((name) => name !== "none" && name !== "")) {
    problems.push(`${field} is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true`);
  }
  for (const name of enforce) {
    if (name === "" && enforce.length === 1) continue; // `--enforce-node-allocatable=`
    const needed = Object.hasOwn(enforcements, name) ? enforcements[name] : undefined;
    if (!Object.hasOwn(enforcements, name)) {
      const valid = '"pods", "system-reserved", "kube-reserved", or "none"';
      problems.push(`option ${JSON.stringify(name)} specified for ${field}. Valid options are ${valid}`);
    } else if (name === "none" && enforce.length > 1) {
      problems.push(`${field} may not contain additional enforcements when "none" is specified`);
    } else if (needed !== undefined && config[needed.field] === "") {
      problems.push(`${needed.name} must be specified when ${JSON.stringify(name)} contained in ${field}`);
    }
  }
  return problems.map((problem) => `invalid configuration: ${problem}`);
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

/** In the Kubernetes label domains, nodes may only set labels that a compromised node cannot abuse to attract workloads. */
function forbiddenLabel(name: string): string | undefined {
  const slash = name.indexOf("/");
  const domain = slash < 0 ? "" : name.slice(0, slash);
  const inside = (suffix: string): boolean => domain === suffix || domain.endsWith(`.${suffix}`);
  if (!inside("kubernetes.io") && !inside("k8s.io")) return undefined;
  if (inside("kubelet.kubernetes.io") || inside("node.kubernetes.io") || allowedKubernetesLabels.has(name)) return undefined;
  return `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${name}]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (${[...allowedKubernetesLabels].join(", ")})`;
}

import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { goDuration } from "@coxswain/apimachinery/flags/rules";
import { problemsOf, problemsOfGates } from "@coxswain/apimachinery/flags/settings";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { AgentConfig } from "./agent-config.ts";
import { defaultLabels } from "./node/registration.ts";
import { parseCpus } from "./resources/cpu/cpu-set.ts";
import { parseThresholds } from "./resources/eviction-thresholds.ts";
import { nodeIpProblem } from "./resources/machine.ts";
import { reservedMemoryProblems } from "./resources/memory/reserved-memory.ts";
import { parseQosReserved } from "./resources/qos-reserve.ts";
import { agentSettings } from "./settings/table.ts";

/** Pure: all validation errors of a configuration. Source: pkg/kubelet/apis/config/validation/validation.go */
export function checkConfig(config: AgentConfig, gates: FeatureGates): string[] {
  const problems: string[] = [];
  const invalid = (text: string): void => void problems.push(`invalid configuration: ${text}`);
  const fails = (what: () => unknown): string | undefined => {
    try {
      what();
    } catch (err) {
      return messageOf(err);
    }
    return undefined;
  };

  const broken = (kind: string): void => problemsOf(agentSettings, config, kind).forEach(invalid);

  for (const kind of ["rule", "between", "notNegative", "oneOf"]) broken(kind);
  if (config.imageGcLowThreshold >= config.imageGcHighThreshold) {
    invalid(
      `imageGCLowThresholdPercent (--image-gc-low-threshold) ${config.imageGcLowThreshold} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${config.imageGcHighThreshold}`,
    );
  }
  problemsOfGates(agentSettings, config, gates).forEach(invalid);
  for (const kind of ["atLeast", "durationBetween"]) broken(kind);
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
  broken("fraction");
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
  if (gates.enabled("GracefulNodeShutdown")) {
    if (critical > total)
      yield `shutdownGracePeriodCriticalPods ${goDuration(critical)} must be <= shutdownGracePeriod ${goDuration(total)}`;
    for (const [name, ms] of Object.entries({ shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: critical })) {
      if (ms < 0 || (ms > 0 && ms < 1000)) yield `${name} ${goDuration(ms)} must be either zero or otherwise >= 1 sec`;
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
const enforcements: Readonly<Record<string, { field: "systemReservedCgroup" | "kubeReservedCgroup"; name: string } | undefined>> =
  {
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

/** Labels of the API's own domains that `--node-labels` may set. */
const allowedKubernetesLabels = new Set(defaultLabels.filter((label) => label !== "node.kubernetes.io/windows-build"));

/** In the Kubernetes label domains, nodes may only set labels that a compromised node cannot abuse to attract workloads. */
function forbiddenLabel(name: string): string | undefined {
  const slash = name.indexOf("/");
  const domain = slash < 0 ? "" : name.slice(0, slash);
  const inside = (suffix: string): boolean => domain === suffix || domain.endsWith(`.${suffix}`);
  if (!inside("kubernetes.io") && !inside("k8s.io")) return undefined;
  if (inside("kubelet.kubernetes.io") || inside("node.kubernetes.io") || allowedKubernetesLabels.has(name)) return undefined;
  return `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${name}]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (${[...allowedKubernetesLabels].join(", ")})`;
}

import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";

/** `--cpu-manager-policy-options` of the static policy. */
export interface CpuPolicyOptions {
  /** `full-pcpus-only`: containers get whole physical cores, or are rejected. */
  wholeCoresOnly: boolean;
  /** `distribute-cpus-across-numa`: when one NUMA node is not enough, take an equal number from each. */
  acrossNodes: boolean;
}

/** Option → the feature gate it requires in addition to CPUManagerPolicyOptions. */
const gateOf: Readonly<Record<string, string>> = {
  "full-pcpus-only": "CPUManagerPolicyBetaOptions",
  "distribute-cpus-across-numa": "CPUManagerPolicyAlphaOptions",
};

/**
 * @throws Error for unknown options, invalid values and disabled feature gates
 * Source: pkg/kubelet/cm/cpumanager/policy_options.go, cm/container_manager_linux.go
 */
export function parseCpuPolicyOptions(
  policy: string,
  written: Readonly<Record<string, string>>,
  gates: FeatureGates,
): CpuPolicyOptions {
  const options = Object.entries(written ?? {});
  if (options.length > 0 && !gates.enabled("CPUManagerPolicyOptions")) {
    const shown = options.map(([name, value]) => `${name}:${value}`).join(" ");
    throw new Error(
      `CPU Manager policy options map[${shown}] require feature gates "CPUManager", "CPUManagerPolicyOptions" enabled`,
    );
  }
  if (options.length > 0 && policy === "none") throw new Error("None policy: received unsupported options=map");
  const parsed = new Map<string, boolean>();
  for (const [name, value] of options) {
    const gate = Object.hasOwn(gateOf, name) ? gateOf[name] : undefined;
    if (gate === undefined) throw new Error(`unknown CPU Manager Policy option: ${JSON.stringify(name)}`);
    if (!gates.enabled(gate)) {
      const level = gate.includes("Alpha") ? "Alpha" : "Beta";
      throw new Error(`CPU Manager Policy ${level}-level Options not enabled, but option ${JSON.stringify(name)} provided`);
    }
    const flag = booleans[value];
    if (flag === undefined)
      throw new Error(
        `bad value for option ${JSON.stringify(name)}: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`,
      );
    parsed.set(name, flag);
  }
  return {
    wholeCoresOnly: parsed.get("full-pcpus-only") ?? false,
    acrossNodes: parsed.get("distribute-cpus-across-numa") ?? false,
  };
}

const booleans: Readonly<Record<string, boolean | undefined>> = Object.assign(Object.create(null), {
  ...Object.fromEntries(["1", "t", "T", "true", "TRUE", "True"].map((text) => [text, true])),
  ...Object.fromEntries(["0", "f", "F", "false", "FALSE", "False"].map((text) => [text, false])),
});

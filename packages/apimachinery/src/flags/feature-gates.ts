import { type GateSpec, gates } from "./gates.ts";

/** The enabled features of a program. */
export interface FeatureGates {
  /** @throws Error for an unknown gate, which is a bug in the caller */
  enabled(name: string): boolean;
  /** Warnings about GA and deprecated gates, to be logged at startup. */
  readonly warnings: readonly string[];
}

/**
 * The kubelet's documentation has other defaults for three gates and lacks one.
 * Source: the reference page of the kubelet in 1.23
 */
const nodeAgentDefaults: Readonly<Record<string, boolean>> = {
  CSIMigrationAWS: false,
  CPUManagerPolicyOptions: false,
  TopologyAwareHints: true,
};

/** The gates of a program, by its name (`kubelet`). */
export function gatesOf(program: string): Readonly<Record<string, GateSpec>> {
  if (program !== "kubelet") return gates;
  const own = Object.entries(gates).filter(([name]) => name !== "ServerSideFieldValidation");
  return Object.fromEntries(own.map(([name, gate]) => [name, { ...gate, default: nodeAgentDefaults[name] ?? gate.default }]));
}

/**
 * @param wanted the value of --feature-gates
 * @throws Error with upstream's text for unknown and locked gates
 * Source: k8s.io/component-base featuregate/feature_gate.go
 */
export function newFeatureGates(program: string, wanted: Readonly<Record<string, boolean>>): FeatureGates {
  const known = gatesOf(program);
  const state = new Map(Object.entries(known).map(([name, gate]) => [name, gate.default]));
  const warnings: string[] = [];
  for (const [all, stage] of [
    ["AllAlpha", "alpha"],
    ["AllBeta", "beta"],
  ] as const) {
    const value = Object.hasOwn(wanted, all) ? wanted[all] : undefined;
    if (value === undefined) continue;
    for (const [name, gate] of Object.entries(known)) if (gate.stage === stage) state.set(name, value);
  }
  for (const [name, value] of Object.entries(wanted)) {
    const gate = Object.hasOwn(known, name) ? known[name] : undefined;
    if (gate === undefined) throw new Error(`unrecognized feature gate: ${name}`);
    if (gate.locked && value !== gate.default)
      throw new Error(`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`);
    if (gate.stage === "GA") warnings.push(`Setting GA feature gate ${name}=${value}. It will be removed in a future release.`);
    if (gate.stage === "deprecated")
      warnings.push(`Setting deprecated feature gate ${name}=${value}. It will be removed in a future release.`);
    state.set(name, value);
  }
  return {
    warnings,
    enabled(name) {
      const value = state.get(name);
      if (value === undefined) throw new Error(`no feature gate is called ${name}`);
      return value;
    },
  };
}

/** Lines of --help: alpha and beta gates, sorted. */
export function gateLines(program: string): string[] {
  return Object.entries(gatesOf(program))
    .filter(([, { stage }]) => stage === "alpha" || stage === "beta")
    .map(([name, gate]) => `${name}=true|false (${gate.stage.toUpperCase()} - default=${gate.default})`)
    .sort();
}

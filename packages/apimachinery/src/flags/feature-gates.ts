import { type GateSpec, gates, unbuiltGates } from "./gates.ts";

/** Which features are on. */
export interface FeatureGates {
  /** @throws for a name that no gate has: a bug in the caller. */
  enabled(name: string): boolean;
  /** Warnings about gates that will go, for the log at start. */
  readonly warnings: readonly string[];
}

/**
 * The node agent's documentation gives it other defaults for three gates and lacks one.
 * Source: the reference page of the kubelet in 1.23
 */
const nodeAgentDefaults: Readonly<Record<string, boolean>> = {
  CSIMigrationAWS: false,
  CPUManagerPolicyOptions: false,
  TopologyAwareHints: true,
};

/** The gates of one program by its name, `kubelet` among them. */
export function gatesOf(program: string): Readonly<Record<string, GateSpec>> {
  if (program !== "kubelet") return gates;
  const own = Object.entries(gates).filter(([name]) => name !== "ServerSideFieldValidation");
  return Object.fromEntries(own.map(([name, gate]) => [name, { ...gate, default: nodeAgentDefaults[name] ?? gate.default }]));
}

/**
 * @param wanted what --feature-gates says
 * @param unbuilt gates that cannot be turned on
 * @throws Error with upstream's text for unknown and locked gates; for gates whose feature is not built
 * Source: k8s.io/component-base featuregate/feature_gate.go
 */
export function newFeatureGates(
  program: string,
  wanted: Readonly<Record<string, boolean>>,
  unbuilt: ReadonlySet<string> = unbuiltGates,
): FeatureGates {
  const known = gatesOf(program);
  const state = new Map(Object.entries(known).map(([name, gate]) => [name, gate.default]));
  const warnings: string[] = [];
  for (const [all, stage] of [
    ["AllAlpha", "alpha"],
    ["AllBeta", "beta"],
  ] as const) {
    const value = Object.hasOwn(wanted, all) ? wanted[all] : undefined;
    if (value === undefined) continue;
    const left: string[] = [];
    for (const [name, gate] of Object.entries(known)) {
      if (gate.stage !== stage || Object.hasOwn(wanted, name)) continue;
      if (value && unbuilt.has(name) && !gate.default) left.push(name);
      else state.set(name, value);
    }
    if (left.length > 0)
      warnings.push(`${all}=true leaves these feature gates off, their features are not built: ${left.join(",")}`);
  }
  for (const [name, value] of Object.entries(wanted)) {
    const gate = Object.hasOwn(known, name) ? known[name] : undefined;
    if (gate === undefined) throw new Error(`unrecognized feature gate: ${name}`);
    if (gate.locked && value !== gate.default)
      throw new Error(`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`);
    if (value && !gate.default && unbuilt.has(name))
      throw new Error(`cannot set feature gate ${name} to true, the feature is not built`);
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

/** As --help lists them: alpha and beta gates, sorted. */
export function gateLines(program: string): string[] {
  return Object.entries(gatesOf(program))
    .filter(([, { stage }]) => stage === "alpha" || stage === "beta")
    .map(([name, gate]) => `${name}=true|false (${gate.stage.toUpperCase()} - default=${gate.default})`)
    .sort();
}

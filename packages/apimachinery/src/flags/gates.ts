import rows from "./gates.json" with { type: "json" };

/** A feature gate of 1.23. */
export interface GateSpec {
  readonly stage: "alpha" | "beta" | "GA" | "deprecated";
  readonly default: boolean;
  /** Cannot differ from its default. */
  readonly locked?: true;
}

/**
 * All gates of 1.23, in alphabetical order. A row is the stage, the default where it is not the usual one of the stage (alpha: off,
 * beta and GA: on), and whether it is locked: `beta off`, `GA locked`.
 * Source: component-base featuregate tables of v1.23.0
 */
export const gates: Readonly<Record<string, GateSpec>> = Object.fromEntries(
  Object.entries(rows).map(([name, row]) => [name, gateOf(row.split(" "))]),
);

function gateOf([stage, ...rest]: readonly string[]): GateSpec {
  const isOn = rest.includes("on") || ((stage === "beta" || stage === "GA") && !rest.includes("off"));
  // Cast: the rows above name no others.
  return { stage: stage as GateSpec["stage"], default: isOn, ...(rest.includes("locked") && { locked: true }) };
}

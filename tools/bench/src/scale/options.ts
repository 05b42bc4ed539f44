import { parseArgs } from "node:util";
import { wholeNumber } from "../daemons/options.ts";

export interface ScaleSizes {
  readonly pods: number;
  readonly nodes: number;
  readonly namespaces: number;
  readonly watchers: number;
  /** Between the creation of the pods, at the highest possible rate, and the churn. */
  readonly settleSeconds: number;
  /** Number of Pods replaced per second. */
  readonly churn: number;
  /** Number of Pods replaced at the same moment. */
  readonly atOnce: number;
  readonly seconds: number;
  readonly podBytes: number;
}

const sizes: Readonly<
  Record<string, { readonly of: keyof ScaleSizes; readonly help: string; readonly normal: number; readonly most: number }>
> = {
  pods: { of: "pods", help: "pods that are kept", normal: 150_000, most: 500_000 },
  nodes: { of: "nodes", help: "nodes, each with a lease that is renewed every 10 s", normal: 5_000, most: 5_000 },
  namespaces: { of: "namespaces", help: "namespaces of the pods", normal: 100, most: 10_000 },
  watchers: { of: "watchers", help: "watches of all pods, each on its own connection", normal: 50, most: 1_000 },
  "settle-seconds": { of: "settleSeconds", help: "between their creation and the churn", normal: 20, most: 3_600 },
  churn: { of: "churn", help: "pods that are deleted and created a second", normal: 100, most: 10_000 },
  "at-once": { of: "atOnce", help: "of these, replaced at the same moment, as by a controller", normal: 1, most: 1_000 },
  seconds: { of: "seconds", help: "of the churn", normal: 1_800, most: 100_000 },
  "pod-bytes": { of: "podBytes", help: "size of a pod in JSON", normal: 5_000, most: 100_000 },
};

/** @returns undefined for `--help` @throws Error for an unknown flag or an invalid number */
export function parseScaleOptions(argv: readonly string[]): ScaleSizes | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: "boolean", default: false },
      ...Object.fromEntries(Object.keys(sizes).map((flag) => [flag, { type: "string" as const }])),
    },
  });
  if (values.help) return undefined;
  const given = values as unknown as Readonly<Record<string, string | undefined>>; // cast: parseArgs returns strings for these options
  return Object.fromEntries(
    Object.entries(sizes).map(([flag, { of, normal, most }]) => {
      const text = given[flag];
      return [of, text === undefined ? normal : wholeNumber(`--${flag}`, text, most)];
    }),
  ) as unknown as ScaleSizes; // cast: `sizes` has a row for each field
}

export function scaleHelp(): string {
  const lines = Object.entries(sizes).map(
    ([flag, { help, normal }]) => `  ${`--${flag} <n>`.padEnd(22)}${help}; default ${normal}`,
  );
  return `usage: ./cox bench scale [flags]

Keeps many objects in our API server over its own etcd, replaces some of them all the time, and measures what users notice:
latencies, scheduling, memory, watches that end. Nodes are fake ones of the package testing, in a separate process; our scheduler
binds the new pods. Exit code 1: a limit is exceeded.

${lines.join("\n")}
`;
}

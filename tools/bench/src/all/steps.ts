import { join } from "node:path";

/** One benchmark of the whole table, in a separate process. */
export interface Step {
  /** Of its files. */
  readonly name: string;
  readonly title: string;
  /** Verb and flags of `./cox bench`. */
  readonly args: readonly string[];
  /** It is ended after that. */
  readonly mostMinutes: number;
}

const only = (...texts: string[]): string[] => texts.flatMap((text) => ["--only", text]);

/** Rows that last a minute need no round of warm-up, and one round of them says enough. */
const once = ["--rounds", "1", "--no-warm-up"];

/** The whole table: 45 minutes at most. Short rows have a round of warm-up and two that count. */
export const steps: readonly Step[] = [
  {
    name: "cluster",
    title: "Idle cluster of one node with 20 pods, 60 s",
    args: ["cluster", "--rounds", "1"],
    mostMinutes: 5,
  },
  {
    name: "node",
    title: "Kubelet",
    args: ["node", "--rounds", "1", "--pods", "40", "--idle-seconds", "60"],
    mostMinutes: 12,
  },
  {
    name: "scheduler",
    title: "Scheduler",
    args: ["scheduler", "--rounds", "1", "--nodes", "100,1000,5000", "--pods", "1000", "--preemptors", "200"],
    mostMinutes: 9,
  },
  {
    name: "controllers",
    title: "Controller manager: Deployments",
    args: ["controllers", "--rounds", "2", ...only("Deployment", "rolling")],
    mostMinutes: 5,
  },
  {
    name: "controllers-scale",
    title: "Controller manager: Jobs, namespaces, garbage, endpoints, lost nodes",
    args: [
      ...["controllers", ...once, ...only("Job", "namespace", "garbage", "Services", "lost")],
      ...["--completions", "5000", "--objects", "10000", "--dependents", "50000", "--services", "1000", "--lost-nodes", "500"],
    ],
    mostMinutes: 10,
  },
  {
    name: "services",
    title: "Services on a node",
    args: ["services", "--rounds", "1", "--services", "500", "--changes", "10", "--idle-seconds", "30"],
    mostMinutes: 4,
  },
];

interface StepFiles {
  /** Folder of the other implementation's programs. */
  readonly peer: string;
  /** Folder of the pictures. */
  readonly out: string;
  readonly isQuick: boolean;
}

/** Verb and flags of `./cox bench`. Quick runs keep the choice of rows, and have the small sizes of the benchmark. Pure. */
export function argsOf({ name, args }: Step, { peer, out, isQuick }: StepFiles): string[] {
  const [verb = "", ...flags] = args;
  const chosen = flags.flatMap((flag, index) => (flag === "--only" ? [flag, flags[index + 1] ?? ""] : []));
  const sized = isQuick ? ["--quick", ...chosen] : flags;
  return [verb, ...sized, "--json", "--peer-bin", peer, "--svg", join(out, `${name}.svg`)];
}

import { join } from "node:path";

/** One benchmark of the complete table, run in a separate process. */
export interface Step {
  /** Base name of the step's output files. */
  readonly name: string;
  readonly title: string;
  /** Verb and flags of `./cox bench`. */
  readonly args: readonly string[];
  /** Time limit in minutes, after which the step is stopped. */
  readonly mostMinutes: number;
}

const only = (...texts: string[]): string[] => texts.flatMap((text) => ["--only", text]);

/** Rows that last a minute need no warm-up round, and one measured round is enough. */
const once = ["--rounds", "1", "--no-warm-up"];

/** The complete table: 45 minutes at most. Short rows have one warm-up round and two measured rounds. */
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
  /** Folder with the peer's binaries. */
  readonly peer: string;
  /** Folder for the charts. */
  readonly out: string;
  readonly isQuick: boolean;
}

/** Verb and flags of `./cox bench`. Quick runs keep the choice of rows and use the benchmark's small sizes. Pure. */
export function argsOf({ name, args }: Step, { peer, out, isQuick }: StepFiles): string[] {
  const [verb = "", ...flags] = args;
  const chosen = flags.flatMap((flag, index) => (flag === "--only" ? [flag, flags[index + 1] ?? ""] : []));
  const sized = isQuick ? ["--quick", ...chosen] : flags;
  return [verb, ...sized, "--json", "--peer-bin", peer, "--svg", join(out, `${name}.svg`)];
}

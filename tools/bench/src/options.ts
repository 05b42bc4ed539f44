import { parseArgs } from "node:util";

/** Options of `bench api`. */
export interface BenchOptions {
  /** Number of objects in each measured list. */
  readonly pods: number;
  /** Seconds per row and server, divided into `rounds`. */
  readonly rowSeconds: number;
  readonly rounds: number;
  /** Short run that only shows that all rows work. */
  readonly isQuick: boolean;
  /** Time limit of the whole run. */
  readonly limitSeconds: number;
  /** Runs only rows whose name contains this. */
  readonly only: string;
  readonly cpuProfileFolder?: string;
  /** Enables priority and fairness on our server; start the other server alike. */
  readonly fairness: boolean;
  readonly against?: SecondServer;
}

/** A running server whose pid is known. */
export interface SecondServer {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  readonly etcdPid?: number;
  readonly caFile?: string;
}

const usage = `usage: ./cox bench api|start [--quick] [--pods <n>] [--seconds <n>] [--only <text>] [--fairness] [--cpu-prof <folder>]
       [--against <url> --token <t> --pid <p> [--etcd-pid <p>] [--ca <file>]]
       ./cox bench reasons [--rounds <n>] [--pods <n>] [--only <daemon>]
       ./cox bench codec|ports|floor
       ./cox bench all|scheduler|controllers|node|cluster|services|testing --help`;

/** Options of `bench reasons`. */
export interface ReasonsOptions {
  /** Number of pairs of measured rounds per daemon. */
  readonly rounds: number;
  readonly pods: number;
  /** Only daemons whose name contains this. */
  readonly only: string;
}

/** @throws Error for an unknown option or an invalid number */
export function parseReasonsOptions(argv: readonly string[]): ReasonsOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: "string", default: "200" },
      pods: { type: "string", default: "1000" },
      only: { type: "string", default: "" },
    },
  });
  if (positionals.length !== 1) throw new Error(usage);
  return {
    rounds: wholeNumber("--rounds", values.rounds, 2, 10_000),
    pods: wholeNumber("--pods", values.pods, 10, 5_000),
    only: values.only,
  };
}

/** @throws Error for an unknown option, an invalid number, or a server on another machine */
export function parseOptions(argv: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      pods: { type: "string" },
      seconds: { type: "string" },
      only: { type: "string", default: "" },
      "cpu-prof": { type: "string" },
      fairness: { type: "boolean", default: false },
      against: { type: "string" },
      token: { type: "string" },
      pid: { type: "string" },
      "etcd-pid": { type: "string" },
      ca: { type: "string" },
    },
  });
  if (positionals.length !== 1 || !(positionals[0] === "api" || positionals[0] === "start")) throw new Error(usage);
  const { quick } = values;
  return {
    pods: wholeNumber("--pods", values.pods ?? (quick ? "1000" : "5000"), 100, 20_000),
    rowSeconds: values.seconds === undefined ? (quick ? 0.8 : 8) : wholeNumber("--seconds", values.seconds, 1, 60),
    rounds: quick ? 1 : 4,
    isQuick: quick,
    limitSeconds: quick ? 120 : 1200,
    only: values.only,
    fairness: values.fairness,
    ...(values["cpu-prof"] !== undefined && { cpuProfileFolder: values["cpu-prof"] }),
    ...(values.against !== undefined && {
      against: {
        url: loopback(values.against),
        token: required("--token", values.token),
        pid: wholeNumber("--pid", required("--pid", values.pid), 1, 2 ** 31),
        ...(values["etcd-pid"] !== undefined && { etcdPid: wholeNumber("--etcd-pid", values["etcd-pid"], 1, 2 ** 31) }),
        ...(values.ca !== undefined && { caFile: values.ca }),
      },
    }),
  };
}

/** Only servers on this machine may be put under load. */
function loopback(text: string): string {
  const url = new URL(text);
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" || !isLocal) throw new Error(`--against takes https on a loopback address, not ${text}`);
  return url.origin;
}

function required(flag: string, value: string | undefined): string {
  if (value === undefined || value === "") throw new Error(`--against needs ${flag}`);
  return value;
}

function wholeNumber(flag: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new Error(`${flag} must be a whole number from ${min} to ${max}, not ${text}`);
  return value;
}

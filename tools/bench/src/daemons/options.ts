import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";

/** Options that the benchmarks of daemons share. */
export interface DaemonBenchOptions {
  readonly peerBin?: string;
  readonly rounds: number;
  readonly isQuick: boolean;
  /** Runs only rows whose name contains one of these; empty: all rows. */
  readonly only: readonly string[];
  /** Whether the first round is a warm-up that is not counted. */
  readonly warmsUp: boolean;
  readonly isJson: boolean;
  readonly svgFile?: string;
  readonly cpuProfileFolder?: string;
  readonly nodeFlags: readonly string[];
  /** Sizes by name of their flag. */
  readonly sizes: Readonly<Record<string, readonly number[]>>;
  readonly isHelp: boolean;
}

/** A flag that sets the size of a row. */
interface SizeFlag {
  readonly help: string;
  readonly normal: readonly number[];
  readonly quick: readonly number[];
  readonly most: number;
}
export type SizeFlags = Readonly<Record<string, SizeFlag>>;

/** @throws Error for an unknown option or an invalid number */
export function parseDaemonOptions(argv: readonly string[], sizeFlags: SizeFlags): DaemonBenchOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string", multiple: true, default: [] },
      "no-warm-up": { type: "boolean", default: false },
      svg: { type: "string" },
      "peer-bin": { type: "string" },
      "cpu-prof": { type: "string" },
      "node-flag": { type: "string", multiple: true, default: [] },
      ...Object.fromEntries(Object.keys(sizeFlags).map((flag) => [flag, { type: "string" as const }])),
    },
  });
  const text = values as unknown as Readonly<Record<string, string | undefined>>; // cast: parseArgs returns strings for these options
  const { quick } = values;
  return {
    rounds: values.rounds === undefined ? (quick ? 1 : 3) : wholeNumber("--rounds", values.rounds, 20),
    isQuick: quick,
    isHelp: values.help,
    isJson: values.json,
    only: values.only,
    warmsUp: !quick && !values["no-warm-up"],
    nodeFlags: values["node-flag"],
    sizes: Object.fromEntries(
      Object.entries(sizeFlags).map(([flag, { normal, quick: short, most }]) => {
        const given = text[flag]?.split(",").map((one) => wholeNumber(`--${flag}`, one, most));
        return [flag, given ?? (quick ? short : normal)];
      }),
    ),
    ...(values.svg !== undefined && { svgFile: values.svg }),
    ...(values["peer-bin"] !== undefined && { peerBin: values["peer-bin"] }),
    ...(values["cpu-prof"] !== undefined && { cpuProfileFolder: values["cpu-prof"] }),
  };
}

/** @throws an error with the usage when the text is not a whole number from 1 to `most` */
export function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 1 && value <= most)) throw new Error(`usage: ${flag} must be a whole number from 1 to ${most}, not ${text}`);
  return value;
}

/** Whether the options select a row. */
export const isChosen = ({ only }: DaemonBenchOptions, name: string): boolean =>
  only.length === 0 || only.some((text) => name.includes(text));

/** The size given by a flag that takes one value. */
export function sizeOf({ sizes }: DaemonBenchOptions, flag: string): number {
  const [size, ...more] = sizes[flag] ?? [];
  if (size === undefined || more.length > 0) throw new Error(`--${flag} takes one number`);
  return size;
}

/** The text of `--help`. @param warmsUp whether the first round is a warm-up that is not counted */
export function helpOf(verb: string, about: string, sizeFlags: SizeFlags, warmsUp = true): string {
  const rows: (readonly [string, string])[] = [
    ["--peer-bin <folder>", "programs of another implementation, measured in alternating rounds"],
    ["--rounds <n>", `rounds of each row${warmsUp ? ", after one of warm-up" : ""}; default 3 (the median is shown)`],
    ["--only <text>", "only rows whose name contains this; may be repeated"],
    ...(warmsUp ? [["--no-warm-up", "counts the first round too: for rows that are long"] as const] : []),
    ["--quick", "small sizes and one round: shows that all rows work"],
    ["--json", "prints the rows as JSON"],
    ["--svg <file>", "writes a picture of the ratios"],
    ["--cpu-prof <folder>", "writes a CPU profile of ours"],
    ["--node-flag <flag>", "a flag of Node for ours, such as --max-semi-space-size=4; may be repeated"],
    ...Object.entries(sizeFlags).map(
      ([flag, { help, normal }]) => [`--${flag} <n>`, `${help}; default ${normal.join(",")}`] as const,
    ),
  ];
  const width = Math.max(...rows.map(([flag]) => flag.length)) + 2;
  const lines = rows.map(([flag, help]) => `  ${flag.padEnd(width)}${help}`);
  return `usage: ./cox bench ${verb} [flags]\n\n${about}\n\n${lines.join("\n")}\n`;
}

/** One line that describes the machine, to be kept with the figures. */
export function machineLine(load: number): string {
  return `${availableParallelism()} cores, load ${load.toFixed(1)} at the start`;
}

import { Command, CommanderError, Option } from "commander";
import { messageOf } from "../objects/errors/message.ts";
import type { Flag } from "./types.ts";

// biome-ignore lint/suspicious/noExplicitAny: a table holds flags of every type; each keeps its own in FlagValues.
export type FlagTable = Readonly<Record<string, Flag<any>>>;

/** Values by flag name; durations in milliseconds. */
export type FlagValues<T extends FlagTable> = { readonly [Name in keyof T]: T[Name] extends Flag<infer Value> ? Value : never };

/** A group of flags in --help. */
interface Section<T extends FlagTable> {
  readonly title: string;
  readonly flags: T;
}

/** A section whose flags keep their names and types, for `FlagValues`. @param title heading in --help */
export const section = <const T extends FlagTable>(title: string, flags: T): Section<T> => ({ title, flags });

type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer All) => void ? All : never;
type TableOf<S extends readonly Section<FlagTable>[]> = Intersection<S[number]["flags"]> & FlagTable;

/** All flags of one program. */
export interface ProgramFlags<T extends FlagTable = FlagTable> {
  readonly sections: readonly Section<FlagTable>[];
  readonly table: T;
}

/** The command line of a daemon. */
export interface Program<T extends FlagTable = FlagTable> {
  /** `kube-apiserver` */
  readonly name: string;
  readonly description: string;
  /** --help shows one list without sections. */
  readonly unsectioned?: boolean;
  readonly flags: ProgramFlags<T>;
}

/** Combines sections into a program's table. @throws Error when two sections declare the same flag */
export function flags<const S extends readonly Section<FlagTable>[]>(...sections: S): ProgramFlags<TableOf<S>> {
  const table: Record<string, Flag<unknown>> = {};
  for (const { title, flags: own } of sections) {
    for (const [name, flag] of Object.entries(own)) {
      if (table[name] !== undefined) throw new Error(`flag --${name} is declared twice, again in ${title}`);
      table[name] = flag;
    }
  }
  return { sections, table: table as TableOf<S> }; // cast: the loop above has added the flags of all sections
}

/** An invalid command line; the message is printed after `Error: `. */
export class FlagError extends Error {}

export interface ParsedFlags<T extends FlagTable> {
  readonly values: FlagValues<T>;
  /** Flags given on the command line. */
  readonly set: ReadonlySet<string>;
  /** --help or -h was given. */
  readonly help: boolean;
  /** Value of --version: `true`, `false` or `raw`; undefined when not given. */
  readonly version: string | undefined;
}

/**
 * Parses a command line by pflag's rules: `--flag=value` or `--flag value`, booleans only with `=`, `_` equals `-`, shorthands
 * `-v 4`, `-v=4` and `-v4`.
 * @param argv without the interpreter and the script
 * @throws FlagError for unknown flags, invalid values and positional arguments
 */
export function parseFlags<T extends FlagTable>({ table }: ProgramFlags<T>, argv: readonly string[]): ParsedFlags<T> {
  const values = new Map<string, unknown>();
  let help = false;
  let version: string | undefined;
  const command = new Command()
    .helpOption(false)
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .argument("[arguments...]");
  const add = (name: string, use: (text: string) => void): void => {
    command.addOption(new Option(`--${name} <value>`).argParser((text: string) => use(text)));
  };
  const words = normalize(table, argv);
  // Options that are not on the command line would cost most of the time.
  for (const name of new Set(words.map(flagOf))) {
    const flag = Object.hasOwn(table, name) ? table[name] : undefined;
    if (flag !== undefined) add(name, (text) => values.set(name, read(name, flag, text, values.get(name))));
  }
  add("help", (text) => {
    help = text !== "false";
  });
  add("version", (text) => {
    version = text;
  });
  try {
    command.parse(words, { from: "user" });
  } catch (err) {
    throw err instanceof CommanderError ? new FlagError(refusalOf(err)) : err;
  }
  const [argument] = command.args;
  if (argument !== undefined && !help) throw new FlagError(`unknown command ${JSON.stringify(argument)}`);
  const defaults = Object.entries(table).map(([name, flag]): [string, unknown] => [
    name,
    values.has(name) ? values.get(name) : flag.default,
  ]);
  // Cast: each value was read by its flag, or is the default of the flag.
  return { values: Object.fromEntries(defaults) as FlagValues<T>, set: new Set(values.keys()), help, version };
}

function read(name: string, flag: Flag<unknown>, text: string, before: unknown): unknown {
  let value: unknown;
  try {
    value = flag.parse(text, before);
  } catch (err) {
    const shown = flag.shorthand === undefined ? `--${name}` : `-${flag.shorthand}, --${name}`;
    throw new FlagError(`invalid argument ${JSON.stringify(text)} for ${JSON.stringify(shown)} flag: ${messageOf(err)}`);
  }
  const problem = flag.check?.(value);
  if (problem !== undefined) throw new FlagError(`invalid argument ${JSON.stringify(text)} for "--${name}" flag: ${problem}`);
  return value;
}

/** Normalizes pflag's forms to `--flag=value`, which commander parses in the same way. */
function normalize(table: FlagTable, argv: readonly string[]): string[] {
  const byShorthand = new Map(
    Object.entries(table).flatMap(([name, flag]) => (flag.shorthand === undefined ? [] : [[flag.shorthand, name]])),
  );
  const normalized: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (word === "--") return [...normalized, ...argv.slice(i)];
    const long = /^--([^=]+)(=[\s\S]*)?$/.exec(word);
    const short = /^-([^-])(?:=?([\s\S]+))?$/u.exec(word);
    if (/^--(?:[-=])/.test(word)) throw new FlagError(`bad flag syntax: ${word}`);
    if (long === null && short === null) {
      normalized.push(word);
      continue;
    }
    const typed = long?.[1] ?? (short?.[1] === "h" ? "help" : byShorthand.get(short?.[1] ?? ""));
    if (typed === undefined) throw new FlagError(`unknown shorthand flag: '${short?.[1]}' in ${word}`);
    const name = typed.replaceAll("_", "-");
    const implied =
      name === "help" || name === "version" ? "true" : Object.hasOwn(table, name) ? table[name]?.impliedText : undefined;
    const value = long === null ? short?.[2] : long[2]?.slice(1);
    if (value !== undefined) normalized.push(`--${name}=${value}`);
    else if (implied !== undefined) normalized.push(`--${name}=${implied}`);
    else if (!Object.hasOwn(table, name)) throw new FlagError(`unknown flag: --${typed}`);
    else if (i + 1 >= argv.length)
      throw new FlagError(`flag needs an argument: ${long === null ? `'${short?.[1]}' in ${word}` : `--${name}`}`);
    else normalized.push(`--${name}=${argv[++i]}`);
  }
  return normalized;
}

/** The flag's name in `--flag=value`, the form that `normalize` produces; empty for other words. */
const flagOf = (word: string): string => /^--([^=]+)=/.exec(word)?.[1] ?? "";

function refusalOf(err: CommanderError): string {
  const unknown = /unknown option '(--?[^'=]+)/.exec(err.message)?.[1];
  return unknown === undefined ? err.message.replace(/^error: /, "") : `unknown flag: ${unknown}`;
}

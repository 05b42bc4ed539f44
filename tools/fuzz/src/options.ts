import { parseArgs } from "node:util";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

export const usage = `Usage: node -C cox-source tools/fuzz/src/main.ts [target…] [flags]

Fuzzes decoders and parsers with mutated inputs, and keeps the inputs that reach new code.
A target is named as in codec/json; codec names all of its module; without any, all are tried.

  --seconds N   CPU time for each target (10)
  --seed S      decides which inputs are made (1)
  --blind       without coverage: many more inputs, none of them led anywhere
  --save        keep what runs something new in tools/fuzz/corpus
  --input FILE  try the one target with this input only
  --list        the targets
  --help        this text

Exit code 1 when a fault was found: its input stands in .cox/fuzz.`;

export class UsageError extends Error {}

export interface Options {
  readonly targets: readonly string[];
  readonly seconds: number;
  readonly seed: number;
  readonly blind: boolean;
  readonly save: boolean;
  readonly list: boolean;
  readonly help: boolean;
  readonly input?: string;
}

/** @throws UsageError */
export function optionsOf(argv: readonly string[]): Options {
  const { values, positionals } = parse(argv);
  const { input } = values;
  if (values.blind && values.save) throw new UsageError("--save needs coverage, which --blind leaves out");
  if (input !== undefined && positionals.length !== 1) throw new UsageError("--input needs one target");
  return {
    targets: positionals,
    seconds: numberOf("seconds", values.seconds, 1, 1_000_000),
    seed: numberOf("seed", values.seed, 0, 2 ** 31),
    blind: values.blind,
    save: values.save,
    list: values.list,
    help: values.help,
    ...(input !== undefined && { input }),
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        seconds: { type: "string", default: "10" },
        seed: { type: "string", default: "1" },
        blind: { type: "boolean", default: false },
        save: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        input: { type: "string" },
      },
    });
  } catch (err) {
    throw new UsageError(messageOf(err));
  }
}

function numberOf(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least || value > most)
    throw new UsageError(`--${flag} has to be a whole number of at least ${least}, not ${JSON.stringify(text)}`);
  return value;
}

/** @throws UsageError for a name that is neither a target nor a module */
export function chosenTargets(wanted: readonly string[], all: readonly string[]): string[] {
  const unknown = wanted.find((name) => !all.some((target) => isNamed(target, name)));
  if (unknown !== undefined) throw new UsageError(`there is no target ${unknown}; --list shows them`);
  return wanted.length === 0 ? [...all] : all.filter((target) => wanted.some((name) => isNamed(target, name)));
}

const isNamed = (target: string, name: string): boolean => target === name || target.startsWith(`${name}/`);

import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";

/** A decoder or parser, and what it is tried with. */
export interface Target {
  /** Within its module: `json` of `codec`. */
  readonly name: string;
  /** Decodes, and asserts what has to hold of the answer. */
  run(input: Buffer): void | Promise<void>;
  /** What it is made for, with each of its forms. */
  readonly seeds: readonly (string | Buffer)[];
  /** Words that mean something to it. */
  readonly dictionary?: readonly (string | Buffer)[];
  /** The classes of the errors that it is said to throw, exactly these. Without it: answers of 4xx. */
  readonly declares?: readonly ErrorClass[];
  /** 1024 unless given. */
  readonly maxBytes?: number;
}

type ErrorClass = abstract new (...args: never[]) => Error;

/** Whether an input was refused as the target says that it refuses. */
export function isDeclared(err: unknown, { declares = [] }: Pick<Target, "declares">): boolean {
  if (!(err instanceof Error)) return false;
  if (err instanceof StatusError && err.code >= 400 && err.code < 500) return true;
  return declares.some((declared) => err.constructor === declared);
}

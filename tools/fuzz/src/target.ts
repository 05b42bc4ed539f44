import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";

/** A decoder or parser with its fuzzing inputs. */
export interface Target {
  /** Name within its module: `json` of `codec`. */
  readonly name: string;
  /** Decodes the input and asserts properties of the result. */
  run(input: Buffer): void | Promise<void>;
  /** Valid inputs, one for each form that the decoder accepts. */
  readonly seeds: readonly (string | Buffer)[];
  /** Tokens with a meaning for the decoder, to be inserted by mutations. */
  readonly dictionary?: readonly (string | Buffer)[];
  /** Exact classes of the errors that it documents, besides StatusErrors with a 4xx code. */
  readonly declares?: readonly ErrorClass[];
  /** Default 1024. */
  readonly maxBytes?: number;
}

type ErrorClass = abstract new (...args: never[]) => Error;

/** True when an error is one that the target declares for invalid input. */
export function isDeclared(err: unknown, { declares = [] }: Pick<Target, "declares">): boolean {
  if (!(err instanceof Error)) return false;
  if (err instanceof StatusError && err.code >= 400 && err.code < 500) return true;
  return declares.some((declared) => err.constructor === declared);
}

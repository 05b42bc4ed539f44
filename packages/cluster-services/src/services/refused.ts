import { ProgramError } from "../host/run-program.ts";

/**
 * Pure: returns whether iptables has refused its input. A missing program, a timeout, and a lock that another program holds say
 * nothing about the rules.
 */
export const isRefusal = (err: unknown): err is ProgramError =>
  err instanceof ProgramError && err.exitCode !== undefined && !/xtables lock/i.test(err.message);

/**
 * Finds the refused ones among many changes by bisection, and applies the others. Each change takes part in at most
 * 2·log2(number of changes) attempts.
 * @param changes those that were refused together
 * @param refusal the reason
 * @param attempt makes the changes and returns undefined, or makes none of them and returns why they were refused
 * @returns the reason by refused change
 */
export async function findRefused<T>(
  changes: readonly T[],
  refusal: Error,
  attempt: (changes: readonly T[]) => Promise<Error | undefined>,
): Promise<Map<T, Error>> {
  if (changes.length <= 1) return new Map(changes.map((change) => [change, refusal]));
  const middle = changes.length >> 1;
  const refused = new Map<T, Error>();
  for (const half of [changes.slice(0, middle), changes.slice(middle)]) {
    const reason = await attempt(half);
    if (reason === undefined) continue;
    for (const [change, why] of await findRefused(half, reason, attempt)) refused.set(change, why);
  }
  return refused;
}

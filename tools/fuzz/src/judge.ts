import { isDeclared, type Target } from "./target.ts";

export interface Fault {
  /** `TypeError at packages/…/lexer.ts`, or `slow`. Inputs with the same signature are assumed to have the same cause. */
  readonly signature: string;
  readonly text: string;
}

/** CPU time limit of one input, in ms. */
const maxCpuMs = 100;

/** Runs a target with an input. @returns the fault, or undefined */
export async function judge(target: Target, input: Buffer): Promise<Fault | undefined> {
  const start = performance.now();
  const fault = await failure(target, input);
  if (fault !== undefined || performance.now() - start < maxCpuMs) return fault;
  // The first run includes compilation and other load of the machine; an input counts as slow only when it is slow each time.
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && least > maxCpuMs; round++) least = Math.min(least, await cpuMs(target, input));
  return least > maxCpuMs ? { signature: "slow", text: `takes ${Math.round(least)} ms of CPU` } : undefined;
}

async function cpuMs(target: Target, input: Buffer): Promise<number> {
  const before = process.threadCpuUsage();
  await failure(target, input);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

async function failure(target: Target, input: Buffer): Promise<Fault | undefined> {
  try {
    const answer = target.run(input);
    if (answer !== undefined) await answer;
    return undefined;
  } catch (err) {
    return isDeclared(err, target) ? undefined : faultOf(err);
  }
}

/** Faults with the same signature (error name and first stack frame in this repository) count as one. */
export function faultOf(err: unknown): Fault {
  if (!(err instanceof Error)) return { signature: "no error", text: `throws ${String(err)}` };
  const stack = err.stack ?? String(err);
  const frame = /\(?(?:file:\/\/)?[^\s(]*\/((?:packages|tools\/fuzz)\/\S+?\.ts:\d+)/.exec(stack)?.[1] ?? "";
  return { signature: `${err.name} at ${frame}`, text: stack.split("\n").slice(0, 12).join("\n") };
}

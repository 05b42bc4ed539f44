/** Commands as tables of steps: dry run, execution, retry and reset all use the same rows. */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "./failure.ts";

/** A step of a command. All its functions get the command's context. */
export interface Step<C> {
  /** Name for `--skip-phases` and messages; that of kubeadm's phase if there is one. */
  readonly name: string;
  /** A line for each thing that the step would change; empty when there is nothing to do. Read-only. */
  missing(context: C): readonly string[] | Promise<readonly string[]>;
  /** Called when something is missing, also after an earlier attempt that failed midway. */
  run(context: C): void | Promise<void>;
}

/** Something that a command leaves on a machine, and its removal. */
export interface Remains<C> {
  readonly name: string;
  /** A line for each thing to remove; empty when there is nothing. Read-only. */
  present(context: C): readonly string[] | Promise<readonly string[]>;
  /** Removes all of it; anything already removed is no error. */
  remove(context: C): void | Promise<void>;
}

interface RunOptions {
  readonly dryRun: boolean;
  /** Names of steps that are left out. */
  readonly skip?: readonly string[];
  readonly print: (line: string) => void;
}

/**
 * Runs the steps that have something to do, in order, and prints what each does. Unknown names in `skip` are ignored: kubeadm
 * has phases that are not steps here.
 * @throws the error of the step that failed
 */
export async function runSteps<C>(
  steps: readonly Step<C>[],
  context: C,
  { dryRun, skip = [], print }: RunOptions,
): Promise<void> {
  for (const step of steps) {
    if (skip.includes(step.name)) {
      print(`[${step.name}] skipped`);
      continue;
    }
    const lines = await step.missing(context);
    if (lines.length === 0) print(`[${step.name}] nothing to do`);
    for (const line of lines) print(`[${step.name}] ${dryRun ? "would " : ""}${line}`);
    if (!dryRun && lines.length > 0) await named(step.name, () => step.run(context));
  }
}

/** Removes all of them. A failure does not stop the removal of the others; all errors are reported at the end. */
export async function removeAll<C>(
  rows: readonly Remains<C>[],
  context: C,
  { dryRun, skip = [], print }: RunOptions,
): Promise<void> {
  const failures: string[] = [];
  for (const row of rows) {
    if (skip.includes(row.name)) continue;
    const lines = await row.present(context);
    for (const line of lines) print(`[${row.name}] ${dryRun ? "would " : ""}${line}`);
    if (dryRun || lines.length === 0) continue;
    await named(row.name, () => row.remove(context)).catch((err: Error) => failures.push(err.message));
  }
  if (failures.length > 0) throw new Failure(failures);
}

async function named(name: string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run();
  } catch (err) {
    throw new Failure(
      messageOf(err)
        .split("\n")
        .map((line) => `${name}: ${line}`),
    );
  }
}

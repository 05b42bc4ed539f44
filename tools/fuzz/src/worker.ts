/** The thread in which targets run, so that the parent thread survives a crash or hang and can report the input. */
import { parentPort, workerData } from "node:worker_threads";
import { Coverage } from "./coverage.ts";
import { fuzz, type Limits } from "./fuzzer.ts";
import { type Fault, judge } from "./judge.ts";
import { targetOf } from "./targets.ts";

export interface WorkerData {
  /** The number of started inputs, then the length and the bytes of the last one. */
  readonly shared: SharedArrayBuffer;
  readonly withCoverage: boolean;
}

export type Task =
  | { readonly name: string; readonly limits: Limits }
  /** Runs a single input. */
  | { readonly name: string; readonly input: Uint8Array };

export type Message =
  | { readonly type: "find"; readonly target: string; readonly input: Uint8Array; readonly fault: Fault }
  | { readonly type: "done"; readonly inputs: number; readonly corpus: readonly Uint8Array[]; readonly characters: number };

const { shared, withCoverage } = workerData as WorkerData; // cast: fuzzer.ts passes it
const counters = new Int32Array(shared, 0, 2);
const bytes = new Uint8Array(shared, 8);
const coverage = withCoverage ? new Coverage() : undefined;

function begins(input: Uint8Array): void {
  const length = Math.min(input.length, bytes.length);
  bytes.set(input.subarray(0, length));
  counters[1] = length;
  Atomics.add(counters, 0, 1);
}

const say = (message: Message): void => parentPort?.postMessage(message);

async function work(task: Task): Promise<void> {
  const target = await targetOf(task.name);
  if ("input" in task) {
    begins(task.input);
    const fault = await judge(target, Buffer.from(task.input));
    if (fault !== undefined) say({ type: "find", target: task.name, input: task.input, fault });
    return say({ type: "done", inputs: 1, corpus: [], characters: 0 });
  }
  const outcome = await fuzz(
    task.name,
    target,
    task.limits,
    { begins, finds: (find) => say({ type: "find", ...find }) },
    coverage,
  );
  say({ type: "done", ...outcome });
}

// The port also keeps the thread alive while it waits for a promise that never settles.
parentPort?.on("message", (task: Task) => void work(task));

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { close, url as inspectorUrl, open } from "node:inspector";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type RanFunction, root } from "./coverage.ts";

/** A function whose entries are recorded; lines and columns count from 0. */
interface TracedFunction {
  readonly scriptId: string;
  readonly from: Place;
  readonly to: Place;
}

/** Input of the worker. */
export interface TraceOrder {
  /** The inspector of the thread to debug. */
  readonly url: string;
  readonly functions: readonly TracedFunction[];
}

interface Place {
  readonly line: number;
  readonly column: number;
}

/** The stages of a request: modules that the server's background work does not use. */
const stages = /^packages\/apiserver\/src\/(handlers|admission|registry)\//;

/**
 * Runs `request` and records the order in which it enters those functions that belong to stages.
 * @returns the file of each entry, in order
 */
export async function traceOrder(functions: readonly RanFunction[], request: () => Promise<void>): Promise<string[]> {
  const ofStages = functions.filter(({ file }) => stages.test(file));
  const traced = ofStages.map(({ file, scriptId, start, end }): TracedFunction => {
    const source = readFileSync(join(root, file), "utf8");
    return { scriptId, from: placeOf(source, start), to: placeOf(source, end) };
  });
  open(0, "127.0.0.1");
  const workerData: TraceOrder = { url: inspectorUrl()!, functions: traced };
  const worker = new Worker(new URL("./trace-worker.ts", import.meta.url), { workerData });
  await once(worker, "message");
  await request();
  worker.postMessage("done");
  // Both listeners are added now, because both events can arrive in the same turn.
  const [[entered]] = (await Promise.all([once(worker, "message"), once(worker, "exit")])) as [[number[]], unknown]; // cast: trace-worker.ts posts one message
  close();
  return entered.map((index) => ofStages[index]!.file);
}

function placeOf(source: string, offset: number): Place {
  const before = source.slice(0, offset);
  return { line: before.split("\n").length - 1, column: offset - before.lastIndexOf("\n") - 1 };
}

/** Number of entries into files that were left before. */
export function returnsIn(order: readonly string[]): number {
  const moves = order.filter((file, at) => file !== order[at - 1]);
  return moves.length - new Set(moves).size;
}

import { Session } from "node:inspector/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The repository. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

/** A function of the product that ran, and how often. */
export interface RanFunction {
  /** Relative to the repository: `packages/apiserver/src/handlers/create.ts`. */
  readonly file: string;
  /** Empty for functions without a name. */
  readonly name: string;
  /** Offsets of its start and end in the source text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly count: number;
  /** V8's number of the script, for break points. */
  readonly scriptId: string;
}

/** Sources of the packages, except code that only tests use. */
const product = /\/(packages\/[^/]+\/src\/(?!testing\/).+\.ts)$/;

function productFile(url: string): string | undefined {
  return url.startsWith("file:") ? product.exec(fileURLToPath(url))?.[1] : undefined;
}

export const idOf = ({ file, start, end }: RanFunction): string => `${file}:${start}-${end}`;

const pollMs = 20;

/** Counts the functions that run in this process. Only one instance at a time, because V8's counters are per process. */
export class Coverage {
  readonly #session = new Session();

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  /** The functions of the product that ran since the last call. */
  async #take(): Promise<RanFunction[]> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    return result.flatMap(({ url, scriptId, functions }) => {
      const file = productFile(url);
      if (file === undefined) return [];
      return functions.flatMap(({ functionName: name, ranges: [range] }) =>
        range === undefined || range.count === 0
          ? []
          : [{ file, name, start: range.startOffset, end: range.endOffset, count: range.count, scriptId }],
      );
    });
  }

  /**
   * The functions that run during `request` and its asynchronous consequences, such as the watch event of the object's own write:
   * ends when no further function has run for a while.
   */
  async of(request: () => Promise<void>): Promise<Map<string, RanFunction>> {
    await this.#take();
    await request();
    const all = new Map<string, RanFunction>();
    for (let idlePolls = 0; idlePolls < 2; await sleep(pollMs)) {
      const known = all.size;
      for (const one of await this.#take()) {
        const id = idOf(one);
        all.set(id, { ...one, count: one.count + (all.get(id)?.count ?? 0) });
      }
      idlePolls = all.size === known ? idlePolls + 1 : 0;
    }
    return all;
  }
}

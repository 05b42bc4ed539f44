import { startTestServer } from "@coxswain/apiserver/testing/start-test-server";
import { Coverage, idOf, type RanFunction } from "./coverage.ts";
import { figuresOf } from "./figures.ts";
import type { Limit } from "./limits.ts";
import { openWatch, prepare, type Request, requestsOf } from "./requests.ts";
import { returnsIn, traceOrder } from "./trace.ts";

/** Figures of one warmed request. */
interface Path {
  readonly functions: readonly RanFunction[];
  /** Number of entries into files that the stages have left before; undefined when it was not measured. */
  readonly returns?: number;
}

/** Number of requests before a measurement, to fill caches and pass code paths that only first requests take. */
const warmingRequests = 10;
/** A function counts only when it runs in each of this many requests: timers and informers of the server run during some of them. */
const repeats = 12;
/** Of a request that ran more files than its limit: on a busy machine it may yield to the event loop each of the first times. */
const mostRepeats = 60;
/** Limit of traced requests: the server's own writes and lists usually run during one of three. */
const mostTracedRequests = 20;

/**
 * @param limitOf given: repeats a request until its figures are within the limit, up to a bound, and also traces the order of calls of the
 *   first two requests, which takes seconds
 */
export async function measureAll(limitOf?: (name: string) => Limit | undefined): Promise<Map<string, Path>> {
  const server = await startTestServer(undefined);
  const coverage = new Coverage();
  const paths = new Map<string, Path>();
  try {
    await prepare(server);
    const requests = Object.entries(requestsOf(server));
    await coverage.start();
    for (const [name, request] of requests) {
      paths.set(name, { functions: await inEach(coverage, request, limitOf?.(name)?.files) });
    }
    const first = requests[0]![1];
    paths.set("one more watcher", { functions: await ofOneMoreWatcher(coverage, first, () => openWatch(server)) });
    await coverage.stop();
    if (limitOf === undefined) return paths;
    for (const [name, request] of requests.slice(0, 2)) {
      const { functions } = paths.get(name)!;
      paths.set(name, { functions, returns: await fewestReturns(functions, request, limitOf(name)?.returns ?? 0) });
    }
    return paths;
  } finally {
    await server.stop();
  }
}

/**
 * The minimum over several requests, because informers and other internal clients of the server run the same stages.
 * @param enough stops at the first request with at most this many
 */
async function fewestReturns(functions: readonly RanFunction[], request: Request, enough: number): Promise<number> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let count = 0; count < mostTracedRequests && fewest > enough; count++) {
    fewest = Math.min(fewest, returnsIn(await traceOrder(functions, request)));
  }
  return fewest;
}

/** The functions that run in every one of several requests. */
async function inEach(coverage: Coverage, request: Request, mostFiles = Number.POSITIVE_INFINITY): Promise<RanFunction[]> {
  for (let count = 0; count < warmingRequests; count++) await request();
  const runs = await runsOf(coverage, request);
  while (runs.length < mostRepeats && figuresOf(inAll(runs)).files > mostFiles) runs.push(await coverage.of(request));
  return inAll(runs);
}

async function runsOf(coverage: Coverage, request: Request): Promise<Map<string, RanFunction>[]> {
  const runs: Map<string, RanFunction>[] = [];
  for (let count = 0; count < repeats; count++) runs.push(await coverage.of(request));
  return runs;
}

/** Functions of all runs, with the lowest count. */
function inAll(runs: readonly Map<string, RanFunction>[]): RanFunction[] {
  const [first = new Map<string, RanFunction>(), ...others] = runs;
  return [...first].flatMap(([id, one]) => {
    const counts = others.map((run) => run.get(id)?.count ?? 0);
    const count = Math.min(one.count, ...counts);
    return count === 0 ? [] : [{ ...one, count }];
  });
}

/** The functions that run, or run more often, because of a second watcher of the same objects. */
async function ofOneMoreWatcher(
  coverage: Coverage,
  write: Request,
  open: () => Promise<{ close(): void }>,
): Promise<RanFunction[]> {
  const one = await open();
  await inEach(coverage, write);
  const before = await runsOf(coverage, write);
  const other = await open();
  await inEach(coverage, write);
  const after = inAll(await runsOf(coverage, write));
  one.close();
  other.close();
  const mostBefore = (id: string): number => Math.max(...before.map((run) => run.get(id)?.count ?? 0));
  return after.filter((ran) => ran.count > mostBefore(idOf(ran)));
}

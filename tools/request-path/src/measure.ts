import { startTestServer } from "@coxswain/apiserver/testing/start-test-server";
import { Coverage, idOf, type RanFunction } from "./coverage.ts";
import { openWatch, prepare, type Request, requestsOf } from "./requests.ts";
import { returnsIn, traceOrder } from "./trace.ts";

/** What one warmed request runs. */
interface Path {
  readonly functions: readonly RanFunction[];
  /** How often the stages enter a file again that they have left; undefined when it was not requested. */
  readonly returns?: number;
}

/** Requests before a measurement: caches are filled, rare paths of the first requests are over. */
const warmingRequests = 10;
/** A function counts when it runs in each of so many requests; timers of the server, and its informers on a busy machine, run in some only. */
const repeats = 12;
/** Writes and lists of the server itself run in between: as a rule in one of three requests. */
const mostTracedRequests = 20;

/** @param enoughReturns of a request: records the order of the calls of the first two requests too, which takes some seconds */
export async function measureAll(enoughReturns?: (name: string) => number): Promise<Map<string, Path>> {
  const server = await startTestServer(undefined);
  const coverage = new Coverage();
  const paths = new Map<string, Path>();
  try {
    await prepare(server);
    const requests = Object.entries(requestsOf(server));
    await coverage.start();
    for (const [name, request] of requests) paths.set(name, { functions: await inEach(coverage, request) });
    const first = requests[0]?.[1] as Request;
    paths.set("one more watcher", { functions: await ofOneMoreWatcher(coverage, first, () => openWatch(server)) });
    await coverage.stop();
    if (enoughReturns === undefined) return paths;
    for (const [name, request] of requests.slice(0, 2)) {
      const { functions } = paths.get(name) as Path;
      paths.set(name, { functions, returns: await fewestReturns(functions, request, enoughReturns(name)) });
    }
    return paths;
  } finally {
    await server.stop();
  }
}

/**
 * The fewest of some requests: informers and other clients of the server's own run the stages in between.
 * @param enough requests end with one of at most so many
 */
async function fewestReturns(functions: readonly RanFunction[], request: Request, enough: number): Promise<number> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let count = 0; count < mostTracedRequests && fewest > enough; count++) {
    fewest = Math.min(fewest, returnsIn(await traceOrder(functions, request)));
  }
  return fewest;
}

/** The functions that run in each of some requests. */
async function inEach(coverage: Coverage, request: Request): Promise<RanFunction[]> {
  for (let count = 0; count < warmingRequests; count++) await request();
  return inAll(await runsOf(coverage, request));
}

async function runsOf(coverage: Coverage, request: Request): Promise<Map<string, RanFunction>[]> {
  const runs: Map<string, RanFunction>[] = [];
  for (let count = 0; count < repeats; count++) runs.push(await coverage.of(request));
  return runs;
}

/** With the lowest count of the runs. */
function inAll(runs: readonly Map<string, RanFunction>[]): RanFunction[] {
  const [first = new Map<string, RanFunction>(), ...others] = runs;
  return [...first].flatMap(([id, one]) => {
    const counts = others.map((run) => run.get(id)?.count ?? 0);
    const count = Math.min(one.count, ...counts);
    return count === 0 ? [] : [{ ...one, count }];
  });
}

/** The functions that a second watcher of the same objects makes run, or run once more. */
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

import { randomBytes } from "node:crypto";
import { measure } from "./measure.ts";
import { type BenchOptions, parseOptions } from "./options.ts";
import { rowsFor } from "./rows.ts";
import { type Stage, setUpStage } from "./stage.ts";
import { header, lines } from "./table.ts";
import { secondServer, startOurs, type Target } from "./target.ts";

/** What is to be removed at the end. */
interface Started {
  readonly targets: Target[];
  readonly stages: Stage[];
}

/** `main.ts api [flags]`: see options.ts. Exit code 1 for errors only, not for a slow server. */
export async function benchApi(argv: readonly string[]): Promise<void> {
  const started: Started = { targets: [], stages: [] };
  try {
    const options = parseOptions(argv);
    const limit = setTimeout(() => {
      fail(new Error(`not done after ${options.limitSeconds} s`), started).catch(exit);
    }, options.limitSeconds * 1000);
    await bench(options, started);
    clearTimeout(limit);
    await cleanUp(started);
  } catch (err) {
    await fail(err, started);
  }
}

async function bench(options: BenchOptions, { targets, stages }: Started): Promise<void> {
  targets.push(await startOurs(options));
  if (options.against !== undefined) targets.push(secondServer(options.against));
  const run = randomBytes(4).toString("hex");
  for (const target of targets) stages.push(await setUpStage(target, options.pods, run));
  console.log(header());
  const rows = rowsFor(options.pods).filter(({ name }) => name.includes(options.only));
  for (const [index, row] of rows.entries()) {
    const { rowSeconds, rounds, isQuick } = options;
    const seconds = Math.max(rowSeconds, isQuick ? 0 : (row.leastSeconds ?? 0));
    const results = await measure(row, stages, { seconds, rounds, warmSeconds: index === 0 ? rowSeconds : rowSeconds / 4 });
    for (const text of lines(
      row,
      targets.map((target) => target.name),
      results,
    ))
      console.log(text);
  }
}

async function cleanUp({ targets, stages }: Started): Promise<void> {
  // Our server is stopped together with its etcd; on the other server the created objects are deleted.
  for (const stage of stages) {
    if (stage.target !== targets[0])
      await stage.tearDown().catch((err: Error) => console.error(`cannot clean up: ${err.message}`));
  }
  for (const target of targets) await target.stop();
}

async function fail(err: unknown, started: Started): Promise<never> {
  print(err);
  await cleanUp(started);
  process.exit(1);
}

/** Exits when the cleanup failed too. */
function exit(err: unknown): never {
  print(err);
  process.exit(1);
}

function print(err: unknown): void {
  for (let cause = err; cause instanceof Error; cause = cause.cause) console.error(`bench: ${cause.message}`);
}

import { newLogger } from "@coxswain/apimachinery/logging/logger";
import { emptyCluster, startCluster } from "./cluster/cluster.ts";
import { newFaults } from "./faults/faults.ts";
import { atRest, newProblems, watchInvariants } from "./invariants/invariants.ts";
import { observe } from "./invariants/observed.ts";
import { viewOf } from "./invariants/view.ts";
import { newUser, type Plan } from "./plans/plan.ts";
import { newProcess, newWorld } from "./world/world.ts";

export interface Outcome {
  readonly seed: number;
  readonly plan: string;
  readonly steps: number;
  /** Of the whole trace. */
  readonly hash: string;
  /** Virtual time. */
  readonly durationMs: number;
  readonly failure: string | undefined;
  readonly lastSteps: readonly string[];
}

export interface SimulationOptions {
  readonly seed: number;
  readonly plan: Plan;
  readonly onTrace?: ((line: string) => void) | undefined;
  /** Verbosity of the programs' logs on stderr; undefined: none. */
  readonly logs?: number | undefined;
}

const longestActMs = 120_000;
const longestRestMs = 600_000;

/** One life of a cluster: it starts, a user acts while things go wrong, then nothing goes wrong any more and all has to come right. */
export async function simulate({ seed, plan, onTrace, logs }: SimulationOptions): Promise<Outcome> {
  const initial = await emptyCluster();
  const world = newWorld({ seed, onTrace });
  const startMs = world.now();
  let failure: string | undefined;
  try {
    const problems = newProblems();
    const faults = newFaults(world, plan.faults);
    const cluster = await startCluster({
      world,
      initial,
      controllers: plan.controllers,
      rules: plan.rules(world.random),
      api: faults.api,
      observe: (etcd) => observe(etcd, problems.fail),
      etcd: faults.etcd,
      skewMs: faults.skewMs,
      log:
        logs === undefined ? undefined : ({ name, clock }) => newLogger({ verbosity: logs, clock, exit: failOnExit }).named(name),
    });
    if (!plan.losesHistory) watchInvariants(world, cluster, faults, plan, problems);
    const { clock } = newProcess(world, "user");
    const user = newUser(cluster.client, world.random, (ms) => clock.sleep(ms));
    faults.begin(cluster);
    await world.until("what the user does", plan.act(user), longestActMs);
    await world.run(world.random() * 5_000);
    faults.end();
    world.note("nothing goes wrong any more");
    const view = viewOf(cluster.etcd);
    const limit = world.now() + longestRestMs;
    for (let missing: string | undefined = "it has just begun"; missing !== undefined; ) {
      await world.run(1_000);
      missing = plan.missing(view) ?? atRest(cluster);
      if (missing !== undefined && world.now() > limit) throw new Error(`after ${longestRestMs / 1000} s: ${missing}`);
    }
  } catch (err) {
    failure =
      err instanceof Error
        ? `${err.message}${err.name === "Error" || err.name === "Violation" ? "" : `\n${err.stack}`}`
        : String(err);
    world.note(`failed: ${failure}`);
  } finally {
    world.end();
  }
  return {
    seed,
    plan: plan.name,
    steps: world.steps,
    hash: world.hash,
    durationMs: world.now() - startMs,
    failure,
    lastSteps: world.lastSteps,
  };
}

/** Nothing in a simulated daemon may end the process that simulates all of them. */
function failOnExit(code: number): never {
  throw new Error(`a daemon asked to exit with ${code}`);
}

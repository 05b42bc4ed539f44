import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newProcess } from "@coxswain/testing/time/time-line";
import { type Cluster, emptyCluster, type ManagerWork, startCluster } from "./cluster/cluster.ts";
import { aimed, describe, drawShape } from "./cluster/shape.ts";
import { type Aim, describeAim, drawAim } from "./faults/aim.ts";
import { Faults } from "./faults/faults.ts";
import { atRest, changedByOthers, newProblems, Violation, watchInvariants } from "./invariants/invariants.ts";
import { observe } from "./invariants/observed.ts";
import { viewOf } from "./invariants/view.ts";
import { newUser, type Plan, smallTime } from "./plans/plan.ts";
import { newWorld } from "./world/world.ts";

export interface Outcome {
  readonly seed: number;
  readonly plan: string;
  readonly steps: number;
  /** Hash of the whole trace. */
  readonly hash: string;
  /** Virtual time. */
  readonly durationMs: number;
  readonly failure: string | undefined;
  readonly lastSteps: readonly string[];
}

interface SimulationOptions {
  readonly seed: number;
  readonly plan: Plan;
  readonly onTrace?: ((line: string) => void) | undefined;
  /** Verbosity of the programs' logs on stderr; undefined: none. */
  readonly logs?: number | undefined;
}

/** Share of simulations in which the cluster is idle for a minute first. */
const oftenLate = 0.1;
const longestActMs = 300_000;
/** Controllers wait up to five minutes until a watch shows their own write. */
const longestRestMs = 360_000;

/** Simulates one cluster: it starts, a user acts while faults are injected, then the faults stop and the required outcome must be reached. */
export async function simulate({ seed, plan, onTrace, logs }: SimulationOptions): Promise<Outcome> {
  const initial = await emptyCluster();
  const planFlags = (await plan.managerFlags?.()) ?? [];
  const { stackTraceLimit } = Error;
  // A simulation creates hundreds of errors, for lost connections and refused writes. Who looks into one runs it with its trace.
  if (onTrace === undefined && logs === undefined) Error.stackTraceLimit = 0;
  const world = newWorld({ seed, onTrace });
  const startMs = world.now();
  let failure: string | undefined;
  let cluster: Cluster | undefined;
  const problems = newProblems();
  // Without a listener an unhandled rejection would end the program.
  const onRejection = (err: unknown): void =>
    problems.fail(`unhandled rejection: ${err instanceof Error ? err.stack : String(err)}`);
  process.on("unhandledRejection", onRejection);
  try {
    world.onStep(() => {
      if (problems.first !== undefined) throw new Violation(problems.first);
    });
    const drawn = drawShape(world.random, plan);
    const aim = drawn.isSmall && plan.losesHistory !== true ? drawAim(world.random, plan.controllers) : undefined;
    const shape = aim === undefined ? drawn : aimed(drawn, aim);
    world.note(`${plan.name}: ${describe(shape)}${aim === undefined ? "" : `, ${describeAim(aim)}`}`);
    const faults = new Faults(world, { kinds: plan.faults, aim, time: shape.isSmall ? smallTime : 1 });
    const managerFlags = [...shape.leases, ...planFlags];
    cluster = await startCluster({
      world,
      shape,
      initial,
      apis: { needed: plan.apis ?? [], isSmall: shape.schedulers === 0 },
      managers: managersOf(plan.controllers, managerFlags, shape.managers, aim),
      answers: plan.answers && ((path, etcd) => plan.answers?.(path, viewOf(etcd))),
      rules: plan.rules(world.random),
      api: faults.api,
      observe: (etcd) => observe(etcd, problems.fail),
      etcd: (server) => faults.etcd(server),
      skewMs: () => faults.skewMs(),
      log:
        logs === undefined ? undefined : ({ name, clock }) => newLogger({ verbosity: logs, clock, exit: failOnExit }).named(name),
    });
    if (!plan.losesHistory) watchInvariants(world, cluster, faults, plan, problems);
    const { clock } = newProcess(world, "user");
    const user = newUser(cluster.client, world.random, (ms) => clock.sleep(ms), shape.isSmall);
    if (plan.before !== undefined) await world.until("what the user does first", plan.before(user), longestActMs);
    cluster.start();
    // Long enough that bookmarks, which watches receive once a minute, arrive during the actions.
    if (!shape.isSmall && world.random() < oftenLate) await world.run(50_000 + world.random() * 10_000);
    faults.begin(cluster);
    await world.until("what the user does", plan.act(user), longestActMs);
    await world.run(world.random() * 5_000);
    faults.end();
    world.note("nothing goes wrong any more");
    const view = viewOf(cluster.etcd);
    const { restMs = longestRestMs } = plan;
    const limit = world.now() + restMs;
    for (let missing: string | undefined = "it has just begun"; missing !== undefined; ) {
      await world.run(1_000);
      missing = plan.missing(view) ?? atRest(cluster) ?? (plan.losesHistory ? undefined : changedByOthers(view, user.requested));
      if (missing !== undefined && world.now() > limit) throw new Error(`after ${restMs / 1000} s: ${missing}`);
    }
  } catch (err) {
    failure =
      err instanceof Error
        ? `${err.message}${err.name === "Error" || err.name === "Violation" ? "" : `\n${err.stack}`}`
        : String(err);
    world.note(`failed: ${failure}`);
  } finally {
    cluster?.release();
    await world.end();
    process.off("unhandledRejection", onRejection);
    Error.stackTraceLimit = stackTraceLimit;
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

/** A controller with an aimed fault runs alone in a separate manager. */
function managersOf(
  controllers: readonly string[],
  flags: readonly string[],
  count: number,
  aim: Aim | undefined,
): ManagerWork[] {
  if (aim === undefined) return Array.from({ length: count }, () => ({ controllers, flags }));
  const others = controllers.filter((name) => name !== aim.controller);
  return [[aim.controller], ...(others.length > 0 ? [others] : [])].map((part) => ({ controllers: part, flags }));
}

/** Prevents simulated daemons from exiting the process of the simulation. */
function failOnExit(code: number): never {
  throw new Error(`a daemon requested to exit with ${code}`);
}

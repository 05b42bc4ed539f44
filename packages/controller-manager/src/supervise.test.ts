import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type CatalogueEntry, catalogue } from "./catalogue.ts";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { runManager } from "./manager.ts";
import { newControllerHealth, supervise } from "./supervise.ts";
import { startSmallApi } from "./testing/small-api.ts";
import { defaultConfig, newTestContext } from "./testing/test-context.ts";

/** Runs until the signal is aborted. */
const idle = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

type Failure = "when it is made" | "at its start" | "in a loop";

/** The real controller, made to fail its first `times` attempts. */
function failing(entry: CatalogueEntry, failure: Failure, times: number): CatalogueEntry & { attempts(): number } {
  let attempts = 0;
  const make = (ctx: ControllerContext): Runnable => {
    const ill = ++attempts <= times;
    if (ill && failure === "when it is made") throw new Error("injected");
    const real = entry.make(ctx) ?? { run: idle };
    if (!ill) return real;
    if (failure === "at its start") return { run: () => Promise.reject(new Error("injected")) };
    const loop = async (): Promise<void> => {
      await ctx.clock.sleep(10);
      throw new Error("injected", { cause: new Error("by the test") });
    };
    return { run: async (signal) => void (await Promise.all([real.run(signal), loop()])) };
  };
  return { ...entry, make, attempts: () => attempts };
}

const witness = "root-ca-cert-publisher";

for (const failure of ["when it is made", "at its start", "in a loop"] as const) {
  for (const entry of catalogue.filter(({ name }) => name !== witness)) {
    test(`${entry.name} fails ${failure}: others go on, and it comes back`, async (t) => {
      const { host, writes } = await startSmallApi(t);
      const clock = newFakeClock();
      const metrics = newMetricsRegistry();
      const health = newControllerHealth({ clock, metrics });
      const errors: string[] = [];
      const log: Logger = {
        ...discardLogger,
        named: () => log,
        with: () => log,
        error: (message, _err, fields) => {
          if (fields?.["controller"] === entry.name && message.includes("started again")) errors.push(message);
        },
        fatal: () => assert.fail("one controller ended the program"),
      };
      const ill = failing(entry, failure, 2);
      const other = catalogue.find(({ name }) => name === witness) as CatalogueEntry;
      const ending = new AbortController();
      const running = runManager({
        config: {
          ...defaultConfig,
          leaderElection: { ...defaultConfig.leaderElection, enabled: false },
          controllers: new Set([entry.name, witness]),
          rootCa: "PEM",
        },
        clientConfig: { host },
        log,
        clock,
        metrics,
        featureGates: newFeatureGates("kube-controller-manager", {}),
        turns: newUnlimitedTurns(),
        health,
        controllers: [ill, other],
        signal: ending.signal,
      });
      t.after(async () => {
        ending.abort();
        await running;
      });
      const failed = async (): Promise<boolean> => {
        await clock.advance(10); // controllers start after the server has responded, and the loop fails 10 ms later
        return errors.length === 1;
      };
      await waitFor(failed, { what: "the first failure" });
      assert.throws(() => health.check(entry.name), /^Error: injected/);
      health.check(witness);
      await waitFor(() => writes.some(({ path }) => path.endsWith("/configmaps")), { what: "the other controller's work" });
      for (let seconds = 0; seconds < 10 && ill.attempts() < 3; seconds++) await clock.advance(1000);
      await waitFor(() => ill.attempts() === 3, { what: "the third instance" });
      assert.equal(errors.length, 2);
      await clock.advance(10_000);
      health.check(entry.name);
      assert.equal(errors.length, 2);
      const text = await metrics.render();
      assert.ok(text.includes(`coxswain_controller_failures_total{controller="${entry.name}"} 2\n`), text.slice(0, 200));
    });
  }
}

function supervised(t: { after(fn: () => void): void }, make: (ctx: ControllerContext) => Runnable | undefined) {
  const world = newTestContext(t);
  const { clock, ctx } = world;
  const health = newControllerHealth({ clock, metrics: ctx.registry });
  const runnable = supervise({ name: "one", ctx, make, health, log: discardLogger, clock });
  return { ...world, health, runnable };
}

test("waits longer and longer, a minute at most, between failures", async (t) => {
  const starts: number[] = [];
  const world = supervised(t, ({ clock }) => ({
    async run() {
      starts.push(clock.monotonic());
      throw new Error("no");
    },
  }));
  await world.run(world.runnable);
  for (let seconds = 0; seconds < 600; seconds++) await world.clock.advance(1000);
  const waits = starts.slice(1).map((at, i) => at - (starts[i] as number));
  assert.ok((waits[0] as number) >= 1000 && (waits[0] as number) < 3000, String(waits));
  assert.ok(
    waits.every((ms, i) => i === 0 || i > 5 || ms > (waits[i - 1] as number)),
    String(waits),
  );
  assert.ok(Math.max(...waits) <= 73_000 && waits.length < 20, String(waits));
});

test("an instance that could not be made is made again after a second", async (t) => {
  let instances = 0;
  const world = supervised(t, () => {
    if (++instances === 1) throw new Error("no");
    return { run: idle };
  });
  await world.run(world.runnable);
  await world.clock.advance(999);
  assert.equal(instances, 1);
  await world.clock.advance(201); // with the jitter
  assert.equal(instances, 2);
});

test("a failed instance is ended, and hears nothing any more", async (t) => {
  const signals: AbortSignal[] = [];
  const heard: number[] = [];
  let instances = 0;
  const world = supervised(t, (ctx) => {
    const id = ++instances;
    ctx.informers.for(namespaces).addHandler({ added: () => void heard.push(id) });
    return {
      async run(signal) {
        signals.push(signal);
        if (id === 1) throw new Error("no");
        await idle(signal);
      },
    };
  });
  await world.run(world.runnable);
  assert.equal(signals[0]?.aborted, true);
  await world.clock.advance(2000);
  assert.deepEqual([instances, signals[1]?.aborted], [2, false]);
  world.client.put(namespaces, { metadata: { name: "web" } });
  await waitFor(() => heard.length > 0);
  assert.deepEqual(heard, [2]);
});

test("what an instance that could not be made had listened to, it hears no longer", async (t) => {
  const heard: number[] = [];
  let instances = 0;
  const world = supervised(t, (ctx) => {
    const id = ++instances;
    ctx.informers.for(namespaces).addHandler({ added: () => void heard.push(id) });
    if (id <= 2) throw new Error("no");
    return { run: idle };
  });
  await world.run(world.runnable);
  await world.clock.advance(10_000);
  assert.equal(instances, 3);
  world.client.put(namespaces, { metadata: { name: "web" } });
  await waitFor(() => heard.length > 0);
  assert.deepEqual(heard, [3]);
});

test("health is bad from a failure until the next instance has run for ten seconds", async (t) => {
  let instances = 0;
  const world = supervised(t, () => ({
    run: (signal) => (++instances === 1 ? Promise.reject(new Error("no", { cause: new Error("way") })) : idle(signal)),
  }));
  world.health.check("one");
  await world.run(world.runnable);
  assert.throws(() => world.health.check("one"), { message: "no: way" });
  await world.clock.advance(1200);
  assert.equal(instances, 2);
  await world.clock.advance(9_000);
  assert.throws(() => world.health.check("one"), { message: "no: way" });
  await world.clock.advance(1_000);
  world.health.check("one");
});

test("a controller that ends by itself is not started again; nor one that has nothing to do", async (t) => {
  let instances = 0;
  const world = supervised(t, () => ({ run: async () => void instances++ }));
  await world.run(world.runnable);
  await world.clock.advance(600_000);
  assert.equal(instances, 1);
  assert.equal(supervised(t, () => undefined).runnable, undefined);
});

test("instances that have ended leave nothing behind at the signal of the program", async (t) => {
  const fails = { run: () => Promise.reject(new Error("injected")) };
  const world = supervised(t, () => fails);
  const stop = new AbortController();
  const running = world.runnable?.run(stop.signal);
  for (let i = 0; i < 5; i++) await world.clock.advance(60_000);
  const waiting = getEventListeners(stop.signal, "abort").length;
  assert.ok(waiting <= 1, `${waiting} listeners`); // that of the wait
  stop.abort();
  await running;
});

test("a configuration that cannot be used is the program's to refuse", (t) => {
  const make = (): Runnable => {
    throw new ConfigError("no such key");
  };
  assert.throws(() => supervised(t, make), { message: "no such key" });
});

test("stopping while it waits to start again ends it", async (t) => {
  const world = supervised(t, () => ({ run: () => Promise.reject(new Error("no")) }));
  const stop = new AbortController();
  const running = world.runnable?.run(stop.signal);
  const isBad = (): boolean => {
    try {
      world.health.check("one");
      return false;
    } catch {
      return true;
    }
  };
  await waitFor(isBad, { what: "the failure in health" });
  stop.abort();
  await running;
});

for (const { what, isStopped } of [
  { what: "has ended by itself", isStopped: false },
  { what: "was stopped before it was run", isStopped: true },
])
  test(`an instance that ${what} hears nothing any more, and its other parts end`, async (t) => {
    const heard: string[] = [];
    const signals: AbortSignal[] = [];
    const world = supervised(t, ({ informers }) => {
      informers.for(namespaces).addHandler({ added: ({ metadata }) => void heard.push(metadata.name ?? "") });
      return { run: async (signal) => void signals.push(signal) };
    });
    const informer = world.ctx.informers.for(namespaces);
    const seen: string[] = [];
    informer.addHandler({ added: ({ metadata }) => void seen.push(metadata.name ?? "") });
    await world.run();
    await world.runnable?.run(isStopped ? AbortSignal.abort() : world.signal);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      isStopped ? [] : [true],
    );
    world.client.put(namespaces, { metadata: { name: "web" } });
    await waitFor(() => seen.length > 0);
    assert.deepEqual(heard, []);
  });

test("a controller that fails again before it was steady is unhealthy from then on, with the new reason", async (t) => {
  let instances = 0;
  const world = supervised(t, () => ({ run: () => Promise.reject(new Error(`failure ${++instances}`)) }));
  await world.run(world.runnable);
  assert.throws(() => world.health.check("one"), { message: "failure 1" });
  await world.clock.advance(1200);
  assert.throws(() => world.health.check("one"), { message: "failure 2" });
  world.health.check("another");
});

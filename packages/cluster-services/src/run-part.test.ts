import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "./flags.ts";
import type { Part, PartContext, PartDefinition, StartPart } from "./part.ts";
import { newPartHealth } from "./part-health.ts";
import { runPart } from "./run-part.ts";

function setUp(start: StartPart) {
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const health = newPartHealth({ clock, metrics });
  const client = newFakeClient();
  const events: string[] = [];
  const recorder = {
    event: (object: { name?: string }, type: string, reason: string, message: string) =>
      void events.push(`${object.name} ${type} ${reason} ${message}`),
    flush: () => Promise.resolve(),
  };
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const turns = new Turns();
  const base = {
    turns,
    nodeName: "n1",
    flags: {} as ServicesFlags,
    client,
    informers,
    reconnection: new Reconnection({ periodMs: () => 500, clock }),
    recorder,
    log: discardLogger,
    clock,
    metrics,
  };
  const definition: PartDefinition = { name: "dns", runs: "node", onByDefault: true, rights: {}, load: async () => start };
  const ending = new AbortController();
  informers.start(ending.signal);
  const running = runPart(definition, base, health, ending.signal);
  const isHealthy = (): Promise<boolean> =>
    health.check("dns").then(
      () => true,
      () => false,
    );
  const end = async (): Promise<void> => {
    ending.abort(new Error("the test ends"));
    await running;
  };
  return { clock, metrics, health, client, events, isHealthy, ending, end };
}

test("a part that fails at its start is reported and started again, and healthy when it has started", async () => {
  let starts = 0;
  const { clock, metrics, health, events, isHealthy, end } = setUp(async () => {
    if (++starts < 3) throw new Error("port 53 is taken", { cause: new Error("EADDRINUSE") });
    return {};
  });
  await waitFor(() => events.length === 1);
  assert.deepEqual(events, ["n1 Warning PartFailed dns: port 53 is taken: EADDRINUSE"]);
  await assert.rejects(health.check("dns"), /port 53 is taken/);
  await clock.advance(1_300);
  await waitFor(() => events.length === 2);
  await clock.advance(2_600);
  await waitFor(() => starts === 3);
  await waitFor(async () => (await metrics.render()).includes('coxswain_services_part_running{part="dns"} 1'));
  assert.equal(await isHealthy(), true);
  assert.match(await metrics.render(), /coxswain_services_part_failures_total\{part="dns"\} 2/);
  await end();
  assert.match(await metrics.render(), /coxswain_services_part_running\{part="dns"\} 0/);
});

test("a part that failed while it ran is healthy after running for ten seconds again, though a start failed meanwhile", async () => {
  const contexts: PartContext[] = [];
  const { clock, events, isHealthy, end } = setUp(async (context) => {
    if (contexts.push(context) === 2) throw new Error("not yet");
    return {};
  });
  await waitFor(isHealthy);
  contexts[0]?.fail(new Error("the socket is gone"));
  await waitFor(() => events.length === 1);
  assert.equal(await isHealthy(), false);
  await clock.advance(1_300);
  await waitFor(() => events.length === 2);
  await clock.advance(2_600);
  await waitFor(() => contexts.length === 3);
  await clock.advance(9_000);
  assert.equal(await isHealthy(), false, "it may fail again");
  await clock.advance(2_000);
  await waitFor(isHealthy);
  await end();
});

test("a part that fails later is stopped first, and its handlers see nothing any longer", async () => {
  const contexts: PartContext[] = [];
  const stopped: number[] = [];
  const seen: number[] = [];
  const { clock, client, end } = setUp(async (context): Promise<Part> => {
    const number = contexts.push(context);
    context.informers.for(namespaces).addHandler({ added: () => void seen.push(number) });
    return {
      stop: async () => {
        assert.ok(context.signal.aborted);
        stopped.push(number);
      },
    };
  });
  await waitFor(() => contexts.length === 1);
  contexts[0]?.fail(new Error("the socket is gone"));
  contexts[0]?.fail(new Error("twice"));
  await waitFor(() => stopped.length === 1);
  await clock.advance(1_300);
  await waitFor(() => contexts.length === 2);
  client.put(namespaces, { metadata: { name: "web" } });
  await waitFor(() => seen.length > 0);
  assert.deepEqual(seen, [2]);
  await end();
  assert.deepEqual(stopped, [1, 2]);
});

test("the end during a start is no failure", async () => {
  const started = Promise.withResolvers<void>();
  const { events, end } = setUp(({ signal }) => {
    started.resolve();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  });
  await started.promise;
  await end();
  assert.deepEqual(events, []);
});

test("the part's own check is part of the health", async () => {
  let problem: string | undefined;
  const { isHealthy, end } = setUp(async () => ({
    check() {
      if (problem !== undefined) throw new Error(problem);
    },
  }));
  await waitFor(isHealthy);
  problem = "no rules";
  assert.equal(await isHealthy(), false);
  await end();
});

test("failures leave nothing at the signal that ends the part", async () => {
  const listenersAfter = async (failures: number): Promise<number> => {
    let starts = 0;
    const { clock, metrics, ending, end } = setUp(async () => {
      if (starts++ < failures) throw new Error("no");
      return {};
    });
    const isRunning = async (): Promise<boolean> =>
      (await metrics.render()).includes('coxswain_services_part_running{part="dns"} 1');
    await waitFor(async () => (await clock.advance(1_000)) ?? (await isRunning()), { what: "a start" });
    const listeners = getEventListeners(ending.signal, "abort").length;
    await end();
    return listeners;
  };
  assert.equal(await listenersAfter(3), await listenersAfter(0));
});

test("a part that does not stop cleanly is started again all the same, with its signal aborted", async () => {
  const contexts: PartContext[] = [];
  const { clock, end, events } = setUp(async (context) => {
    contexts.push(context);
    return { stop: () => Promise.reject(new Error("the socket is stuck")) };
  });
  await waitFor(() => contexts.length === 1);
  contexts[0]?.fail(new Error("broken"));
  await waitFor(() => events.length === 1);
  assert.equal(contexts[0]?.signal.aborted, true);
  await clock.advance(1_300);
  await waitFor(() => contexts.length === 2);
  assert.equal(contexts[1]?.signal.aborted, false);
  await end();
});

test("pauses between failures grow", async () => {
  let starts = 0;
  const { clock, events, end } = setUp(async () => {
    starts++;
    throw new Error("no");
  });
  for (const [count, waitMs] of [
    [1, 1_200],
    [2, 2_400],
    [3, 4_800],
  ] as const) {
    await waitFor(() => events.length === count);
    if (count > 1) {
      await clock.advance(waitMs / 2 - 250);
      assert.equal(starts, count, "not after the pause before");
    }
    await clock.advance(waitMs);
  }
  await waitFor(() => events.length === 4);
  await end();
});

test("a pause is at most a minute with its jitter, and short again three minutes after the last failure", async () => {
  const contexts: PartContext[] = [];
  let isFailing = true;
  const { clock, events, end } = setUp(async (context) => {
    contexts.push(context);
    if (isFailing) throw new Error("no");
    return {};
  });
  for (let failures = 1; failures < 7; failures++) {
    await waitFor(() => events.length === failures);
    await clock.advance(1_200 * 2 ** (failures - 1));
  }
  await waitFor(() => events.length === 7);
  isFailing = false;
  await clock.advance(40_000); // the failure may have been some seconds before the end of the last advance
  assert.equal(contexts.length, 7);
  await clock.advance(32_001);
  await waitFor(() => contexts.length === 8);
  await clock.advance(80_000);
  contexts[7]?.fail(new Error("after less than three minutes"));
  await waitFor(() => events.length === 8);
  await clock.advance(59_999);
  assert.equal(contexts.length, 8);
  await clock.advance(12_002);
  await waitFor(() => contexts.length === 9);
  await clock.advance(121_000);
  contexts[8]?.fail(new Error("after more"));
  await waitFor(() => events.length === 9);
  await clock.advance(1_200);
  await waitFor(() => contexts.length === 10);
  await end();
});

test("a part that has ended on purpose is not checked any more", async () => {
  const { health, isHealthy, end } = setUp(async () => ({
    check() {
      throw new Error("is not running");
    },
  }));
  await waitFor(async () =>
    health.check("dns").then(
      () => false,
      (err: Error) => err.message === "is not running",
    ),
  );
  await end();
  assert.equal(await isHealthy(), true);
});

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import type { Logind } from "./logind.ts";
import { NodeShutdown } from "./node-shutdown.ts";
import { openNodeShutdown } from "./open-node-shutdown.ts";
import { byGroup, groupsOf } from "./shutdown-groups.ts";

for (const { name, total, critical, want } of [
  { name: "nothing", total: 0, critical: 0, want: [] },
  { name: "time for all, part of it for critical pods", total: 30_000, critical: 10_000, want: [20, 10] },
  { name: "all of it for critical pods", total: 10_000, critical: 10_000, want: [0, 10] },
  { name: "whole seconds", total: 4_800, critical: 1_900, want: [2, 1] },
  { name: "more for critical pods than there is", total: 10_000, critical: 30_000, want: [] },
]) {
  test(`the two periods are groups: ${name}`, () => {
    const seconds = groupsOf(total, critical).map(({ shutdownGracePeriodSeconds }) => shutdownGracePeriodSeconds);
    assert.deepEqual(seconds, want);
  });
}

test("a shutdown is delayed with the gate, by groups or by the two periods", () => {
  const group = { priority: 0, shutdownGracePeriodSeconds: 1 };
  const isDelayed = (shutdownGroups: readonly (typeof group)[], shutdownGraceMs: number, gate = true): boolean => {
    const config = { shutdownGroups, shutdownGraceMs, shutdownGraceCriticalMs: 0 };
    const featureGates = newFeatureGates("kubelet", { GracefulNodeShutdown: gate });
    const rest = { activePods: () => [], endPod: async () => {}, reportNodeEvent: () => {}, onChange: () => {} };
    return openNodeShutdown({ config, featureGates, ...rest, clock: newFakeClock(), log: discardLogger }) !== undefined;
  };
  assert.deepEqual(
    [isDelayed([], 0), isDelayed([group], 0), isDelayed([], 1_000), isDelayed([group], 1_000, false)],
    [false, true, true, false],
  );
});

test("a pod belongs to the highest group that is not above it", () => {
  const group = (priority: number) => ({ priority, shutdownGracePeriodSeconds: 1 });
  const pods: { spec: { priority?: number } }[] = [-5, 0, 999, 1000, 5000].map((priority) => ({ spec: { priority } }));
  const made = byGroup([group(1000), group(0)], [...pods, { spec: {} }]);
  assert.deepEqual(
    made.map(({ group: { priority }, pods: own }) => [priority, own.map(({ spec }) => spec.priority ?? "none")]),
    [
      [0, [-5, 0, 999, "none"]],
      [1000, [1000, 5000]],
    ],
  );
});

/** A node with a fake logind. */
function aNode(
  pods: readonly NodePod[],
  options: { delayMs?: number; maxMs?: number; cannotEnd?: string; cannotLock?: boolean; cannotRaise?: boolean } = {},
) {
  let isAway = false;
  let holding: Promise<void> | undefined;
  let holdingLock: Promise<void> | undefined;
  const clock = newFakeClock();
  const seen: string[] = [];
  let delayMs = options.delayMs ?? 60_000;
  let heard: (goesDown: boolean) => void = () => undefined;
  let close: () => void = () => undefined;
  let connections = 0;
  let closed = 0;
  const ending = new Map<string, () => void>();
  const connect = async (): Promise<Logind> => {
    connections++;
    await holding;
    if (isAway) throw new Error("no bus");
    const whenClosed = new Promise<void>((resolve) => {
      close = resolve;
    });
    return {
      inhibitDelayMs: async () => delayMs,
      async overrideInhibitDelay(ms) {
        if (options.cannotRaise) throw new Error("read-only file system");
        delayMs = Math.min(ms, options.maxMs ?? ms);
      },
      async inhibitShutdown() {
        if (options.cannotLock) throw new Error("no more locks");
        seen.push("lock");
        await holdingLock;
        return { release: () => void seen.push("release") };
      },
      async onShutdown(next) {
        heard = next;
      },
      closed: whenClosed,
      close() {
        closed++;
        close();
      },
    };
  };
  const shutdown = new NodeShutdown({
    groups: groupsOf(30_000, 10_000),
    connect,
    activePods: () => pods,
    endPod(pod, { reason }, graceSeconds) {
      seen.push(`${reason} ${pod.metadata.name} ${graceSeconds}`);
      if (pod.metadata.name === options.cannotEnd) return Promise.reject(new Error("still running"));
      return new Promise((resolve) => ending.set(pod.metadata.name, resolve));
    },
    reportNodeEvent: (_, reason, message) => void seen.push(`${reason}: ${message}`),
    onChange: () => void seen.push("status"),
    clock,
    log: discardLogger,
  });
  return {
    shutdown,
    clock,
    seen,
    goDown: (yes: boolean) => heard(yes),
    loseBus: () => close(),
    setAway: (yes: boolean) => {
      isAway = yes;
    },
    /** Lets the next connections wait. @returns a function that lets them continue */
    holdConnect: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      holding = promise;
      return resolve;
    },
    /** Lets the next locks wait. @returns a function that lets them continue */
    holdLock: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      holdingLock = promise;
      return resolve;
    },
    connections: () => connections,
    closed: () => closed,
    end: (name: string) => ending.get(name)?.(),
    /** A function that ends the current termination of a Pod later. */
    takeEnd: (name: string) => ending.get(name) ?? (() => undefined),
    delayMs: () => delayMs,
  };
}

const pod = (name: string, priority: number, terminationGracePeriodSeconds: number): NodePod =>
  aNodePod({ priority, terminationGracePeriodSeconds }, { name, uid: name });

test("on shutdown pods end first, critical ones last; new pods are rejected, and the node is not ready with the reason", async () => {
  const patient = aNodePod({ priority: 0 }, { name: "patient", uid: "patient" });
  const node = aNode([pod("dns", 2_000_000_000, 30), pod("web", 0, 5), pod("slow", 100, 60), patient, pod("hasty", 0, 0)]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  assert.deepEqual(node.seen.splice(0), ["lock"]);
  assert.deepEqual([node.shutdown.problem(), node.shutdown.refusal()], [undefined, undefined]);
  node.goDown(true);
  await settle();
  const reported = "NodeShutdown: Shutdown manager detected shutdown event";
  assert.deepEqual(node.seen.splice(0), [
    ...[reported, "status"],
    ...["Terminated web 5", "Terminated slow 20", "Terminated patient 20", "Terminated hasty 0"],
  ]);
  assert.equal(node.shutdown.problem(), "node is shutting down");
  assert.deepEqual(node.shutdown.refusal(), {
    reason: "NodeShutdown",
    message: "Pod was rejected as the node is shutting down.",
  });
  node.end("web");
  await node.clock.advance(19_999);
  assert.deepEqual(node.seen.splice(0), [], "a pod of the group still runs");
  await node.clock.advance(1);
  assert.deepEqual(node.seen.splice(0), ["Terminated dns 10"], "its time is up");
  node.end("dns");
  await settle();
  assert.deepEqual(node.seen.splice(0), ["release"], "the machine may go down");
  stop.abort();
});

test("after a cancelled shutdown the node admits pods and holds the inhibitor lock again", async () => {
  const node = aNode([]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  node.goDown(true);
  await settle();
  node.goDown(false);
  await settle();
  assert.deepEqual([node.shutdown.problem(), node.shutdown.refusal()], [undefined, undefined]);
  assert.deepEqual(
    node.seen.filter((one) => !one.startsWith("NodeShutdown") && one !== "status"),
    ["lock", "release", "lock"],
  );
  assert.ok(node.seen.includes("NodeShutdown: Shutdown manager detected shutdown cancellation"));
  stop.abort();
});

test("logind's delay is raised when needed; when it does not, or gives no lock, there is no graceful shutdown", async () => {
  const stop = new AbortController();
  const node = aNode([], { delayMs: 5_000 });
  await node.shutdown.start(stop.signal);
  assert.equal(node.delayMs(), 30_000);
  const refused = aNode([], { delayMs: 5_000, maxMs: 10_000 });
  await assert.rejects(
    refused.shutdown.start(stop.signal),
    /^Error: node shutdown manager was unable to update logind InhibitDelayMaxSec to 30s \(ShutdownGracePeriod\), current value of InhibitDelayMaxSec \(10s\) is less than requested ShutdownGracePeriod$/,
  );
  assert.equal(refused.closed(), 1, "its connection");
  const fixed = aNode([], { delayMs: 5_000, cannotRaise: true });
  await assert.rejects(fixed.shutdown.start(stop.signal), {
    message: "unable to override inhibit delay by shutdown manager: read-only file system",
  });
  assert.deepEqual([fixed.closed(), fixed.seen], [1, []]);
  const enough = aNode([], { delayMs: 30_000, cannotRaise: true });
  await enough.shutdown.start(stop.signal);
  assert.deepEqual([enough.closed(), enough.seen], [0, ["lock"]]);
  const lockless = aNode([], { cannotLock: true });
  await assert.rejects(lockless.shutdown.start(stop.signal), /no more locks/);
  assert.equal(lockless.closed(), 1);
  stop.abort();
});

test("the agent reconnects to logind every second after the bus disconnected", async () => {
  const stop = new AbortController();
  const node = aNode([]);
  await node.shutdown.start(stop.signal);
  node.loseBus();
  await settle();
  assert.equal(node.connections(), 1);
  await node.clock.advance(1_000);
  await settle();
  assert.equal(node.connections(), 2);
  assert.deepEqual(node.seen, ["lock", "lock", "release"]);
  stop.abort();
});

test("while logind is absent only the reconnect attempts continue", async () => {
  const stop = new AbortController();
  const node = aNode([]);
  await node.shutdown.start(stop.signal);
  node.setAway(true);
  node.loseBus();
  const waiting = () => getEventListeners(stop.signal, "abort").length;
  await node.clock.advance(1_000);
  const before = waiting();
  await node.clock.advance(10_000);
  assert.deepEqual([node.connections(), waiting()], [12, before]);
  stop.abort();
  await node.clock.advance(10_000);
  assert.equal(node.connections(), 12, "no more connections");
});

test("a shutdown cancelled while pods end does not release the inhibitor lock of the next one", async () => {
  const node = aNode([pod("web", 0, 5)]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  const locks = (): string[] => node.seen.filter((one) => one === "lock" || one === "release");
  node.goDown(true);
  await settle();
  node.goDown(false);
  await settle();
  assert.deepEqual(locks(), ["lock", "lock", "release"]);
  node.end("web");
  await settle();
  assert.deepEqual(locks(), ["lock", "lock", "release"], "the new one is held");
  node.goDown(true);
  await settle();
  node.end("web");
  await settle();
  assert.deepEqual(locks(), ["lock", "lock", "release", "release"]);
  stop.abort();
});

test("a second shutdown during the pod termination of a cancelled one holds its own lock until its pods have ended", async () => {
  const node = aNode([pod("web", 0, 5)]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  const ends: (() => void)[] = [];
  for (const goesDown of [true, false, true]) {
    node.goDown(goesDown);
    await settle();
    if (goesDown) ends.push(node.takeEnd("web"));
  }
  const released = (): number => node.seen.filter((one) => one === "release").length;
  const before = released();
  ends[0]?.();
  await settle();
  assert.equal(released(), before, "pods of the second still end");
  ends[1]?.();
  await settle();
  assert.equal(released(), before + 1);
  stop.abort();
});

test("the agent's stop closes the connection to logind, and nothing is left to wait for", async () => {
  const node = aNode([]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  assert.equal(node.closed(), 0);
  stop.abort();
  await settle();
  assert.deepEqual([node.connections(), node.closed() > 0, node.clock.waiting], [1, true, 0]);
});

test("a connection to logind that is established after the agent's stop is closed", async () => {
  const node = aNode([]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  const connect = node.holdConnect();
  node.loseBus();
  await node.clock.advance(1_000);
  stop.abort();
  connect();
  await settle();
  assert.deepEqual([node.connections(), node.closed(), node.clock.waiting], [2, 1, 0]);
});

test("each cancellation takes an inhibitor lock and releases the one before, so that one is held", async () => {
  const node = aNode([]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  for (const _ of [1, 2]) {
    node.goDown(false);
    await settle();
  }
  assert.deepEqual(
    node.seen.filter((one) => one === "lock" || one === "release"),
    ["lock", "lock", "release", "lock", "release"],
  );
  stop.abort();
});

test("a lock that is granted when the next shutdown has been completed does not delay that one", async () => {
  const node = aNode([]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  const grant = node.holdLock();
  node.goDown(true);
  node.goDown(false);
  await settle();
  node.goDown(true);
  await settle();
  grant();
  await settle();
  const held = node.seen.filter((what) => what === "lock").length - node.seen.filter((what) => what === "release").length;
  assert.equal(held, 0);
  node.goDown(false);
  await settle();
  assert.equal(node.seen.at(-1), "lock", "the next one is held");
  stop.abort();
});

test("the time limit of a group ends with its last pod", async () => {
  const node = aNode([pod("web", 0, 5)]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  node.goDown(true);
  await settle();
  assert.equal(node.clock.waiting, 1);
  node.end("web");
  await settle();
  assert.equal(node.clock.waiting, 0);
  stop.abort();
});

test("a shutdown signal that arrives twice is handled once", async () => {
  const node = aNode([pod("web", 0, 5)]);
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  node.goDown(true);
  node.goDown(true);
  await settle();
  assert.deepEqual(
    node.seen.filter((one) => one.startsWith("Terminated") || one === "release"),
    ["Terminated web 5"],
  );
  stop.abort();
});

test("a pod that cannot be ended does not end the wait for its group, nor skip the next group", async () => {
  const node = aNode([pod("dns", 2_000_000_000, 30), pod("web", 0, 5), pod("stuck", 0, 5)], { cannotEnd: "stuck" });
  const stop = new AbortController();
  await node.shutdown.start(stop.signal);
  node.goDown(true);
  await settle();
  assert.ok(!node.seen.includes("release") && !node.seen.includes("Terminated dns 10"), node.seen.join());
  node.end("web");
  await settle();
  assert.ok(!node.seen.includes("release") && node.seen.includes("Terminated dns 10"), node.seen.join());
  node.end("dns");
  await settle();
  assert.equal(node.seen.at(-1), "release");
  stop.abort();
});

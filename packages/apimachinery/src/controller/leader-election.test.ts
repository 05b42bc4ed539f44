import assert from "node:assert/strict";
import { test } from "node:test";
import { Reconnection } from "../informers/reconnection.ts";
import { conflict, serviceUnavailable } from "../objects/errors/status-error.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import { leases } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger, type Logger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { checkDurations } from "./leader-election.ts";
import { newLeaderStatus } from "./leader-status.ts";
import { candidate, leaseOf } from "./testing/candidate.ts";

test("creates a missing lease and renews it", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  assert.deepEqual(a.events, ["leader a", "started"]);
  assert.deepEqual(leaseOf(client), {
    holderIdentity: "a",
    leaseDurationSeconds: 15,
    acquireTime: "2022-01-01T00:00:00.000000Z",
    renewTime: "2022-01-01T00:00:00.000000Z",
    leaseTransitions: 0,
  });
  await clock.advance(4000);
  assert.partialDeepStrictEqual(leaseOf(client), {
    acquireTime: "2022-01-01T00:00:00.000000Z",
    renewTime: "2022-01-01T00:00:04.000000Z",
  });
  a.stop.abort();
  await a.finished;
  assert.deepEqual(a.events.slice(2), ["stopping", "stopped"]);
});

test("waits while another holder renews, and takes over one lease duration after the last observed renewal", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  const b = candidate(client, clock, "b");
  await clock.advance(60_000);
  assert.deepEqual(b.events, ["leader a"]);
  a.stop.abort();
  await a.finished;
  await clock.advance(14_000);
  assert.deepEqual(b.events, ["leader a"]);
  await clock.advance(6000);
  assert.deepEqual(b.events, ["leader a", "leader b", "started"]);
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "b", leaseTransitions: 1 });
  b.stop.abort();
});

test("ignores the timestamps that another holder wrote", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const spec = {
    holderIdentity: "x",
    leaseDurationSeconds: 15,
    renewTime: "2000-01-01T00:00:00.000000Z",
    acquireTime: "2000-01-01T00:00:00.000000Z",
  };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  const a = candidate(client, clock, "a");
  await clock.advance(14_000);
  assert.deepEqual(a.events, ["leader x"]);
  await clock.advance(3000);
  assert.deepEqual(a.events, ["leader x", "leader a", "started"]);
  a.stop.abort();
});

test("loses leadership when it cannot renew before the deadline", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  client.react("*", "leases", () => {
    throw serviceUnavailable("away");
  });
  await clock.advance(11_000);
  assert.deepEqual(a.events.slice(2), []);
  await clock.advance(1000);
  assert.deepEqual(a.events.slice(2), ["stopping", "stopped"]);
  await a.finished;
});

test("a short outage does not end leadership", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  let away = true;
  client.react("*", "leases", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  await clock.advance(9000);
  away = false;
  await clock.advance(30_000);
  assert.deepEqual(a.events, ["leader a", "started"]);
  a.stop.abort();
});

test("loses leadership when another process took the lease", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  client.put(leases, {
    metadata: { namespace: "kube-system", name: "test" },
    spec: { ...leaseOf(client), holderIdentity: "thief" },
  } as KubeObject);
  await clock.advance(2000);
  assert.deepEqual(a.events.slice(2), ["leader thief", "stopping", "stopped"]);
});

test("a leader suspended until its lease has expired stops its work before it continues anything else", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  let leading: AbortSignal | undefined;
  candidate(client, clock, "a", {
    onStarted(signal) {
      leading = signal;
    },
  });
  await settle();
  client.react("*", "leases", () => new Promise(() => {})); // later requests never complete
  await clock.advance(12_000);
  assert.equal(leading?.aborted, true);
});

test("of two candidates that acquire the lease at once, one becomes leader", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  let first = true;
  client.react("update", "leases", () => {
    if (!first) return undefined;
    first = false;
    throw conflict(leases, "test", "someone else wrote");
  });
  const spec = { holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 3 };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  const [a, b] = [candidate(client, clock, "a"), candidate(client, clock, "b")];
  await clock.advance(5000);
  assert.equal([a, b].filter(({ events }) => events.includes("started")).length, 1);
  a.stop.abort();
  b.stop.abort();
});

test("releases the lease at the end when configured", async () => {
  const client = newFakeClient();
  const a = candidate(client, newFakeClock(), "a", { releaseOnCancel: true });
  await settle();
  a.stop.abort();
  await a.finished;
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "", leaseDurationSeconds: 1 });
});

test("its work is aborted before the lease is released", async () => {
  const client = newFakeClient();
  const a = candidate(client, newFakeClock(), "a", { releaseOnCancel: true });
  await settle();
  let reported: boolean | undefined;
  client.react("update", "leases", () => {
    reported = a.events.includes("stopping");
    return undefined;
  });
  a.stop.abort();
  await a.finished;
  assert.deepEqual([reported, leaseOf(client)["holderIdentity"]], [true, ""]);
});

test("a lease that cannot be released expires, and the leader has stopped", async () => {
  const client = newFakeClient();
  const a = candidate(client, newFakeClock(), "a", { releaseOnCancel: true });
  await settle();
  client.react("update", "leases", () => {
    throw serviceUnavailable("etcd is away");
  });
  a.stop.abort();
  await a.finished;
  assert.deepEqual([a.events.slice(2), leaseOf(client)["holderIdentity"]], [["stopping", "stopped"], "a"]);
});

for (const { durations, want } of [
  { durations: [15, 10, 2], want: undefined },
  { durations: [10, 10, 2], want: "leaseDuration must be greater than renewDeadline" },
  { durations: [15, 2, 2], want: "renewDeadline must be greater than retryPeriod*JitterFactor" },
  { durations: [15, 2.4, 2], want: "renewDeadline must be greater than retryPeriod*JitterFactor" },
  { durations: [2.402, 2.401, 2], want: undefined },
  { durations: [15, 10, 0], want: "retryPeriod must be greater than zero" },
  { durations: [15, 10, 0.001], want: undefined },
  { durations: [0, -1, -2], want: "leaseDuration must be greater than zero" },
  { durations: [0.001, 0, -1], want: "renewDeadline must be greater than zero" },
  { durations: [0.002, 0.001, 0], want: "retryPeriod must be greater than zero" },
]) {
  test(`durations ${durations} are ${want ?? "valid"}`, () => {
    const [leaseDurationMs = 0, renewDeadlineMs = 0, retryPeriodMs = 0] = durations.map((seconds) => seconds * 1000);
    assert.equal(checkDurations({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }), want);
  });
}

test("an election of invalid durations does not begin", async () => {
  const client = newFakeClient();
  const a = candidate(client, newFakeClock(), "a", { renewDeadlineMs: 15_000 });
  await assert.rejects(a.finished, { message: "leaseDuration must be greater than renewDeadline" });
  assert.deepEqual([a.events, leaseOf(client)], [[], {}]);
});

test("metrics report the leader; a leader that can neither renew its lease nor stop is unhealthy, candidates are always healthy", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const status = newLeaderStatus({ name: "test", leaseDurationMs: 15_000, clock, metrics });
  const lines = async () =>
    (await metrics.render()).split("\n").filter((line) => line.startsWith("leader_election_master_status"));
  assert.deepEqual(await lines(), ['leader_election_master_status{name="test"} 0']);
  const a = candidate(client, clock, "a", { status });
  await settle();
  assert.deepEqual(await lines(), ['leader_election_master_status{name="test"} 1']);
  await clock.advance(60_000);
  status.check();
  a.stop.abort();
  await a.finished;
  assert.equal(status.isLeader, false);
  assert.deepEqual(await lines(), ['leader_election_master_status{name="test"} 0']);
  await clock.advance(60_000);
  status.check();
  status.leads(true); // the election is stuck
  status.leaseSeen();
  await clock.advance(35_000);
  status.check();
  await clock.advance(1);
  assert.throws(() => status.check(), /^Error: failed election to renew leadership on lease test$/);
});

test("an error thrown by `onNewLeader` cannot make it lose the lease", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  let calls = 0;
  const a = candidate(client, clock, "a", {
    onNewLeader() {
      calls++;
      throw new Error("broken");
    },
  });
  await clock.advance(30_000);
  assert.equal(calls, 1);
  assert.ok(a.events.includes("started") && !a.events.includes("stopping"), String(a.events));
  a.stop.abort();
});

test("a renewal restarts the deadline: two shorter outages do not end leadership", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  let away = false;
  client.react("*", "leases", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  for (let outage = 0; outage < 3; outage++) {
    away = true;
    await clock.advance(7_000);
    away = false;
    await clock.advance(4_000);
  }
  assert.deepEqual(a.events, ["leader a", "started"]);
  a.stop.abort();
});

test("a lease deleted while it leads is created again, and leadership continues", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  client.remove(leases, "kube-system/test");
  await clock.advance(4_000);
  assert.equal(leaseOf(client)["holderIdentity"], "a");
  assert.deepEqual(a.events, ["leader a", "started"]);
  a.stop.abort();
});

test("a process that lost its lease does not release it at its end", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a", { releaseOnCancel: true });
  await settle();
  client.put(leases, {
    metadata: { namespace: "kube-system", name: "test" },
    spec: { ...leaseOf(client), holderIdentity: "thief", leaseTransitions: 1 },
  } as KubeObject);
  await clock.advance(2_000);
  await a.finished;
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "thief", leaseDurationSeconds: 15 });
});

test("a released lease is acquired at the next attempt and counts one more transition", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a", { releaseOnCancel: true });
  await settle();
  const b = candidate(client, clock, "b");
  await clock.advance(10_000);
  a.stop.abort();
  await a.finished;
  await clock.advance(2_000);
  assert.deepEqual(b.events, ["leader a", "leader b", "started"], "without waiting for it to run out");
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "b", leaseTransitions: 1, leaseDurationSeconds: 15 });
  b.stop.abort();
});

test("each observed renewal restarts a candidate's wait", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const renewed = (renewTime: string): void =>
    client.put(leases, {
      metadata: { namespace: "kube-system", name: "test" },
      spec: { holderIdentity: "x", leaseDurationSeconds: 15, renewTime, acquireTime: renewTime },
    } as KubeObject);
  renewed("2022-01-01T00:00:00.000000Z");
  const a = candidate(client, clock, "a");
  await clock.advance(13_000);
  renewed("2022-01-01T00:00:13.000000Z");
  await clock.advance(14_000);
  assert.deepEqual(a.events, ["leader x"]);
  await clock.advance(6_000);
  assert.ok(a.events.includes("started"));
  a.stop.abort();
});

test("a conflicting update does not count as a renewal, and the winner is read", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  client.react("update", "leases", () => {
    throw conflict(leases, "test", "someone else wrote");
  });
  await clock.advance(11_000);
  assert.deepEqual(a.events.slice(2), []);
  await clock.advance(2_000);
  assert.deepEqual(a.events.slice(2), ["stopping", "stopped"]);
});

test("a lease is taken over exactly one lease duration after the last observed change", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const spec = { holderIdentity: "x", leaseDurationSeconds: 15 };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  const a = candidate(client, clock, "a", { retryPeriodMs: 5000 });
  await clock.advance(14_999);
  assert.deepEqual(a.events, ["leader x"]);
  await clock.advance(1);
  assert.deepEqual(a.events, ["leader x", "leader a", "started"]);
  a.stop.abort();
});

test("a request aborted at the stop is not logged as an error of the lock, any other is", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const a = candidate(client, clock, "a", { log });
  await settle();
  let ends = false;
  client.react("update", "leases", () => {
    if (ends) a.stop.abort();
    throw new Error("cut off");
  });
  await clock.advance(2000);
  const logged = ["error retrieving or updating resource lock kube-system/test"];
  assert.deepEqual(errors, logged);
  ends = true;
  await clock.advance(2000);
  await a.finished;
  assert.deepEqual(errors, logged);
});

test("a leader renews with one request, and reads the lease only after a conflict", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a");
  await settle();
  const verbs = (): string[] => {
    const seen = client.actions.filter(({ resource }) => resource === "leases").map(({ verb }) => verb);
    client.clearActions();
    return seen;
  };
  assert.deepEqual(verbs(), ["get", "create"]);
  await clock.advance(6_000);
  assert.deepEqual(verbs(), ["update", "update", "update"]);

  client.put(leases, {
    metadata: { namespace: "kube-system", name: "test", labels: { by: "a user" } },
    spec: { ...leaseOf(client), leaseDurationSeconds: 40 },
  } as KubeObject);
  await clock.advance(2_000);
  assert.deepEqual(verbs(), ["update", "get", "update"]);
  assert.equal(client.object(leases, "kube-system/test")?.metadata.labels?.["by"], "a user", "what others wrote is kept");
  assert.equal(leaseOf(client)["leaseDurationSeconds"], 15);
  await clock.advance(2_000);
  assert.deepEqual(verbs(), ["update"]);

  let away = true;
  client.react("update", "leases", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  await clock.advance(4_000);
  assert.deepEqual(verbs(), ["update", "update"], "an outage does not double the requests");
  away = false;
  await clock.advance(2_000);
  assert.deepEqual(verbs(), ["update"]);
  assert.deepEqual(a.events, ["leader a", "started"]);
  a.stop.abort();
});

test("a candidate that finds its lease from before a restart writes its own duration, also after a failed attempt", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const spec = { holderIdentity: "a", leaseDurationSeconds: 60, acquireTime: "2021-12-31T00:00:00.000000Z", leaseTransitions: 4 };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  let away = true;
  client.react("update", "leases", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  const a = candidate(client, clock, "a");
  await settle();
  assert.deepEqual(a.events, ["leader a"]);
  away = false;
  await clock.advance(2_000);
  assert.deepEqual(a.events, ["leader a", "started"]);
  assert.partialDeepStrictEqual(leaseOf(client), { ...spec, leaseDurationSeconds: 15 });
  a.stop.abort();
});

test("a lease from before a restart keeps its acquire time and transitions", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const spec = { holderIdentity: "a", acquireTime: "2021-12-31T00:00:00.000000Z", leaseTransitions: 4 };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  const a = candidate(client, clock, "a");
  await settle();
  assert.deepEqual(a.events, ["leader a", "started"]);
  assert.partialDeepStrictEqual(leaseOf(client), spec);
  a.stop.abort();
});

test("work that fails immediately is aborted", async () => {
  let working: AbortSignal | undefined;
  const a = candidate(newFakeClient(), newFakeClock(), "a", {
    onStarted: (signal) => {
      working = signal;
      throw new Error("cannot begin");
    },
  });
  await assert.rejects(a.finished, /cannot begin/);
  assert.deepEqual([working?.aborted, a.events], [true, ["leader a", "stopped"]]);
});

test("an expired lease whose write failed is not acquired", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const spec = { holderIdentity: "x", leaseDurationSeconds: 15 };
  client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
  client.react("update", "leases", () => {
    throw serviceUnavailable("away");
  });
  const a = candidate(client, clock, "a");
  await clock.advance(20_000);
  assert.deepEqual(a.events, ["leader x"]);
  a.stop.abort();
});

test("with a reconnection a candidate acquires the lease as soon as the server is back, and logs the outage once", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  let answer: Error | undefined = new Error("connect ECONNREFUSED");
  client.react("*", "leases", () => {
    if (answer !== undefined) throw answer;
  });
  const errors: string[] = [];
  const log: Logger = { ...discardLogger, error: (text: string) => void errors.push(text) };
  const reconnection = new Reconnection({ periodMs: () => 500, clock, random: () => 1 });
  const a = candidate(client, clock, "a", { reconnection, log });
  for (let second = 0; second < 300; second++) await clock.advance(1_000);
  assert.deepEqual([a.events.length, errors.length], [0, 1]);
  answer = serviceUnavailable("starting");
  await clock.advance(500);
  const { length } = client.actions;
  await clock.advance(1_999);
  assert.equal(client.actions.length, length, "a server that answers is asked every 2 s");
  answer = new Error("connect ECONNREFUSED");
  await clock.advance(1);
  answer = undefined;
  await clock.advance(500);
  assert.deepEqual(a.events, ["leader a", "started"]);
  a.stop.abort();
  await a.finished;
});

test("candidates try after the retry period and up to 1.2 times as long again, at random", async () => {
  for (const [roll, waitMs] of [
    [0, 2_000],
    [0.5, 3_200],
    [1, 4_400],
  ] as const) {
    const client = newFakeClient();
    const clock = newFakeClock();
    const spec = { holderIdentity: "x", leaseDurationSeconds: 15 };
    client.put(leases, { metadata: { namespace: "kube-system", name: "test" }, spec } as KubeObject);
    const a = candidate(client, clock, "a", { random: () => roll });
    await settle();
    const { length } = client.actions;
    await clock.advance(waitMs - 1);
    assert.equal(client.actions.length, length);
    await clock.advance(1);
    assert.equal(client.actions.length, length + 1);
    a.stop.abort();
    await a.finished;
  }
});

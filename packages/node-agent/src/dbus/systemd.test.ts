import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type FakeSystemd, startFakeSystemd } from "../testing/fake-systemd.ts";
import { connectToPeer, type DbusConnection } from "./connection.ts";
import { Systemd, type UnitProperty } from "./systemd.ts";

const shares = (value: bigint): UnitProperty => ["CPUShares", { type: "t", value }];

async function talking(t: TestContext, clock = realClock): Promise<{ systemd: Systemd; played: FakeSystemd }> {
  const played = await startFakeSystemd(t);
  const systemd = new Systemd({ clock, connect: () => connectToPeer(played.address) });
  t.after(() => systemd.close());
  return { systemd, played };
}

test("units are started with their properties, changed and stopped; each job is awaited", async (t) => {
  const { systemd, played } = await talking(t);
  for (const unit of ["a.slice", "b.slice"]) {
    await systemd.startTransientUnit(unit, [["Wants", { type: "as", value: ["-.slice"] }], shares(2n)]);
  }
  await systemd.setUnitProperties("a.slice", [shares(1024n)]);
  const seen = [...played.units].map(([unit, properties]) => [unit, Object.fromEntries(properties)]);
  assert.deepEqual(seen, [
    ["a.slice", { Wants: ["-.slice"], CPUShares: 1024n }],
    ["b.slice", { Wants: ["-.slice"], CPUShares: 2n }],
  ]);
  for (const unit of ["a.slice", "b.slice"]) await systemd.stopUnit(unit);
  assert.equal(played.units.size, 0);
  assert.deepEqual(played.manners, ["replace", "replace", true, "replace", "replace"], "true: until the next boot");
});

test("starting an existing unit keeps it; stopping a missing unit is no error", async (t) => {
  const { systemd, played } = await talking(t);
  await systemd.startTransientUnit("a.slice", [shares(2n)]);
  await systemd.startTransientUnit("a.slice", [shares(3n)]);
  assert.equal(played.units.get("a.slice")?.get("CPUShares"), 2n);
  await systemd.stopUnit("a.slice");
  await systemd.stopUnit("a.slice");
});

test("a unit that does not start is an error, and does not keep its name", async (t) => {
  const { systemd, played } = await talking(t);
  played.nextResult = "failed";
  await assert.rejects(systemd.startTransientUnit("a.slice", []), {
    message: "error creating systemd unit `a.slice`: got `failed`",
  });
  assert.deepEqual(played.calls, ["StartTransientUnit a.slice", "ResetFailedUnit a.slice"]);
  await assert.rejects(systemd.setUnitProperties("a.slice", [shares(2n)]), { message: "Unit a.slice not loaded." });
});

test("a job that does not end within 30 seconds is an error", async (t) => {
  const clock = newFakeClock();
  const { systemd, played } = await talking(t, clock);
  for (const { work, message } of [
    { work: () => systemd.startTransientUnit("a.slice", []), message: "Timeout waiting for systemd to create a.slice" },
    { work: () => systemd.stopUnit("b.slice"), message: "Timed out while waiting for systemd to remove b.slice" },
  ]) {
    await systemd.startTransientUnit("b.slice", []);
    played.nextResult = "never";
    const before = played.calls.length;
    const ended = assert.rejects(work(), { message });
    await waitFor(() => played.calls.length > before, { what: "the call" });
    await waitFor(() => clock.waiting > 0, { what: "the wait" });
    let hasEnded = false;
    void ended.then(() => {
      hasEnded = true;
    });
    await clock.advance(29_999);
    assert.equal(hasEnded, false);
    await clock.advance(1);
    await ended;
  }
});

test("a request is repeated when systemd restarts, whether systemd had received it or not", async (t) => {
  const { systemd, played } = await talking(t);
  await systemd.startTransientUnit("a.slice", []);
  await played.stop();
  await played.start();
  played.cutOff = { unheard: 1, unanswered: 1 };
  await systemd.startTransientUnit("b.slice", [shares(2n)]);
  played.cutOff = { unheard: 1, unanswered: 1 };
  await systemd.stopUnit("b.slice");
  assert.deepEqual([...played.units.keys()], ["a.slice"]);
});

test("requests fail after several attempts while systemd is unreachable, and succeed once it is back", async (t) => {
  const clock = newFakeClock();
  const { systemd, played } = await talking(t, clock);
  await systemd.startTransientUnit("a.slice", []);
  await played.stop();
  let gaveUp = false;
  const ended = assert.rejects(systemd.startTransientUnit("b.slice", []), /systemd cannot be reached: connect ENOENT/);
  void ended.then(() => (gaveUp = true));
  await waitFor(() => clock.advance(1_000).then(() => gaveUp), { what: "it to give up" });
  await played.start();
  await systemd.startTransientUnit("b.slice", []);
  assert.deepEqual([...played.units.keys()], ["a.slice", "b.slice"]);
});

test("no timer is left once a job has ended after its call was answered", async (t) => {
  const clock = newFakeClock();
  const { systemd, played } = await talking(t, clock);
  const held: (() => void)[] = [];
  played.held = held;
  const started = systemd.startTransientUnit("a.slice", []);
  await waitFor(() => clock.waiting === 1 && held.length === 1, { what: "the wait for the job" });
  held[0]?.();
  await started;
  assert.equal(clock.waiting, 0);
});

test("jobs whose end is not heard because systemd restarts are begun again", async (t) => {
  const clock = newFakeClock();
  const { systemd, played } = await talking(t, clock);
  played.held = [];
  const started = Promise.all(["a.slice", "b.slice"].map((unit) => systemd.startTransientUnit(unit, [shares(2n)])));
  await waitFor(() => clock.waiting === 2 && played.held?.length === 2, { what: "the wait for the jobs" });
  played.held = undefined;
  played.units.clear();
  await played.stop();
  await played.start();
  let hasStarted = false;
  void started.then(() => {
    hasStarted = true;
  });
  const begun = clock.monotonic();
  await waitFor(async () => {
    if (!hasStarted) await clock.advance(50);
    return hasStarted;
  });
  assert.ok(clock.monotonic() - begun < 20_000, "sooner than the jobs' time limit");
  for (const unit of ["a.slice", "b.slice"]) assert.equal(played.units.get(unit)?.get("CPUShares"), 2n);
});

test("a connection that cannot hear of ended jobs is closed, and another one is used", async (t) => {
  const played = await startFakeSystemd(t);
  const buses: DbusConnection[] = [];
  let closed = 0;
  const systemd = new Systemd({
    clock: realClock,
    async connect() {
      const bus = await connectToPeer(played.address);
      if (buses.push(bus) === 1) bus.onSignal = () => Promise.reject(new Error("no match rule"));
      void bus.closed.then(() => closed++);
      return bus;
    },
  });
  t.after(() => systemd.close());
  await systemd.startTransientUnit("a.slice", []);
  assert.deepEqual([buses.length, closed, [...played.units.keys()]], [2, 1, ["a.slice"]]);
});

test("a request that waits for systemd's return fails at its next attempt once the agent has closed the connection", async (t) => {
  const clock = newFakeClock();
  const { systemd, played } = await talking(t, clock);
  await played.stop();
  const failed = assert.rejects(systemd.startTransientUnit("a.slice", []), /systemd/);
  await waitFor(() => clock.waiting > 0, { what: "the wait" });
  systemd.close();
  await played.start();
  await clock.advance(50);
  await failed;
  assert.deepEqual(played.calls, []);
});

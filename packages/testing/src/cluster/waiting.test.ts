import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { Write } from "../history/write-log.ts";
import { Activity } from "./activity.ts";
import type { ClusterParts } from "./cluster.ts";
import { Waiting } from "./waiting.ts";

/** Waits in real time on a fake clock, over writes that the test makes. */
function newWaiting() {
  const clock = newFakeClock();
  const activity = new Activity();
  const all: Write[] = [];
  const parts = { clock, activity, writes: { all }, startMs: clock.now(), pace: undefined };
  const waiting = new Waiting(parts as unknown as ClusterParts, {} as Client); // cast: the parts that waiting reads
  /** Waits that read through the client; no writes are known to their stories. */
  const waitingFor = (client: Client): Waiting =>
    new Waiting({ ...parts, writes: undefined, drive: (_: string, work: unknown) => work } as unknown as ClusterParts, client); // cast: as above
  const began = clock.now();
  const write = (key = "/registry/pods/a/b"): void => {
    all.push({ revision: 1, atMs: clock.now(), key, type: "put", by: undefined, value: undefined, before: undefined });
  };
  /** Advances in small steps. @returns after how many ms the work has ended; undefined when it has not */
  const endOf = async (
    work: Promise<unknown>,
    limitMs: number,
    at: Readonly<Record<number, () => void>> = {},
  ): Promise<number | undefined> => {
    let end: number | undefined;
    work.then(
      () => (end = clock.now() - began),
      () => (end = clock.now() - began),
    );
    while (end === undefined && clock.now() - began < limitMs) {
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      at[clock.now() - began]?.();
      await clock.advance(5);
    }
    return end;
  };
  return { waiting, waitingFor, activity, write, endOf, passedMs: () => clock.now() - began };
}

/** Waits for an object that the test gives. @returns the error of a wait, or `done` */
function newReading() {
  const answers: { object: object | undefined; err: Error | undefined } = { object: undefined, err: undefined };
  const client = {
    async get() {
      if (answers.err !== undefined) throw answers.err;
      if (answers.object === undefined) throw notFound(pods, "p");
      return answers.object;
    },
    list: async () => ({ items: [] }),
    raw: async () => ({ status: 404, body: Buffer.alloc(0) }),
  };
  const { endOf, waitingFor } = newWaiting();
  const waiting = waitingFor(client as unknown as Client); // cast: what a wait and a story call
  const target = { namespace: "ns", name: "p" };
  const outcome = async (work: Promise<unknown>): Promise<string> => {
    const said = work.then(
      () => "done",
      (err: Error) => err.message,
    );
    await endOf(said, Number.POSITIVE_INFINITY);
    return said;
  };
  return {
    answers,
    eventually: (isSo: () => boolean, ref: ResourceRef = pods) =>
      outcome(waiting.eventually(ref, target, isSo, { within: "1s" })),
    gone: () => outcome(waiting.eventuallyGone(pods, target, { within: "1s" })),
  };
}

test("a cluster has settled when nothing was written for the quiet time, counted from the last write", async () => {
  const { waiting, write, endOf } = newWaiting();
  const end = await endOf(waiting.settle({ quiet: 200 }), 2_000, {
    150: () => write(),
    300: () => write("/registry/leases/a/b"),
  });
  assert.ok(end !== undefined && end >= 350 && end <= 460, `${end} ms`);
});

test("an open request keeps a cluster from having settled; the limit names what was written", async () => {
  const { waiting, activity, endOf } = newWaiting();
  const done = activity.begin("GET /x of y");
  const end = await endOf(waiting.settle({ quiet: 100 }), 3_000, { 500: done });
  assert.ok(end !== undefined && end >= 500 && end <= 600, `${end} ms`);

  const busy = newWaiting();
  const failed = busy.waiting.settle({ quiet: 100, within: 400 });
  const writes = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [index * 50, () => busy.write()]));
  const limit = await busy.endOf(failed, 3_000, writes);
  assert.ok(limit !== undefined && limit >= 400 && limit <= 460, `${limit} ms`);
  await assert.rejects(
    failed,
    /^Error: the cluster has not settled within 0\.4 s: something was written at least every 0\.1 s\n {2}\d × pods\/a\/b by the store itself, last at /,
  );
});

test("a condition is waited for as long as it may take, and its last value is shown", async () => {
  const { waiting, endOf } = newWaiting();
  let asked = 0;
  const so = waiting.waitFor(() => ++asked > 3 && "yes");
  await endOf(so, 1_000);
  assert.equal(await so, "yes");
  const never = newWaiting();
  const failed = never.waiting.waitFor(() => 0, { within: "1s", what: "luck" });
  const end = await never.endOf(failed, 5_000);
  assert.ok(end !== undefined && end >= 1_000 && end <= 1_100, `${end} ms`);
  await assert.rejects(failed, { message: "waited 1 s for luck; last: 0" });
  await assert.rejects(never.waiting.advance("1s"), /^Error: real time cannot be moved/);
});

test("an object that is not as wanted in time is told with its last status, cut, and its story; a failed read is passed on", async () => {
  const { answers, eventually, gone } = newReading();
  const long = "x".repeat(5_000);
  answers.object = { status: { long } };
  const failed = await eventually(() => false);
  assert.match(failed, /^waited 1 s for Pod ns\/p to be as wanted; its status is \{"long":"x+…\n\n$/);
  assert.equal(/its status is (.*)…/.exec(failed)?.[1]?.length, 4_000);
  assert.equal(await gone(), 'waited 1 s for Pod ns/p to be gone; its status is {"long":"' + `${"x".repeat(3_991)}…\n\n`);
  answers.object = {};
  assert.equal(await eventually(() => false, nodes), "waited 1 s for Node p to be as wanted; its status is {}\n\n");
  answers.object = undefined;
  assert.equal(await eventually(() => true), "waited 1 s for Pod ns/p to be as wanted; it does not exist\n\n");
  assert.equal(await gone(), "done");
  answers.err = new Error("forbidden");
  assert.equal(await gone(), "forbidden");
});

test("a condition is read at growing intervals, at most 50 ms apart", async () => {
  const { waiting, endOf, passedMs } = newWaiting();
  const readAt: number[] = [];
  const so = waiting.waitFor(() => readAt.push(passedMs()) > 30);
  assert.notEqual(await endOf(so, 2_000), undefined);
  const pauses = readAt.slice(1).map((at, index) => at - readAt[index]!);
  assert.ok(pauses[0]! <= 10, `${pauses}`);
  // The clock advances in steps of 5 ms.
  assert.ok(
    pauses.slice(-10).every((pause) => pause === 50),
    `${pauses}`,
  );
});

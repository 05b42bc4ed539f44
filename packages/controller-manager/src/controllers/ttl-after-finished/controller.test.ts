import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aJob, finishedAt } from "../../testing/jobs.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newTtlAfterFinishedController } from "./controller.ts";

const ended = (ttl: number | undefined, type: "Complete" | "Failed" = "Complete", time = "2022-01-01T00:00:00Z"): Job =>
  aJob({
    spec: ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl },
    status: { conditions: [{ type: "Suspended", status: "False" }, finishedAt(time, type)] },
  });

async function runWith(t: Parameters<typeof newTestContext>[0], job: Job) {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  client.put(jobs, job);
  await run(newTtlAfterFinishedController(ctx));
  const stored = () => client.object<Job>(jobs, "default/work");
  return {
    ...context,
    stored,
    /** Foreground deletion sets deletionTimestamp; the Job remains until its Pods are deleted. */
    isDeleted: () => stored()?.metadata.deletionTimestamp !== undefined,
    async pass(ms: number) {
      await clock.advance(ms);
      await settle(30);
    },
  };
}

for (const type of ["Complete", "Failed"] as const) {
  test(`deletes a job when its ttlSecondsAfterFinished has passed: ${type}`, async (t) => {
    const { isDeleted, pass, client, ctx } = await runWith(t, ended(30, type));
    await pass(29_000);
    assert.ok(!isDeleted());
    await pass(1000);
    assert.ok(isDeleted());
    const { sent } = client.writes.find(({ verb }) => verb === "delete") ?? {};
    assert.deepEqual(sent, { propagationPolicy: "Foreground", preconditions: { uid: "work-uid" } });
    const metrics = await ctx.registry.render();
    assert.match(metrics, /^ttl_after_finished_controller_job_deletion_duration_seconds_count 1$/m);
    assert.match(metrics, /^ttl_after_finished_controller_job_deletion_duration_seconds_sum 0$/m);
  });
}

for (const { name, job } of [
  { name: "that has no such time", job: ended(undefined) },
  { name: "that has not ended", job: aJob({ spec: { ttlSecondsAfterFinished: 0 } }) },
  {
    name: "that is being deleted already",
    job: { ...ended(0), metadata: { ...ended(0).metadata, deletionTimestamp: "2022-01-01T00:00:00Z" } },
  },
  {
    name: "that failed once but still runs",
    job: aJob({ spec: { ttlSecondsAfterFinished: 0 }, status: { conditions: [{ type: "Failed", status: "False" }] } }),
  },
]) {
  test(`leaves a job alone ${name}`, async (t) => {
    const { pass, client } = await runWith(t, job);
    await pass(3_600_000);
    assert.deepEqual(client.writes, []);
  });
}

test("a finished Job with ttlSecondsAfterFinished 0 is deleted immediately", async (t) => {
  const { client, isDeleted } = await runWith(t, aJob({ spec: { ttlSecondsAfterFinished: 0 } }));
  client.put(jobs, ended(0));
  await settle(30);
  assert.ok(isDeleted());
});

test("asks the server before it deletes: its time may have been made longer", async (t) => {
  const { client, isDeleted, pass } = await runWith(t, ended(30));
  client.react("get", "jobs", () => ended(60));
  await pass(30_000);
  assert.ok(!isDeleted());
  await pass(29_000);
  assert.ok(!isDeleted());
  await pass(1000);
  assert.ok(isDeleted());
});

test("does not delete another job that has its name now", async (t) => {
  const { client, isDeleted, pass, stored } = await runWith(t, ended(30));
  const other: Job = { ...ended(30), metadata: { ...ended(30).metadata, uid: "other-uid" } };
  client.react("get", "jobs", () => ended(30)); // read just before the other Job was created
  client.react("watch", "jobs", () => undefined);
  client.remove(jobs, "default/work");
  client.put(jobs, { ...other, status: {} });
  await pass(60_000);
  assert.ok(!isDeleted());
  assert.equal(stored()?.metadata.uid, "other-uid");
});

test("tries again when the server is away", async (t) => {
  const { client, isDeleted, pass } = await runWith(t, ended(30));
  let refusals = 2;
  client.react("delete", "jobs", () => {
    if (refusals-- > 0) throw serviceUnavailable("not now");
    return undefined;
  });
  await pass(31_000);
  assert.ok(isDeleted());
});

test("the metric of a late deletion is the delay in seconds", async (t) => {
  const { pass, ctx } = await runWith(t, ended(0, "Complete", "2021-12-31T23:59:30Z"));
  await pass(0);
  assert.match(await ctx.registry.render(), /^ttl_after_finished_controller_job_deletion_duration_seconds_sum 30$/m);
});

for (const { what, answer } of [
  { what: "was deleted by another client", answer: () => undefined },
  { what: "has no time to live any more", answer: () => ended(undefined) },
])
  test(`a job that ${what}, which the cache does not show yet, is left alone without a retry`, async (t) => {
    const context = newTestContext(t);
    const { client, clock, ctx, run } = context;
    client.put(jobs, ended(0));
    client.react("get", "jobs", () => {
      const live = answer();
      if (live === undefined) throw notFound(jobs, "work");
      return live;
    });
    await run(newTtlAfterFinishedController(ctx));
    await clock.advance(60_000);
    await settle(30);
    assert.deepEqual(client.writes, []);
    assert.equal(client.actions.filter(({ verb }) => verb === "get").length, 1);
  });

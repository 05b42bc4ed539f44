import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Job, JobCondition } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { runJob } from "../../testing/run-job.ts";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { suspended, withCondition } from "./conditions.ts";
import { newJobController } from "./controller.ts";

test("a job of the name of a deleted one does not wait for the pods of that one", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(jobs, aJob());
  let created = 0;
  client.react("create", "pods", () => aJobPod(aJob(), `unseen-${++created}`)); // not stored, so no watch event follows
  await run(newJobController(ctx));
  client.remove(jobs, "default/work");
  await settle(30);
  client.put(jobs, aJob());
  await settle(30);
  assert.equal(created, 2);
});

test("a job whose deadline has passed has not failed while a pod of it cannot be deleted", async (t) => {
  const job = aJob({ spec: { activeDeadlineSeconds: 30, parallelism: 2, completions: 2 } });
  const { client, clock, podsNow, condition, status } = await runJob(t, job);
  const [held] = podsNow();
  let refuse = true;
  client.react("delete", "pods", ({ name }) => {
    if (refuse && name === held?.metadata.name) throw forbidden(pods, name, "not now");
  });
  await clock.advance(30_000);
  await settle(30);
  assert.deepEqual([condition("Failed"), status().active], [undefined, 1]);
  refuse = false;
  await clock.advance(20_000);
  await settle(30);
  assert.deepEqual([condition("Failed")?.reason, status().active], ["DeadlineExceeded", undefined]);
});

test("a failed job without tracking counts all of its active pods as failed, also one that cannot be deleted", async (t) => {
  const job = aJob({ spec: { activeDeadlineSeconds: 30, parallelism: 2, completions: 2 }, tracked: false });
  const { client, clock, podsNow, condition, status } = await runJob(t, job);
  const [held] = podsNow();
  client.react("delete", "pods", ({ name }) => {
    if (name === held?.metadata.name) throw forbidden(pods, name, "not now");
  });
  await clock.advance(30_000);
  await settle(30);
  const { active, failed } = status();
  assert.deepEqual([condition("Failed")?.reason, active, failed], ["DeadlineExceeded", undefined, 2]);
});

test("the backoff starts over when the job is suspended", async (t) => {
  const { active, end, change } = await runJob(t, aJob());
  await end("Failed");
  await end("Failed");
  assert.equal(active().length, 0, "waits");
  await change({ suspend: true });
  await change({ suspend: false });
  assert.equal(active().length, 1);
  await end("Failed");
  assert.equal(active().length, 1, "replaced at once");
});

test("a pod that had succeeded before it was adopted is counted in the same look, without another one", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const job = aJob({ spec: { manualSelector: true } });
  const { metadata, ...pod } = aJobPod(job, "orphan", { phase: "Succeeded", withFinalizer: false });
  const { ownerReferences: _, ...orphan } = metadata;
  client.put(jobs, job);
  client.put(pods, { ...pod, metadata: orphan });
  await run(newJobController(ctx));
  assert.deepEqual(
    client.writes.filter(({ verb }) => verb === "create"),
    [],
  );
  assert.equal(client.object<Job>(jobs, "default/work")?.status?.succeeded, 1);
});

test("in a namespace that has begun to end no pod is created, without a retry or an event", async (t) => {
  const { client, clock, ctx, run, events } = newTestContext(t);
  let tries = 0;
  client.react("create", "pods", () => {
    tries++;
    throw namespaceTerminating(pods);
  });
  client.put(jobs, aJob());
  await run(newJobController(ctx));
  await clock.advance(60_000);
  await settle(30);
  assert.deepEqual([tries, events], [1, []]);
});

test("a condition is written anew when only its message is another, and not when it is the same", () => {
  const now = Date.parse("2022-01-01T00:00:00Z");
  const first = withCondition({}, suspended, now);
  assert.equal(withCondition(first, suspended, now + 60_000), first);
  const [condition] = first.conditions ?? [];
  const other = { conditions: [{ ...(condition as JobCondition), message: "for another reason" }] };
  assert.equal(withCondition(other, suspended, now).conditions?.[0]?.message, "Job suspended");
});

test("the pods that were to be counted of a job that is no longer tracked are not listed any more", async (t) => {
  const job = aJob({ tracked: false });
  const { status } = await runJob(t, { ...job, status: { uncountedTerminatedPods: { succeeded: ["gone"] } } });
  assert.deepEqual([status().active, status().uncountedTerminatedPods], [1, undefined]);
});

test("a status whose write got no answer is read from the server once", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(jobs, aJob());
  let failures = 1;
  client.react("update", "jobs", () => {
    if (failures-- > 0) throw serviceUnavailable("etcd is busy");
  });
  await run(newJobController(ctx));
  await clock.advance(10_000);
  await settle(30);
  client.put(jobs, {
    ...(client.object<Job>(jobs, "default/work") as Job),
    metadata: { ...aJob().metadata, labels: { touched: "yes" } },
  });
  await settle(30);
  assert.equal(client.actions.filter(({ verb, resource }) => verb === "get" && resource === "jobs").length, 1);
});

test("a job that is gone when its status is read again says nothing about the next one of its name", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.put(jobs, aJob());
  let isFirst = true;
  client.react("update", "jobs", () => {
    if (!isFirst) return undefined;
    isFirst = false;
    client.remove(jobs, "default/work");
    throw serviceUnavailable("etcd is busy");
  });
  await run(newJobController(ctx));
  await clock.advance(10_000);
  await settle(30);
  const reads = (): number => client.actions.filter(({ verb, resource }) => verb === "get" && resource === "jobs").length;
  assert.equal(reads(), 1);
  const next = aJob();
  client.put(jobs, { ...next, metadata: { ...next.metadata, uid: "next" } });
  await clock.advance(10_000);
  await settle(30);
  assert.equal(reads(), 1);
});

test("a pod of a former job of the same name loses its finalizer, and is not counted", async (t) => {
  const former = aJob({ name: "work" });
  former.metadata = { ...former.metadata, uid: "former-uid", labels: { "job-name": "former" } };
  const { client, ctx, run } = newTestContext(t);
  client.put(jobs, aJob());
  client.put(pods, aJobPod(former, "old", { phase: "Succeeded" }));
  await run(newJobController(ctx));
  assert.deepEqual(client.object<Pod>(pods, "default/old")?.metadata.finalizers ?? [], []);
  assert.equal(client.object<Job>(jobs, "default/work")?.status?.succeeded, undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, forbidden, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { CronJob, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aCronJob, aJob, finishedAt } from "../../testing/jobs.ts";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newCronJobController } from "./controller.ts";

type Test = Parameters<typeof newTestContext>[0];

/** Runs the controller with one CronJob created at midnight. */
async function runCronJob(t: Test, cronJob: CronJob, ...children: Job[]) {
  const context = newTestContext(t);
  const { client, ctx, clock, run } = context;
  client.put(cronJobs, cronJob);
  client.put(jobs, ...children);
  await run(newCronJobController(ctx));
  const current = (): CronJob => client.object<CronJob>(cronJobs, "default/tick") as CronJob;
  return {
    ...context,
    current,
    status: () => current().status ?? {},
    names: () => client.objects<Job>(jobs).map(({ metadata }) => metadata.name),
    async pass(ms: number) {
      await clock.advance(ms);
      await settle(30);
    },
    async finish(name: string, type: "Complete" | "Failed" = "Complete") {
      const time = new Date(clock.now()).toISOString().replace(/\.\d+/, "");
      const job = client.object<Job>(jobs, `default/${name}`) as Job;
      const completionTime = type === "Complete" ? { completionTime: time } : {};
      client.put(jobs, { ...job, status: { ...completionTime, conditions: [finishedAt(time, type)] } });
      await settle(30);
    },
    async change(spec: Partial<CronJob["spec"]>) {
      client.put(cronJobs, { ...current(), spec: { ...current().spec, ...spec } });
      await settle(30);
    },
  };
}

/** 2022-01-01T00:01Z in minutes since the epoch, as in Job names. */
const first = 27_349_921;
const childOf = (cronJob: CronJob, name: string, status: Job["status"] = {}): Job =>
  aJob({ name, status, owner: newControllerRef(cronJob, cronJobs) });

test("the time between a schedule and its job is measured in seconds", async (t) => {
  const { pass, change, names, ctx } = await runCronJob(t, aCronJob({ spec: { suspend: true } }));
  await pass(90_000);
  await change({ suspend: false });
  await pass(0);
  assert.deepEqual(names(), [`tick-${first}`]);
  assert.match(await ctx.registry.render(), /^cronjob_controller_cronjob_job_creation_skew_duration_seconds_sum 30$/m);
});

test("starts a job each minute, and keeps the list of those that run", async (t) => {
  const { names, status, pass, client, events, finish, ctx } = await runCronJob(t, aCronJob());
  assert.deepEqual(names(), []);
  await pass(60_200);
  assert.deepEqual(names(), [`tick-${first}`]);
  const [job] = client.objects<Job>(jobs) as [Job];
  assert.deepEqual(job.metadata.labels, { app: "tick" });
  assert.deepEqual(job.metadata.annotations, { note: "kept" });
  hasFields(job.metadata.ownerReferences, [{ kind: "CronJob", name: "tick", controller: true }]);
  assert.deepEqual(job.spec.template, aCronJob().spec.jobTemplate.spec.template);
  const { active = [], lastScheduleTime } = status();
  const { name, namespace, uid } = job.metadata;
  hasFields(active, [{ apiVersion: "batch/v1", kind: "Job", name, namespace, uid }]);
  assert.equal(lastScheduleTime, "2022-01-01T00:01:00Z");
  assert.ok(events.includes(`Normal SuccessfulCreate Created job tick-${first}`));
  assert.match(await ctx.registry.render(), /^cronjob_controller_cronjob_job_creation_skew_duration_seconds_count 1$/m);

  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first}`, `tick-${first + 1}`]);
  await finish(`tick-${first}`);
  assert.deepEqual(
    status().active?.map((reference) => reference.name),
    [`tick-${first + 1}`],
  );
  assert.equal(status().lastSuccessfulTime, "2022-01-01T00:02:00Z");
  assert.equal(
    events.filter((event) => event === `Normal SawCompletedJob Saw completed job: tick-${first}, status: Complete`).length,
    1,
  );
});

test("Forbid waits until the job that runs has ended", async (t) => {
  const { names, pass, finish, events } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Forbid" } }));
  await pass(60_200);
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first}`]);
  assert.ok(events.some((event) => event.startsWith("Normal JobAlreadyActive ")));
  await finish(`tick-${first}`);
  assert.deepEqual(names(), [`tick-${first}`, `tick-${first + 1}`]);
});

test("Replace deletes the job that runs", async (t) => {
  const { names, pass, status, events, client } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Replace" } }));
  await pass(60_200);
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first + 1}`]);
  assert.equal(status().active?.length, 1);
  const active = client.writes.flatMap(({ subresource, sent }) =>
    subresource === "status" ? [(sent as CronJob).status?.active?.length] : [],
  );
  assert.deepEqual(active, [1, 1], "the one that was deleted is not listed beside the new one");
  assert.ok(events.includes(`Normal SuccessfulDelete Deleted job tick-${first}`));
  const deletion = client.writes.find(({ verb }) => verb === "delete");
  assert.deepEqual(deletion?.sent, { propagationPolicy: "Background" });
});

test("suspended it starts nothing, resumed what is due", async (t) => {
  const { names, pass, change } = await runCronJob(t, aCronJob({ spec: { suspend: true } }));
  await pass(150_000);
  assert.deepEqual(names(), []);
  await change({ suspend: false });
  assert.deepEqual(names(), [`tick-${first + 1}`]);
});

test("a changed schedule counts from then on", async (t) => {
  const { names, pass, change, events } = await runCronJob(t, aCronJob({ spec: { schedule: "0 0 1 * *" } }));
  await pass(90_000);
  await change({ schedule: "* * * * *" });
  assert.deepEqual(names(), []);
  await pass(30_200);
  assert.deepEqual(names(), [`tick-${first + 1}`]);
  await change({ schedule: "never" });
  assert.ok(events.includes("Warning UnParseableCronJobSchedule unparseable schedule for cronjob: never"));
});

test("keeps three successes and one failure, the latest", async (t) => {
  const cronJob = aCronJob({ spec: { suspend: true } });
  const ended = (name: string, minute: number, type: "Complete" | "Failed"): Job => {
    const time = `2022-01-01T00:0${minute}:00Z`;
    const completionTime = type === "Complete" ? { completionTime: time } : {};
    return childOf(cronJob, name, { startTime: time, ...completionTime, conditions: [finishedAt(time, type)] });
  };
  const children = [
    ...[5, 3, 1, 4, 2].map((minute) => ended(`done-${minute}`, minute, "Complete")),
    ...[2, 1].map((minute) => ended(`failed-${minute}`, minute, "Failed")),
  ];
  const { names, events, status } = await runCronJob(t, cronJob, ...children);
  assert.deepEqual(names().toSorted(), ["done-3", "done-4", "done-5", "failed-2"]);
  assert.equal(status().lastSuccessfulTime, "2022-01-01T00:05:00Z");
  assert.equal(events.filter((event) => event.startsWith("Normal SuccessfulDelete Deleted job ")).length, 3);
});

test("reports jobs that it does not know, and those that went missing", async (t) => {
  const lost = { kind: "Job", apiVersion: "batch/v1", namespace: "default", name: "lost", uid: "lost-uid" };
  const cronJob = aCronJob({ spec: { suspend: true }, status: { active: [lost] } });
  const { events, status } = await runCronJob(t, cronJob, childOf(cronJob, "found"));
  assert.ok(events.includes("Warning UnexpectedJob Saw a job that the controller did not create or forgot: found"));
  assert.ok(events.includes("Normal MissingJob Active job went missing: lost"));
  assert.deepEqual(status().active ?? [], []);
});

test("a job that was started but not noted is noted, and not started again", async (t) => {
  const { names, status, pass, events } = await runCronJob(t, aCronJob(), childOf(aCronJob(), `tick-${first}`));
  await pass(60_200);
  assert.deepEqual(names(), [`tick-${first}`]);
  assert.deepEqual(
    status().active?.map(({ name }) => name),
    [`tick-${first}`],
  );
  assert.equal(status().lastScheduleTime, "2022-01-01T00:01:00Z");
  assert.ok(!events.some((event) => event.includes("SuccessfulCreate")));
});

test("a job that was started, not noted, and has finished since is not listed, and not started again", async (t) => {
  const ended = { completionTime: "2022-01-01T00:00:30Z", conditions: [finishedAt("2022-01-01T00:00:30Z")] };
  const { names, status, pass, events } = await runCronJob(t, aCronJob(), childOf(aCronJob(), `tick-${first}`, ended));
  await pass(60_200);
  assert.deepEqual(names(), [`tick-${first}`]);
  assert.deepEqual(events, [], "it was not seen to end");
  assert.deepEqual([status().active, status().lastScheduleTime], [undefined, "2022-01-01T00:01:00Z"]);
});

test("a job that is replaced and is gone when it is to be deleted is no failure, and not reported", async (t) => {
  const { client, names, pass, status, events } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Replace" } }));
  await pass(60_200);
  client.react("delete", "jobs", ({ name }) => {
    client.remove(jobs, `default/${name}`);
    throw notFound(jobs, name);
  });
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first + 1}`]);
  assert.deepEqual(
    status().active?.map(({ name }) => name),
    names(),
  );
  assert.ok(!events.some((event) => /Delete|MissingJob/.test(event)), events.join());
});

test("someone else's job of that name is left alone", async (t) => {
  const { names, status, pass } = await runCronJob(t, aCronJob(), aJob({ name: `tick-${first}` }));
  await pass(60_200);
  assert.deepEqual(status(), {});
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first}`, `tick-${first + 1}`]);
});

test("starts each job once though its status cannot be stored at first", async (t) => {
  const { client, names, status, pass, events } = await runCronJob(t, aCronJob());
  let refusals = 2;
  client.react("update", "cronjobs", () => {
    if (refusals-- > 0) throw conflict(cronJobs, "tick", "try again");
    return undefined;
  });
  await pass(61_000);
  assert.deepEqual(names(), [`tick-${first}`]);
  assert.equal(status().active?.length, 1);
  assert.equal(events.filter((event) => event.includes("SuccessfulCreate")).length, 1);
});

test("reports when it may not create, and keeps trying", async (t) => {
  const { client, names, pass, events } = await runCronJob(t, aCronJob());
  let refuse = true;
  client.react("create", "jobs", () => {
    if (refuse) throw forbidden(jobs, "", "exceeded quota");
    return undefined;
  });
  await pass(60_200);
  assert.ok(events.some((event) => event.startsWith("Warning FailedCreate Error creating job: jobs.batch")));
  refuse = false;
  await pass(30_000);
  assert.deepEqual(names(), [`tick-${first}`]);
});

test("being deleted it starts nothing, but keeps its list", async (t) => {
  const status = { active: [{ kind: "Job", namespace: "default", name: "run", uid: "run-uid" }] };
  const cronJob = aCronJob({ deletedAt: "2022-01-01T00:00:00Z", status });
  const job = childOf(cronJob, "run", { conditions: [finishedAt("2022-01-01T00:00:00Z", "Failed")] });
  const { names, pass, current } = await runCronJob(t, cronJob, job);
  await pass(120_000);
  assert.deepEqual(names(), ["run"]);
  assert.deepEqual(current().status?.active ?? [], []);
});

test("replaces a Job that is deleted concurrently, and reports no failure", async (t) => {
  const { names, pass, client, events } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Replace" } }));
  await pass(60_200);
  client.react("delete", "jobs", ({ name }) => {
    client.remove(jobs, `default/${name}`);
    throw notFound(jobs, name);
  });
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first + 1}`]);
  assert.deepEqual(
    events.filter((event) => event.includes("FailedDelete")),
    [],
  );
});

for (const [started, never] of [
  ["tick-1", "tick-2"],
  ["tick-2", "tick-1"],
] as const) {
  test(`of finished jobs the one that never started is kept: ${never}`, async (t) => {
    const cronJob = aCronJob({ spec: { suspend: true, failedJobsHistoryLimit: 1 } });
    const conditions = [finishedAt("2022-01-01T00:00:00Z", "Failed")];
    const { names } = await runCronJob(
      t,
      cronJob,
      childOf(cronJob, started, { conditions, startTime: "2021-12-31T00:00:00Z" }),
      childOf(cronJob, never, { conditions }),
    );
    assert.deepEqual(names(), [never]);
  });
}

test("of several jobs each that it does not know is reported, whatever the others are", async (t) => {
  const cronJob = aCronJob({ spec: { suspend: true, successfulJobsHistoryLimit: 3 } });
  const over = childOf(cronJob, "over", { conditions: [finishedAt("2022-01-01T00:00:00Z")] });
  const { events } = await runCronJob(t, cronJob, over, childOf(cronJob, "first"), childOf(cronJob, "second"));
  const unknown = events.filter((event) => event.startsWith("Warning UnexpectedJob "));
  assert.deepEqual(
    unknown.map((event) => event.split(": ")[1]),
    ["first", "second"],
  );
});

test("a job that ended is noted while one that started before it still runs", async (t) => {
  const { names, status, pass, finish } = await runCronJob(t, aCronJob());
  await pass(60_200);
  await pass(60_000);
  const [running, ended = ""] = names();
  await finish(ended);
  assert.deepEqual(
    status().active?.map(({ name }) => name),
    [running],
  );
  assert.equal(status().lastSuccessfulTime, "2022-01-01T00:02:00Z");
});

test("Replace starts nothing while the job that runs cannot be deleted", async (t) => {
  const { names, pass, client, status } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Replace" } }));
  await pass(60_200);
  let refusals = 2;
  client.react("delete", "jobs", () => {
    if (refusals-- > 0) throw forbidden(jobs, "tick", "not now");
  });
  await pass(59_900);
  assert.deepEqual([names(), status().active?.length], [[`tick-${first}`], 1]);
  await pass(30_000);
  assert.deepEqual([names(), status().active?.length], [[`tick-${first + 1}`], 1]);
});

test("Replace says that the job that runs cannot be looked up", async (t) => {
  const { pass, client, events } = await runCronJob(t, aCronJob({ spec: { concurrencyPolicy: "Replace" } }));
  await pass(60_200);
  client.react("get", "jobs", () => {
    throw forbidden(jobs, "tick", "not now");
  });
  await pass(60_000);
  assert.ok(events.includes('Warning FailedGet Get job: jobs.batch "tick" is forbidden: not now'), events.join("\n"));
});

test("Replace deletes each of several jobs that run, and lists the new one alone", async (t) => {
  const cronJob = aCronJob({ spec: { concurrencyPolicy: "Allow" } });
  const { names, status, pass, change } = await runCronJob(t, cronJob);
  await pass(60_200);
  await pass(60_000);
  assert.equal(status().active?.length, 2);
  await change({ concurrencyPolicy: "Replace" });
  await pass(60_000);
  assert.deepEqual(names(), [`tick-${first + 2}`]);
  assert.deepEqual(
    status().active?.map(({ name }) => name),
    [`tick-${first + 2}`],
  );
});

test("a job that cannot be read is not treated as missing", async (t) => {
  const cronJob = aCronJob({ spec: { suspend: true } });
  const active = [{ kind: "Job", name: "other", namespace: "default", uid: "other-uid" }];
  const context = newTestContext(t);
  let isAway = true;
  context.client.react("get", "jobs", () => {
    if (isAway) throw forbidden(jobs, "other", "not now");
  });
  context.client.put(cronJobs, { ...cronJob, status: { active } });
  await context.run(newCronJobController(context.ctx));
  const listed = () => context.client.object<CronJob>(cronJobs, "default/tick")?.status?.active?.length ?? 0;
  assert.equal(listed(), 1);
  isAway = false;
  await context.clock.advance(60_000);
  await settle(30);
  assert.equal(listed(), 0);
  assert.ok(context.events.includes("Normal MissingJob Active job went missing: other"));
});

test("a job that was started, not noted, and has ended is not listed as active", async (t) => {
  const cronJob = aCronJob();
  const name = `tick-${first}`;
  const { names, status, pass, client } = await runCronJob(t, cronJob);
  const ended = childOf(cronJob, name, { conditions: [finishedAt("2022-01-01T00:01:00Z")] });
  client.react("create", "jobs", () => {
    client.put(jobs, ended);
    return undefined; // it exists already
  });
  await pass(60_200);
  assert.deepEqual(names(), [name]);
  assert.deepEqual([status().active, status().lastScheduleTime], [undefined, "2022-01-01T00:01:00Z"]);
});

test("without limits each finished job is kept", async (t) => {
  const { successfulJobsHistoryLimit: _, failedJobsHistoryLimit: __, ...spec } = aCronJob({ spec: { suspend: true } }).spec;
  const cronJob = { ...aCronJob(), spec };
  const ended = (name: string, type: "Complete" | "Failed") =>
    childOf(cronJob, name, { conditions: [finishedAt("2022-01-01T00:00:00Z", type)], startTime: "2022-01-01T00:00:00Z" });
  const all = ["a", "b", "c", "d"].flatMap((name) => [ended(name, "Complete"), ended(`failed-${name}`, "Failed")]);
  const { names } = await runCronJob(t, cronJob, ...all);
  assert.equal(names().length, 8);
});

test("a limit of 0 keeps no job, one that is being deleted is not counted, and deleted ones are not listed", async (t) => {
  const ended = (at: string) => ({ conditions: [finishedAt(at)], startTime: at });
  const cronJob = aCronJob({ spec: { suspend: true, successfulJobsHistoryLimit: 0 } });
  const none = await runCronJob(t, cronJob, childOf(cronJob, "a", ended("2022-01-01T00:00:00Z")));
  assert.deepEqual(none.names(), []);
  const one = aCronJob({ spec: { suspend: true, successfulJobsHistoryLimit: 1 } });
  const leaving = childOf(one, "leaving", ended("2021-12-30T00:00:00Z"));
  leaving.metadata = { ...leaving.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["example.com/x"] };
  const { client } = await runCronJob(t, one, leaving, childOf(one, "kept", ended("2021-12-31T00:00:00Z")));
  assert.deepEqual(
    client.writes.filter(({ verb }) => verb === "delete"),
    [],
  );
});

test("a deleted job is not started again for the same time", async (t) => {
  const { names, pass, change, client } = await runCronJob(t, aCronJob());
  await pass(60_200);
  client.remove(jobs, `default/tick-${first}`);
  await change({ successfulJobsHistoryLimit: 5 });
  await pass(10_000);
  assert.deepEqual(names(), []);
  await pass(50_000);
  assert.deepEqual(names(), [`tick-${first + 1}`]);
});

test("what was seen is stored, and said once, though the next job cannot be created", async (t) => {
  const { client, pass, finish, status, events } = await runCronJob(t, aCronJob());
  await pass(60_200);
  client.react("create", "jobs", () => {
    throw forbidden(jobs, "", "exceeded quota");
  });
  await pass(60_000);
  await finish(`tick-${first}`);
  assert.equal(status().active, undefined);
  assert.equal(status().lastSuccessfulTime, "2022-01-01T00:02:00Z");
  assert.equal(events.filter((event) => event.includes("SawCompletedJob")).length, 1);
});

test("a job that only the cached cron job does not list is not reported, and counts as one that runs", async (t) => {
  const cronJob = aCronJob({ spec: { concurrencyPolicy: "Forbid" } });
  const known = childOf(cronJob, "known");
  const { uid, name, namespace } = known.metadata;
  const context = newTestContext(t);
  context.client.put(cronJobs, cronJob);
  context.client.put(jobs, known);
  const listed = { ...cronJob, status: { active: [{ kind: "Job", apiVersion: "batch/v1", uid, name, namespace }] } };
  context.client.react("get", "cronjobs", () => listed);
  await context.run(newCronJobController(context.ctx));
  assert.deepEqual(context.events, []);
  await context.clock.advance(61_000);
  await settle(30);
  assert.deepEqual(
    context.client.writes.filter(({ verb }) => verb === "create"),
    [],
  );
});

for (const { what, verb, answer, want } of [
  { what: "whose namespace has begun to end", verb: "create", answer: () => namespaceTerminating(jobs, "tick"), want: 1 },
  // Once at its time, and once for the event of the job that it created.
  { what: "that was deleted while its status is written", verb: "update", answer: () => notFound(cronJobs, "tick"), want: 2 },
] as const)
  test(`a cron job ${what} is no failure, and nothing is tried again for this time`, async (t) => {
    const { client, pass, events } = await runCronJob(t, aCronJob());
    let tries = 0;
    client.react(verb, verb === "create" ? "jobs" : "cronjobs", () => {
      tries++;
      throw answer();
    });
    await pass(60_200);
    await pass(50_000);
    assert.equal(tries, want);
    assert.deepEqual(
      events.filter((event) => event.startsWith("Warning Failed")),
      [],
    );
  });

test("of finished jobs that started at the same time the first by name is deleted", async (t) => {
  const cronJob = aCronJob({ spec: { suspend: true, failedJobsHistoryLimit: 1 } });
  const status = { conditions: [finishedAt("2022-01-01T00:00:00Z", "Failed")], startTime: "2021-12-31T00:00:00Z" };
  const { names } = await runCronJob(t, cronJob, childOf(cronJob, "b", status), childOf(cronJob, "a", status));
  assert.deepEqual(names(), ["b"]);
});

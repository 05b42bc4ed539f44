import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { conflict, forbidden, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { override } from "@coxswain/apimachinery/testing/override";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { runJob } from "../../testing/run-job.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newJobContext } from "./context.ts";
import { newJobController } from "./controller.ts";
import { podHandlers } from "./pod-handlers.ts";

for (const tracked of [true, false]) {
  const kind = tracked ? "tracked" : "untracked";

  test(`runs pods to completion, no more at once than its parallelism (${kind})`, async (t) => {
    const job = aJob({ spec: { parallelism: 2, completions: 3 }, tracked });
    const { active, podsNow, end, status, condition, events, counted } = await runJob(t, job);
    assert.equal(active().length, 2);
    assert.partialDeepStrictEqual(status(), { active: 2, startTime: "2022-01-01T00:00:00Z" });
    assert.deepEqual(podsNow()[0]?.metadata.finalizers ?? [], tracked ? ["batch.kubernetes.io/job-tracking"] : []);
    assert.match(podsNow()[0]?.metadata.name ?? "", /^work-[a-z0-9]{5}$/);
    await end("Succeeded");
    assert.equal(active().length, 2);
    await end("Succeeded");
    assert.equal(active().length, 1);
    await end("Succeeded");
    assert.equal(podsNow().length, 3);
    assert.ok(podsNow().every(({ metadata }) => (metadata.finalizers ?? []).length === 0));
    assert.partialDeepStrictEqual(status(), { succeeded: 3, completionTime: "2022-01-01T00:00:00Z" });
    assert.equal(status().active, undefined);
    assert.equal(condition("Complete")?.status, "True");
    assert.equal(events.at(-1), "Normal Completed Job completed");
    assert.ok(!events.some((event) => event.includes("TooMany")));
    assert.equal(events.filter((event) => event.startsWith("Normal SuccessfulCreate Created pod: work-")).length, 3);
    assert.equal(await counted("job_controller_job_finished_total", 'completion_mode="NonIndexed",result="succeeded"'), 1);
    const finished = 'completion_mode="NonIndexed",result="succeeded"';
    assert.equal(await counted("job_controller_job_pods_finished_total", finished), tracked ? 3 : 0);
  });

  test(`replaces the first failed pod at once, later ones after 10 s, 20 s, … (${kind})`, async (t) => {
    const { active, end, clock, status } = await runJob(t, aJob({ tracked }));
    await end("Failed");
    assert.equal(active().length, 1);
    assert.equal(status().failed, 1);
    for (const [i, delayMs] of [10_000, 20_000, 40_000].entries()) {
      await end("Failed");
      await clock.advance(delayMs - 1000);
      assert.equal(active().length, 0, `${delayMs}: too early`);
      await clock.advance(1000);
      await settle(30);
      assert.equal(active().length, 1, `${delayMs}: too late`);
      assert.equal(status().failed, i + 2);
    }
  });

  test(`reconciles again when the backoff after a failure ends, despite failures meanwhile (${kind})`, async (t) => {
    const { active, end, clock, status } = await runJob(t, aJob({ tracked }));
    await end("Failed");
    await clock.advance(6000);
    await end("Failed");
    await clock.advance(3000);
    assert.equal(active().length, 0, "too early");
    await clock.advance(1000);
    await settle(30);
    assert.deepEqual([active().length, status().failed], [1, 2]);
  });

  test(`fails beyond the backoff limit, and takes what runs with it (${kind})`, async (t) => {
    const job = aJob({ spec: { backoffLimit: 1, parallelism: 2, completions: 4 }, tracked });
    const { active, end, clock, status, condition, events, podsNow, counted } = await runJob(t, job);
    await end("Failed");
    await end("Failed");
    await clock.advance(10_000);
    await settle(30);
    assert.equal(active().length, 0);
    assert.equal(podsNow().filter(({ metadata }) => (metadata.finalizers ?? []).length > 0).length, 0);
    assert.partialDeepStrictEqual(condition("Failed"), {
      status: "True",
      reason: "BackoffLimitExceeded",
      message: "Job has reached the specified backoff limit",
    });
    assert.equal(status().failed, 3); // the Pod that was still running counts too
    assert.deepEqual([status().active, status().completionTime], [undefined, undefined]);
    assert.ok(events.includes("Warning BackoffLimitExceeded Job has reached the specified backoff limit"));
    assert.equal(await counted("job_controller_job_finished_total", 'completion_mode="NonIndexed",result="failed"'), 1);
  });

  test(`fails when it was active too long (${kind})`, async (t) => {
    const { active, clock, condition } = await runJob(t, aJob({ spec: { activeDeadlineSeconds: 30 }, tracked }));
    await clock.advance(29_000);
    assert.equal(active().length, 1);
    await clock.advance(1000);
    await settle(30);
    assert.equal(active().length, 0);
    assert.partialDeepStrictEqual(condition("Failed"), {
      reason: "DeadlineExceeded",
      message: "Job was active longer than specified deadline",
    });
  });

  test(`an indexed job runs each index once more until it succeeds (${kind})`, async (t) => {
    const job = aJob({ spec: { completionMode: "Indexed", completions: 3, parallelism: 2 }, tracked });
    const { active, podsNow, end, status, condition, counted } = await runJob(t, job);
    const indexes = () =>
      active()
        .map(({ metadata }) => metadata.annotations?.["batch.kubernetes.io/job-completion-index"])
        .toSorted();
    assert.deepEqual(indexes(), ["0", "1"]);
    const [first] = podsNow() as [Pod];
    assert.match(first.metadata.name ?? "", /^work-0-[a-z0-9]{5}$/);
    assert.equal(first.spec.hostname, "work-0");
    const fieldRef = { fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']" };
    assert.deepEqual(first.spec.containers[0]?.env, [{ name: "JOB_COMPLETION_INDEX", valueFrom: { fieldRef } }]);
    await end("Failed");
    assert.deepEqual(indexes(), ["0", "1"]);
    await end("Succeeded"); // index 1
    assert.equal(status().completedIndexes, "1");
    assert.deepEqual(indexes(), ["0", "2"]);
    await end("Succeeded", 2);
    assert.partialDeepStrictEqual(status(), { completedIndexes: "0-2", succeeded: 3, failed: 1 });
    assert.equal(condition("Complete")?.status, "True");
    const finished = (result: string) =>
      counted("job_controller_job_pods_finished_total", `completion_mode="Indexed",result="${result}"`);
    if (tracked) assert.deepEqual([await finished("succeeded"), await finished("failed")], [3, 1]);
  });

  test(`suspended it deletes its pods and stops its time, resumed it begins anew (${kind})`, async (t) => {
    const job = aJob({ spec: { activeDeadlineSeconds: 60, parallelism: 2, completions: 2 }, tracked });
    const { active, podsNow, change, clock, condition, status, events } = await runJob(t, job);
    await clock.advance(30_000);
    await change({ suspend: true });
    assert.equal(podsNow().length, 0);
    assert.partialDeepStrictEqual(condition("Suspended"), { status: "True", reason: "JobSuspended", message: "Job suspended" });
    assert.equal(status().failed, undefined); // they did not fail
    await clock.advance(3_600_000);
    await change({ suspend: false });
    assert.equal(active().length, 2);
    assert.partialDeepStrictEqual(condition("Suspended"), { status: "False", reason: "JobResumed", message: "Job resumed" });
    assert.equal(status().startTime, "2022-01-01T01:00:30Z");
    assert.deepEqual(
      events.filter((event) => /Suspended|Resumed/.test(event)),
      ["Normal Suspended Job suspended", "Normal Resumed Job resumed"],
    );
    await clock.advance(59_000);
    assert.equal(condition("Failed"), undefined);
    await clock.advance(1000);
    await settle(30);
    assert.equal(condition("Failed")?.reason, "DeadlineExceeded");
  });
}

test("a job that begins suspended has no start time", async (t) => {
  const { podsNow, status, condition } = await runJob(t, aJob({ spec: { suspend: true, activeDeadlineSeconds: 1 } }));
  assert.equal(podsNow().length, 0);
  assert.equal(status().startTime, undefined);
  assert.equal(condition("Suspended")?.status, "True");
});

test("the backoff starts over after a success", async (t) => {
  const { active, end, clock } = await runJob(t, aJob({ spec: { completions: 3 } }));
  await end("Failed");
  await end("Failed");
  await clock.advance(10_000);
  await settle(30);
  await end("Succeeded");
  assert.equal(active().length, 1);
  await end("Failed");
  assert.equal(active().length, 1);
});

test("counts the restarts of containers that are restarted in place", async (t) => {
  const template = { ...aJob().spec.template, spec: { containers: [{ name: "main", image: "i" }], restartPolicy: "OnFailure" } };
  const { active, client, condition } = await runJob(t, aJob({ spec: { backoffLimit: 2, template } }));
  const restarted = (restartCount: number): Pod => {
    const containerStatuses = [{ name: "main", ready: false, restartCount, image: "i", imageID: "" }];
    return { ...(active()[0] as Pod), status: { phase: "Running", containerStatuses } };
  };
  client.put(pods, restarted(1));
  await settle(30);
  assert.equal(condition("Failed"), undefined);
  client.put(pods, restarted(2));
  await settle(30);
  assert.equal(condition("Failed")?.reason, "BackoffLimitExceeded");
});

test("without completions one success is enough, once the others have ended", async (t) => {
  const { active, end, condition } = await runJob(t, aJob({ spec: { parallelism: 3, completions: undefined } }));
  await end("Succeeded");
  assert.equal(active().length, 2);
  assert.equal(condition("Complete"), undefined);
  await end("Failed", 2);
  assert.equal(condition("Complete")?.status, "True");
});

test("a pod that is deleted while it runs has failed, and is replaced", async (t) => {
  const { active, client, status } = await runJob(t, aJob());
  const [pod] = active() as [Pod];
  await client.delete(pods, { namespace: "default", name: pod.metadata.name ?? "" });
  await settle(30);
  assert.equal(status().failed, 1);
  assert.equal(active().length, 1);
  assert.equal(client.object(pods, `default/${pod.metadata.name}`), undefined);
});

test("counts each pod once though its status cannot be stored at first", async (t) => {
  const { client, end, status, condition, clock, podsNow } = await runJob(t, aJob());
  let refusals = 2;
  client.react("update", "jobs", ({ subresource }) => {
    if (subresource === "status" && refusals-- > 0) throw conflict(jobs, "work", "try again");
    return undefined;
  });
  await end("Succeeded");
  assert.equal(podsNow()[0]?.metadata.finalizers?.length, 1, "is held until it is noted");
  await clock.advance(60_000);
  await settle(30);
  assert.equal(status().succeeded, 1);
  assert.equal(condition("Complete")?.status, "True");
  assert.ok(
    !client.actions.some(({ verb, resource }) => verb === "get" && resource === "jobs"),
    "a conflict is no unknown outcome",
  );
});

test("counts each pod once though its finalizer cannot be removed at first", async (t) => {
  const { client, end, status, condition, clock, events } = await runJob(t, aJob());
  let refuse = true;
  client.react("patch", "pods", () => {
    if (refuse) throw forbidden(pods, "", "not now");
    return undefined;
  });
  await end("Succeeded");
  assert.equal(status().uncountedTerminatedPods?.succeeded?.length, 1);
  assert.equal(condition("Complete"), undefined);
  refuse = false;
  await clock.advance(10_000);
  await settle(30);
  assert.equal(status().succeeded, 1);
  assert.deepEqual(status().uncountedTerminatedPods, {});
  assert.equal(events.filter((event) => event.includes("Completed")).length, 1);
});

for (const { name, status, held, want } of [
  { name: "before it noted the pod", status: {}, held: true, want: 1 },
  { name: "before it let go of it", status: { uncountedTerminatedPods: { succeeded: ["p-uid"] } }, held: true, want: 1 },
  { name: "before it counted it", status: { uncountedTerminatedPods: { succeeded: ["p-uid"] } }, held: false, want: 1 },
  { name: "after it counted it", status: { succeeded: 1 }, held: false, want: 1 },
]) {
  test(`a controller that was stopped ${name} counts it once`, async (t) => {
    const job = aJob({ status: { ...status, startTime: "2022-01-01T00:00:00Z" } });
    const context = newTestContext(t);
    context.client.put(jobs, job);
    context.client.put(pods, aJobPod(job, "p", { phase: "Succeeded", withFinalizer: held }));
    await context.run(newJobController(context.ctx));
    const stored = context.client.object<Job>(jobs, "default/work")?.status;
    assert.equal(stored?.succeeded, want);
    assert.equal(stored?.conditions?.[0]?.type, "Complete");
  });
}

test("says that more pods succeeded than it needs", async (t) => {
  const job = aJob({ status: { startTime: "2022-01-01T00:00:00Z" } });
  const context = newTestContext(t);
  context.client.put(jobs, job);
  context.client.put(pods, ...["p", "q"].map((name) => aJobPod(job, name, { phase: "Succeeded" })));
  await context.run(newJobController(context.ctx));
  assert.deepEqual(context.events, [
    "Warning TooManySucceededPods Too many succeeded pods running after completion count reached",
    "Normal Completed Job completed",
  ]);
});

for (const { name, isShown } of [
  { name: "still shows its finalizer", isShown: true },
  { name: "does not show it yet", isShown: false },
]) {
  test(`a pod that an earlier process has counted is not counted again when the cache ${name}`, async (t) => {
    const job = aJob({
      spec: { completions: 2, parallelism: 1 },
      status: { succeeded: 1, startTime: "2022-01-01T00:00:00Z" },
    });
    const context = newTestContext(t);
    const { client, ctx, run } = context;
    const outdated = aJobPod(job, "p", { phase: "Succeeded" });
    client.put(jobs, job);
    if (isShown) client.put(pods, outdated);
    // The informer lists all namespaces.
    client.react("list", "pods", ({ namespace }) =>
      namespace === "" ? undefined : { items: [aJobPod(job, "p", { phase: "Succeeded", withFinalizer: false })] },
    );
    const selectors: (string | undefined)[] = [];
    const noting = override<Client>(ctx.client, {
      list(ref, target, options) {
        selectors.push(options?.labelSelector);
        return client.list(ref, target, options);
      },
    });
    await run(newJobController({ ...ctx, client: noting }));
    assert.deepEqual(selectors, ["controller-uid=work-uid"], "the pods of other jobs are not read");
    client.put(pods, outdated);
    await settle(30);
    const status = () => client.object<Job>(jobs, "default/work")?.status;
    assert.partialDeepStrictEqual(status(), { succeeded: 1, active: 1 });
    assert.deepEqual(status()?.uncountedTerminatedPods ?? {}, {});
    client.put(pods, aJobPod(job, "p", { phase: "Succeeded", withFinalizer: false }));
    await settle(30);
    assert.equal(status()?.succeeded, 1);
    const lists = client.actions.filter(
      ({ verb, resource, namespace }) => verb === "list" && resource === "pods" && namespace !== "",
    );
    assert.equal(lists.length, 1, "its pods are read once");
  });
}

test("a job that has just been created is not compared with the API server", async (t) => {
  const { client, end } = await runJob(t, aJob());
  await end("Succeeded");
  assert.ok(!client.actions.some(({ verb, resource, namespace }) => verb === "list" && resource === "pods" && namespace !== ""));
});

test("does not create twice what its cache does not show yet, and creates it again when it does not show it for five minutes", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(jobs, aJob({ spec: { parallelism: 2, completions: 2 } }));
  let created = 0;
  client.react("create", "pods", () => aJobPod(aJob(), `unseen-${++created}`)); // not stored, so no watch event follows
  await run(newJobController(ctx));
  const job = client.object<Job>(jobs, "default/work") as Job;
  client.put(jobs, { ...job, metadata: { ...job.metadata, labels: { touched: "yes" } } });
  await settle(30);
  assert.equal(created, 2);
  await context.clock.advance(301_000);
  await settle(30);
  assert.equal(created, 4);
});

test("reports when it may not create, and keeps trying", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run, events } = context;
  client.put(jobs, aJob());
  let refuse = true;
  client.react("create", "pods", () => {
    if (refuse) throw forbidden(pods, "", "exceeded quota");
    return undefined;
  });
  await run(newJobController(ctx));
  assert.ok(events.some((event) => event.startsWith("Warning FailedCreate Error creating: pods")));
  refuse = false;
  await clock.advance(10_000);
  await settle(30);
  assert.equal(client.objects(pods).length, 1);
});

test("adopts a pod that it selects, with the finalizer, and lets go of one that it no longer selects", async (t) => {
  const selector = { matchLabels: { app: "mine" } };
  const job = aJob({ spec: { parallelism: 2, completions: 2, manualSelector: true, selector } });
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(jobs, job);
  const named = (name: string, app: string): Pod => {
    const pod = aJobPod(job, name);
    return { ...pod, metadata: { ...pod.metadata, labels: { app } } };
  };
  const { ownerReferences: _, finalizers: __, ...orphan } = named("orphan", "mine").metadata;
  client.put(pods, { ...named("orphan", "mine"), metadata: orphan }, named("strange", "other"));
  job.spec.template = { ...job.spec.template, metadata: { labels: { app: "mine" } } };
  client.put(jobs, job);
  await run(newJobController(ctx));
  hasFields(client.object<Pod>(pods, "default/orphan")?.metadata, {
    finalizers: ["batch.kubernetes.io/job-tracking"],
    ownerReferences: [{ name: "work" }],
  });
  const released = client.object<Pod>(pods, "default/strange")?.metadata;
  assert.deepEqual([released?.ownerReferences ?? [], released?.finalizers ?? []], [[], []]);
  assert.equal(client.objects(pods).length, 3); // a replacement for the released Pod
});

test("takes the finalizer from pods whose job is gone or over", async (t) => {
  const over = aJob({ name: "over", status: { conditions: [{ type: "Complete", status: "True" }] } });
  const [gone, live] = [aJob({ name: "gone" }), aJob()];
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(jobs, live, over);
  client.put(pods, aJobPod(gone, "a"), aJobPod(over, "b"), aJobPod(live, "c"));
  await run(newJobController(ctx));
  const held = () => client.objects<Pod>(pods).filter(({ metadata }) => (metadata.finalizers ?? []).length > 0);
  assert.deepEqual(
    held().map(({ metadata }) => metadata.name),
    ["c"],
  );
  client.remove(jobs, "default/work");
  await settle(30);
  assert.equal(held().length, 0);
});

test("the pod of a job that the server lists later keeps its finalizer until it is counted", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  client.put(jobs, aJob());
  client.put(pods, aJobPod(aJob(), "a"));
  let isAway = true;
  client.react("list", "jobs", () => {
    if (isAway) throw serviceUnavailable("away");
    return undefined;
  });
  await run(newJobController(ctx));
  isAway = false;
  await clock.advance(5000);
  await settle(60);
  const [pod] = client.objects<Pod>(pods);
  assert.equal(client.object<Job>(jobs, "default/work")?.status?.active, 1);
  assert.deepEqual(pod?.metadata.finalizers, ["batch.kubernetes.io/job-tracking"]);
});

test("with tracking turned off it takes annotation and finalizers away, and counts what is there", async (t) => {
  const job = aJob({ spec: { parallelism: 1, completions: 2 } });
  const gates = { JobTrackingWithFinalizers: false };
  const context = newTestContext(t, {}, gates);
  const { client, ctx, run } = context;
  client.put(jobs, job);
  client.put(pods, aJobPod(job, "a"), aJobPod(job, "bare", { phase: "Succeeded", withFinalizer: false }));
  const patched: unknown[] = [];
  client.react("patch", "pods", ({ name }) => void patched.push(name));
  await run(newJobController(ctx));
  const stored = client.object<Job>(jobs, "default/work");
  assert.deepEqual(stored?.metadata.annotations, {});
  assert.deepEqual(patched, ["a"], "only one that has the finalizer");
  assert.partialDeepStrictEqual(stored?.status, { active: 1, succeeded: 1 });
  assert.equal(stored?.status?.uncountedTerminatedPods, undefined);
  assert.ok(client.objects<Pod>(pods).every(({ metadata }) => (metadata.finalizers ?? []).length === 0));
});

test("with tracking turned off it counts nothing while a finalizer cannot be taken away", async (t) => {
  const job = aJob({ spec: { parallelism: 1, completions: 2 } });
  const { client, clock, ctx, run } = newTestContext(t, {}, { JobTrackingWithFinalizers: false });
  client.put(jobs, job);
  client.put(pods, aJobPod(job, "a", { phase: "Succeeded" }));
  let isAway = true;
  client.react("patch", "pods", () => {
    if (isAway) throw serviceUnavailable("away");
    return undefined;
  });
  await run(newJobController(ctx));
  const succeeded = () => client.object<Job>(jobs, "default/work")?.status?.succeeded;
  assert.equal(succeeded(), undefined);
  isAway = false;
  await clock.advance(60_000);
  await settle(30);
  assert.equal(succeeded(), 1);
});

test("says how many pods are ready where that is turned on", async (t) => {
  const { status, client, active } = await runJob(t, aJob(), { JobReadyPods: true });
  assert.equal(status().ready, 0);
  const conditions = [{ type: "Ready", status: "True" as const }];
  client.put(pods, { ...(active()[0] as Pod), status: { phase: "Running", conditions } });
  await settle(30);
  assert.equal(status().ready, 1);
});

for (const { name, completionMode, gates, event } of [
  {
    name: "of an unknown completion mode",
    completionMode: "Sorted",
    gates: {},
    event: "Warning UnknownCompletionMode Skipped Job sync because completion mode is unknown",
  },
  {
    name: "that is indexed where that is turned off",
    completionMode: "Indexed",
    gates: { IndexedJob: false },
    event: "Warning IndexedJobDisabled Skipped Indexed Job sync because feature is disabled.",
  },
]) {
  test(`leaves a job alone ${name}`, async (t) => {
    const { podsNow, events } = await runJob(t, aJob({ spec: { completionMode } }), gates);
    assert.equal(podsNow().length, 0);
    assert.ok(events.includes(event));
  });
}

test("runs what is suspended where that is turned off", async (t) => {
  const { podsNow } = await runJob(t, aJob({ spec: { suspend: true } }), { SuspendJob: false });
  assert.equal(podsNow().length, 1);
});

test("creates nothing while it is being deleted, and releases its pods", async (t) => {
  const job = aJob({ deletedAt: "2022-01-01T00:00:00Z", spec: { parallelism: 2, completions: 2 } });
  const context = newTestContext(t);
  context.client.put(jobs, job);
  context.client.put(pods, aJobPod(job, "a"));
  await context.run(newJobController(context.ctx));
  assert.equal(context.client.objects(pods).length, 1);
  assert.deepEqual(context.client.object<Pod>(pods, "default/a")?.metadata.finalizers ?? [], []);
});

test("counts its looks by what they came to", async (t) => {
  const { end, counted } = await runJob(t, aJob());
  const syncs = (action: string, result = "success") =>
    counted("job_controller_job_sync_total", `completion_mode="NonIndexed",result="${result}",action="${action}"`);
  await end("Failed");
  assert.equal(await syncs("pods_created", "error"), 1, "one that found a failed pod");
  await end("Succeeded");
  assert.equal(await syncs("pods_created"), 1);
  assert.ok((await syncs("tracking")) >= 1);
  const duration = 'completion_mode="NonIndexed",result="success",action="pods_created"';
  assert.equal(await counted("job_controller_job_sync_duration_seconds_count", duration), 1);
});

test("the largest possible activeDeadlineSeconds never expires", async (t) => {
  // decoded as bigint because it exceeds the safe integers
  const activeDeadlineSeconds = 9223372036854775807n as unknown as number;
  const { podsNow, condition } = await runJob(t, aJob({ spec: { activeDeadlineSeconds } }));
  assert.equal(podsNow().length, 1);
  assert.equal(condition("Failed"), undefined);
});

test("warns while pods run that cannot be deleted after the completion count is reached, and completes without them", async (t) => {
  const { client, ctx, run, events, clock } = newTestContext(t);
  const job = aJob({ spec: { parallelism: 2, completions: 1 } });
  client.put(jobs, job);
  client.put(pods, aJobPod(job, "done", { phase: "Succeeded" }));
  client.put(pods, aJobPod(job, "surplus", { phase: "Running" }));
  let refuse = true;
  client.react("delete", "pods", () => {
    if (refuse) throw forbidden(pods, "", "not now");
    return undefined;
  });
  const isComplete = (): boolean => client.object<Job>(jobs, "default/work")?.status?.completionTime !== undefined;
  await run(newJobController(ctx));
  const warning = "Warning TooManyActivePods Too many active pods running after completion count reached";
  assert.ok(events.includes(warning), events.join("\n"));
  assert.ok(!isComplete());
  refuse = false;
  await clock.advance(600_000);
  await settle(30);
  const before = events.filter((event) => event === warning).length;
  assert.ok(isComplete());
  client.put(jobs, {
    ...(client.object<Job>(jobs, "default/work") as Job),
    metadata: { ...job.metadata, labels: { touched: "yes" } },
  });
  await settle(30);
  assert.equal(events.filter((event) => event === warning).length, before);
});

test("a finalizer that could not be removed from a pod without a job is removed later; a pod that went is no failure", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  const gone = aJob({ name: "gone" });
  client.put(pods, aJobPod(gone, "a"), aJobPod(gone, "b"));
  let refusals = 1;
  client.react("patch", "pods", ({ name }) => {
    if (name === "b") {
      client.remove(pods, "default/b");
      throw notFound(pods, "b");
    }
    if (refusals-- > 0) throw serviceUnavailable("away");
  });
  await run(newJobController(ctx));
  await clock.advance(20_000);
  await settle(30);
  assert.deepEqual(
    client.objects<Pod>(pods).map(({ metadata }) => [metadata.name, metadata.finalizers ?? []]),
    [["a", []]],
  );
  assert.equal(client.writes.filter(({ name }) => name === "b").length, 1);
});

test("a job of the name of a deleted one does not inherit its backoff", async (t) => {
  const { client, end, active, podsNow } = await runJob(t, aJob());
  await end("Failed");
  assert.equal(active().length, 1);
  await end("Failed");
  assert.equal(active().length, 0, "waits");
  client.remove(jobs, "default/work");
  for (const { metadata } of podsNow()) client.remove(pods, `default/${metadata.name}`);
  await settle(30);
  client.put(jobs, aJob());
  await settle(30);
  await end("Failed");
  assert.equal(active().length, 1);
});

test("a job that is made anew when the failed one of its name is over does not inherit its backoff", async (t) => {
  const { client, clock, end, active, condition, podsNow } = await runJob(t, aJob({ spec: { backoffLimit: 1 } }));
  await end("Failed");
  await end("Failed");
  await clock.advance(10_000);
  await settle(30);
  assert.equal(condition("Failed")?.status, "True");
  client.remove(jobs, "default/work");
  for (const { metadata } of podsNow()) client.remove(pods, `default/${metadata.name}`);
  client.put(jobs, aJob()); // before the end of the other one was looked at
  await settle(30);
  await end("Failed");
  assert.equal(active().length, 1);
});

test("a job that takes the place of a failed one between two looks does not inherit its backoff", async (t) => {
  const { client, clock, end, active, condition, podsNow } = await runJob(t, aJob({ spec: { backoffLimit: 1 } }));
  await end("Failed");
  await end("Failed");
  await clock.advance(10_000);
  await settle(30);
  assert.equal(condition("Failed")?.status, "True");
  for (const { metadata } of podsNow()) client.remove(pods, `default/${metadata.name}`);
  const next = aJob();
  client.put(jobs, { ...next, metadata: { ...next.metadata, uid: "next" } });
  await settle(30);
  await end("Failed");
  assert.equal(active().length, 1, "the first failure has no wait");
});

test("a finalizer that cannot be removed keeps no other pod from being counted", async (t) => {
  const { client, end, status, podsNow } = await runJob(t, aJob({ spec: { parallelism: 2, completions: 3 } }));
  const [held] = podsNow();
  client.react("patch", "pods", ({ name }) => {
    if (name === held?.metadata.name) throw forbidden(pods, name, "not now");
  });
  await end("Succeeded", 2);
  assert.equal(status().succeeded, 1);
  assert.deepEqual(status().uncountedTerminatedPods, { succeeded: [held?.metadata.uid] });
});

test("is not complete while a pod that was noted before more than are counted at once is held", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  const status = { startTime: "2022-01-01T00:00:00Z", uncountedTerminatedPods: { succeeded: ["p599-uid"] } };
  const job = aJob({ spec: { parallelism: 1, completions: 600 }, status });
  client.put(jobs, job);
  client.put(pods, ...Array.from({ length: 600 }, (_, i) => aJobPod(job, `p${i}`, { phase: "Succeeded" })));
  const completed: (number | undefined)[] = [];
  client.react("update", "jobs", ({ sent }) => {
    const { status } = sent as Job;
    if (status?.completionTime !== undefined) completed.push(status.succeeded);
  });
  await run(newJobController(ctx));
  await clock.advance(1000);
  await settle(300);
  assert.deepEqual(completed, [600]);
});

test("the pods that were not attempted after one could not be created are created later", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  client.put(jobs, aJob({ spec: { parallelism: 4, completions: 4 } }));
  let refuse = true;
  client.react("create", "pods", () => {
    if (refuse) throw forbidden(pods, "", "exceeded quota");
  });
  await run(newJobController(ctx));
  refuse = false;
  await clock.advance(10_000);
  await settle(30);
  assert.equal(client.objects(pods).length, 4);
});

test("a surplus pod whose finalizer could not be removed is deleted later", async (t) => {
  const { client, clock, active, change } = await runJob(t, aJob({ spec: { parallelism: 2, completions: 9 } }));
  let refuse = true;
  client.react("patch", "pods", () => {
    if (refuse) throw forbidden(pods, "", "not now");
  });
  await change({ parallelism: 1 });
  assert.equal(active().length, 2);
  refuse = false;
  await clock.advance(10_000);
  await settle(30);
  assert.equal(active().length, 1);
});

test("a pod that is deleted with its finalizer is expected to lose it no longer", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const job = aJob();
  client.put(jobs, job);
  const context = newJobContext(ctx, { enqueueAfter() {}, enqueueOrphan() {} });
  await run();
  const handlers = podHandlers(context, { enqueue() {}, enqueueAfter() {} });
  context.finalizerExpectations.expect("default/work", ["a-uid", "b-uid"]);
  handlers.updated?.(aJobPod(job, "a"), aJobPod(job, "a", { deletedAt: "2022-01-01T00:00:00Z" }));
  assert.deepEqual([...context.finalizerExpectations.of("default/work")], ["a-uid", "b-uid"]);
  handlers.deleted?.(aJobPod(job, "a", { deletedAt: "2022-01-01T00:00:00Z" }));
  assert.deepEqual([...context.finalizerExpectations.of("default/work")], ["b-uid"]);
});

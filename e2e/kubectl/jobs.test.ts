import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, podsOf } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface JobView {
  metadata: { name: string; ownerReferences?: { kind: string; name: string }[] };
  status: {
    succeeded?: number;
    failed?: number;
    completedIndexes?: string;
    conditions?: { type: string; status: string; reason?: string }[];
  };
}

async function createJob(namespace: string, name: string, spec: object, script: string): Promise<void> {
  const template = { spec: { restartPolicy: "Never", containers: [busybox("main", script)] } };
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name, namespace }, spec: { ...spec, template } };
  await kubectl("create", "-f", "-", { input: JSON.stringify(job) });
}

const waitForJob = (namespace: string, name: string, condition: string): Promise<string> =>
  kubectl("wait", `--for=condition=${condition}`, `job/${name}`, "-n", namespace, "--timeout=180s");

test("a created Job completes, records Events, and deletes its pod when it is deleted", async (t) => {
  const namespace = await newNamespace(t, "job");
  await kubectl("create", "job", "hello", "-n", namespace, "--image=busybox:1.35", "--", "echo", "hello from a job");
  await waitForJob(namespace, "hello", "complete");
  assert.match(await kubectl("get", "job", "hello", "-n", namespace), /^hello +1\/1 +[\dms]+ +[\dms]+$/m);
  assert.equal(await kubectl("logs", "job/hello", "-n", namespace), "hello from a job\n");
  await waitFor("its events", async () => {
    const described = await kubectl("describe", "job", "hello", "-n", namespace);
    return (
      /Pods Statuses: +0 Active(?: \(\d+ Ready\))? \/ 1 Succeeded \/ 0 Failed/.test(described) &&
      /Completed +\S+ +job-controller +Job completed/.test(described)
    );
  });
  await kubectl("delete", "job", "hello", "-n", namespace);
  await waitFor("its pod is gone", async () => (await podsOf(namespace, "job-name=hello")).length === 0);
});

test("an indexed job's pods know their index, a failed one reports why, and one with a TTL is deleted", async (t) => {
  const namespace = await newNamespace(t, "jobs");
  const indexed = { completions: 3, parallelism: 2, completionMode: "Indexed" };
  await createJob(namespace, "parts", indexed, 'echo "$JOB_COMPLETION_INDEX of $(hostname)"');
  await createJob(namespace, "broken", { backoffLimit: 0 }, "exit 3");
  await createJob(namespace, "brief", { ttlSecondsAfterFinished: 1 }, "true");
  await waitForJob(namespace, "parts", "complete");
  const { status } = await getJson<JobView>("job", "parts", "-n", namespace);
  assert.partialDeepStrictEqual(status, { succeeded: 3, completedIndexes: "0-2" });
  const printed = await kubectl("logs", "-n", namespace, "-l", "job-name=parts", "--max-log-requests=5");
  assert.deepEqual(printed.trim().split("\n").toSorted(), ["0 of parts-0", "1 of parts-1", "2 of parts-2"]);
  await waitForJob(namespace, "broken", "failed");
  const broken = await getJson<JobView>("job", "broken", "-n", namespace);
  assert.equal(broken.status.failed, 1);
  assert.equal(broken.status.conditions?.[0]?.reason, "BackoffLimitExceeded");
  await waitFor("the brief job is deleted", async () => {
    const names = (await getJson<{ items: JobView[] }>("jobs", "-n", namespace)).items.map(({ metadata }) => metadata.name);
    return !names.includes("brief");
  });
});

test("a suspended job has no pods until it is resumed", async (t) => {
  const namespace = await newNamespace(t, "suspend");
  await createJob(namespace, "later", { suspend: true }, "true");
  await waitForJob(namespace, "later", "suspended");
  assert.deepEqual(await podsOf(namespace, "job-name=later"), []);
  await kubectl("patch", "job", "later", "-n", namespace, "-p", '{"spec":{"suspend":false}}');
  await waitForJob(namespace, "later", "complete");
  await waitFor("its events", async () => {
    const events = await kubectl("get", "events", "-n", namespace, "--field-selector=involvedObject.name=later");
    return /Normal +Suspended +job\/later +Job suspended/.test(events) && /Normal +Resumed +job\/later +Job resumed/.test(events);
  });
});

test("a cron job starts jobs by its schedule, and kubectl starts one from it", async (t) => {
  const namespace = await newNamespace(t, "cron");
  const cronJob = ["cronjob", "tick", "-n", namespace];
  await kubectl("create", ...cronJob, "--image=busybox:1.35", "--schedule=@every 2s", "--", "echo", "tick");
  const started = await waitFor("a job of the cron job has succeeded", async () => {
    const { items } = await getJson<{ items: JobView[] }>("jobs", "-n", namespace);
    return items.find(({ status }) => status.succeeded === 1);
  });
  assert.match(started.metadata.name, /^tick-\d{8}$/);
  assert.partialDeepStrictEqual(started.metadata.ownerReferences, [{ kind: "CronJob", name: "tick" }]);
  await waitFor("its event", async () =>
    /SuccessfulCreate +.*cronjob-controller +Created job tick-\d{8}/.test(await kubectl("describe", ...cronJob)),
  );
  await kubectl("patch", ...cronJob, "-p", '{"spec":{"suspend":true}}');
  assert.match(await kubectl("get", ...cronJob), /^tick +@every 2s +True +/m);
  await kubectl("create", "job", "by-hand", "-n", namespace, "--from=cronjob/tick");
  await waitForJob(namespace, "by-hand", "complete");
  await kubectl("delete", ...cronJob);
  await waitFor("its jobs are gone with it", async () => (await kubectl("get", "jobs", "-n", namespace, "-o", "name")) === "");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { aJob } from "../../testing/jobs.ts";
import { hasValidIndex, podBuilder } from "./pods.ts";
import { trackingName } from "./tracking-finalizer.ts";

const container = (name: string, env?: Container["env"]): Container => ({ name, image: "i", ...(env && { env }) });
const variable = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']" } },
};
const own = { name: "JOB_COMPLETION_INDEX", value: "mine" };
const template: JobSpec["template"] = {
  metadata: { labels: { app: "x" }, annotations: { note: "kept" }, finalizers: ["example.com/own"] },
  spec: {
    initContainers: [container("init")],
    containers: [container("first", [{ name: "A", value: "1" }]), container("second", [own])],
  },
};
const indexed = (name: string) => aJob({ name, spec: { completionMode: "Indexed", completions: 20, template } });

test("a pod of an indexed job needs an index below its completions", () => {
  const withIndex = (text: string) => aPod({ annotations: { "batch.kubernetes.io/job-completion-index": text } });
  assert.deepEqual(
    ["0", "19", "20", "-1", "x", ""].map((text) => hasValidIndex(indexed("work"), withIndex(text))),
    [true, true, false, false, false, false],
  );
  assert.deepEqual([hasValidIndex(indexed("work"), aPod()), hasValidIndex(aJob(), withIndex("99"))], [false, true]);
});

test("each container and init container of an indexed pod gets the index, unless it has the variable", () => {
  const { spec, metadata } = podBuilder(indexed("work"), true)(7).template;
  assert.deepEqual(spec?.initContainers?.[0]?.env, [variable]);
  assert.deepEqual(
    spec?.containers.map(({ env }) => env),
    [[{ name: "A", value: "1" }, variable], [own]],
  );
  assert.deepEqual(metadata?.annotations, { note: "kept", "batch.kubernetes.io/job-completion-index": "7" });
  assert.equal(spec?.hostname, "work-7");
  assert.deepEqual(template.spec?.containers[0]?.env, [{ name: "A", value: "1" }], "the job's own template is not changed");
});

test("a tracked pod has the finalizer once, beside the template's own; an untracked one has only those", () => {
  const finalizersOf = (tracked: boolean, finalizers: string[]) => {
    const job = aJob({ spec: { template: { ...template, metadata: { finalizers } } } });
    return podBuilder(job, tracked)(undefined).template.metadata?.finalizers;
  };
  assert.deepEqual(finalizersOf(true, ["example.com/own"]), ["example.com/own", trackingName]);
  assert.deepEqual(finalizersOf(true, [trackingName]), [trackingName]);
  assert.deepEqual(finalizersOf(false, ["example.com/own"]), ["example.com/own"]);
  assert.deepEqual(podBuilder(indexed("work"), true)(0).template.metadata?.finalizers, ["example.com/own", trackingName]);
});

test("the name of an indexed pod leaves room for its suffix, and keeps the index whole", () => {
  const name = "n".repeat(63);
  assert.equal(podBuilder(indexed(name), true)(12).generateName, `${"n".repeat(54)}-12-`);
  assert.equal(podBuilder(indexed("work"), true)(12).generateName, "work-12-");
  assert.equal(podBuilder(aJob(), true)(undefined).generateName, undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import { errorsOf, prepareUpdate } from "../../../testing/run-strategy.ts";
import type { StrategyContext } from "../../generic/strategy.ts";
import { defaultJob } from "./defaults.ts";

const { strategy: jobStrategy } = strategiesOf<Job>("jobs.batch");

const withGates = (...on: string[]): StrategyContext => ({
  user: undefined,
  namespace: "default",
  dryRun: false,
  now: () => 0,
  featureEnabled: (gate) => on.includes(gate),
  warn: () => {},
});
const withoutGates = withGates();
const job = (spec: Partial<JobSpec>): Job => ({
  metadata: { name: "work" },
  spec: { template: { metadata: {}, spec: { containers: [] } }, ...spec },
});

test("new jobs lose what is turned off, and keep what is on", () => {
  const spec = { completionMode: "Indexed", completions: 1, suspend: true };
  const [without, with_] = [job(spec), job(spec)];
  jobStrategy.prepareForCreate?.(without, withoutGates);
  jobStrategy.prepareForCreate?.(with_, withGates("IndexedJob", "SuspendJob"));
  assert.deepEqual([without.spec.completionMode, without.spec.suspend], ["NonIndexed", undefined]);
  assert.deepEqual([with_.spec.completionMode, with_.spec.suspend], ["Indexed", true]);
});

for (const { from, to, want } of [
  { from: true, to: false, want: false },
  { from: true, to: undefined, want: undefined },
  { from: false, to: true, want: false },
  { from: undefined, to: true, want: undefined },
]) {
  test(`with suspension turned off, ${from} to ${to} becomes ${want}`, () => {
    const spec = (suspend: boolean | undefined): Partial<JobSpec> => (suspend === undefined ? {} : { suspend });
    const next = job(spec(to));
    prepareUpdate(jobStrategy, next, job(spec(from)), withoutGates);
    assert.equal(next.spec.suspend, want);
  });
}

test("with indexed jobs turned off, one that is indexed stays so, and no other becomes it", () => {
  const [kept, dropped] = [job({ completionMode: "Indexed" }), job({ completionMode: "Indexed" })];
  prepareUpdate(jobStrategy, kept, job({ completionMode: "Indexed" }), withoutGates);
  prepareUpdate(jobStrategy, dropped, job({}), withoutGates);
  assert.deepEqual([kept.spec.completionMode, dropped.spec.completionMode], ["Indexed", "NonIndexed"]);
});

for (const { name, labels, want } of [
  { name: "no labels has all of its pods'", labels: undefined, want: { a: "b", "controller-uid": "1", "job-name": "work" } },
  { name: "labels keeps to them", labels: { c: "d" }, want: { c: "d" } },
]) {
  test(`a job that came with ${name}`, () => {
    const created = job({ template: { metadata: { labels: { a: "b" } }, spec: { containers: [] } } });
    created.metadata = { ...created.metadata, uid: "1", ...(labels === undefined ? {} : { labels }) };
    defaultJob(created);
    errorsOf(jobStrategy, created, undefined, withoutGates);
    assert.deepEqual(created.metadata.labels, want);
    assert.deepEqual(created.spec.template.metadata?.labels, { a: "b", "controller-uid": "1", "job-name": "work" });
  });
}

const tracking = "batch.kubernetes.io/job-tracking";
const annotated = (annotations: Record<string, string> | undefined): Job => {
  const made = job({});
  if (annotations !== undefined) made.metadata.annotations = annotations;
  return made;
};
const gate = "JobTrackingWithFinalizers";

test("whether finalizers count the pods of a new job, the server says, whatever the request does", () => {
  for (const { on, given, want } of [
    { on: [gate], given: undefined, want: { [tracking]: "" } },
    { on: [gate], given: { a: "b", [tracking]: "x" }, want: { a: "b", [tracking]: "" } },
    { on: [], given: { a: "b", [tracking]: "" }, want: { a: "b" } },
    { on: [], given: { [tracking]: "" }, want: undefined },
    { on: [], given: undefined, want: undefined },
  ]) {
    const next = annotated(given);
    jobStrategy.prepareForCreate?.(next, withGates(...on));
    assert.deepEqual(next.metadata.annotations, want);
  }
});

test("an update says that finalizers count the pods where the gate is on or the job did so before", () => {
  const given = { a: "b", [tracking]: "" };
  for (const { on, had, want } of [
    { on: [], had: undefined, want: { a: "b" } },
    { on: [], had: { [tracking]: "" }, want: given },
    { on: [gate], had: undefined, want: given },
  ]) {
    const next = annotated(given);
    prepareUpdate(jobStrategy, next, annotated(had), withGates(...on));
    assert.deepEqual(next.metadata.annotations, want);
  }
  const without = annotated(undefined);
  prepareUpdate(jobStrategy, without, annotated(undefined), withoutGates);
  assert.equal(without.metadata.annotations, undefined);
});

test("a new job selects the pods with its uid, unless it brings a selector of its own", () => {
  for (const { spec, want } of [
    { spec: {}, want: { matchLabels: { "controller-uid": "1" } } },
    { spec: { selector: { matchLabels: { a: "b" } } }, want: { matchLabels: { a: "b", "controller-uid": "1" } } },
    { spec: { selector: { matchLabels: { "controller-uid": "2" } } }, want: { matchLabels: { "controller-uid": "2" } } },
    {
      spec: { selector: { matchExpressions: [{ key: "a", operator: "Exists" }] } },
      want: { matchLabels: { "controller-uid": "1" }, matchExpressions: [{ key: "a", operator: "Exists" }] },
    },
    { spec: { manualSelector: true, selector: { matchLabels: { a: "b" } } }, want: { matchLabels: { a: "b" } } },
    { spec: { manualSelector: true }, want: undefined },
  ]) {
    const next = job(spec);
    next.metadata.uid = "1";
    errorsOf(jobStrategy, next, undefined, withoutGates);
    assert.deepEqual(next.spec.selector, want);
    const labels = spec.manualSelector ? undefined : { "controller-uid": "1", "job-name": "work" };
    assert.deepEqual(next.spec.template.metadata?.labels, labels);
  }
});

test("a job whose pods have no labels gets none, and one with labels keeps them", () => {
  for (const { template, own, want } of [
    { template: {}, own: undefined, want: undefined },
    { template: undefined, own: {}, want: {} },
    { template: { a: "b" }, own: {}, want: { a: "b" } },
    { template: { a: "b" }, own: { c: "d" }, want: { c: "d" } },
  ]) {
    const made = job({ template: { metadata: { ...(template && { labels: template }) }, spec: { containers: [] } } });
    if (own !== undefined) made.metadata.labels = own;
    defaultJob(made);
    assert.deepEqual(made.metadata.labels, want);
  }
});

test("a job of which one number alone is given", () => {
  for (const { given, want } of [
    { given: {}, want: [1, 1] },
    { given: { completions: 3 }, want: [3, 1] },
    { given: { parallelism: 3 }, want: [undefined, 3] },
    { given: { parallelism: 0 }, want: [undefined, 0] },
    { given: { completions: 0, parallelism: 2 }, want: [0, 2] },
  ]) {
    const made = job(given);
    defaultJob(made);
    assert.deepEqual([made.spec.completions, made.spec.parallelism], want);
  }
});

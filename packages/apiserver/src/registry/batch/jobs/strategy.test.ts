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

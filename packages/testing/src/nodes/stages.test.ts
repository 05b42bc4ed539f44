import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Event, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { events, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type Cluster, createCluster } from "../create-cluster.ts";
import { checkStages, type PodStage, type StageExpression, stageOf } from "./pod-stages.ts";

const pod = {
  metadata: { name: "web", labels: { app: "web" }, ownerReferences: [{ kind: "Job" }, { kind: "Other" }], finalizers: [] },
  spec: { containers: [] },
  status: { phase: "Running" },
} as unknown as Pod;

for (const { name, expression, want } of [
  {
    name: "a value among others",
    expression: { key: ".status.phase", operator: "In", values: ["Pending", "Running"] },
    want: true,
  },
  { name: "a value that is not", expression: { key: ".status.phase", operator: "In", values: ["Pending"] }, want: false },
  { name: "not among", expression: { key: ".status.phase", operator: "NotIn", values: ["Pending"] }, want: true },
  { name: "absent is not among", expression: { key: ".status.reason", operator: "NotIn", values: ["x"] }, want: true },
  {
    name: "any item of a list",
    expression: { key: ".metadata.ownerReferences.[].kind", operator: "In", values: ["Other"] },
    want: true,
  },
  { name: "Exists matches a present field", expression: { key: ".metadata.name", operator: "Exists" }, want: true },
  { name: "an empty list does not exist", expression: { key: ".metadata.finalizers", operator: "DoesNotExist" }, want: true },
  { name: "names of a prototype do not exist", expression: { key: ".status.constructor", operator: "Exists" }, want: false },
]) {
  test(`selector: ${name}`, () => {
    const stage: PodStage = {
      name: "s",
      selector: { matchExpressions: [expression as StageExpression] },
      next: { delete: true },
    };
    assert.equal(stageOf(pod, [stage]) === stage, want);
  });
}

for (const { stage, want } of [
  { stage: { name: "a", delay: "soon", next: { delete: true } }, want: /stage "a": "soon" is not a duration/ },
  { stage: { name: "b", next: {} }, want: /stage "b": next: nothing happens/ },
  { stage: { name: "c", next: { statusTemplate: "{{ Now }}" } }, want: /stage "c": next.statusTemplate: give `status` as data/ },
  {
    stage: { name: "d", selector: { matchExpressions: [{ key: "x", operator: "In" }] }, next: { delete: true } },
    want: /"x" does not begin with a dot/,
  },
  ...["In", "NotIn"].flatMap((operator) =>
    [undefined, []].map((values) => ({
      stage: {
        name: `${operator} ${values}`,
        selector: {
          matchExpressions: [
            { key: ".a", operator: "Exists" },
            { key: ".b", operator, values },
          ],
        },
        next: { delete: true },
      },
      want: new RegExp(`: ${operator} needs values$`),
    })),
  ),
  {
    stage: { name: "e", selector: { matchExpressions: [{ key: ".a", operator: "Is", values: ["x"] }] }, next: { delete: true } },
    want: /stage "e": "Is" is no operator$/,
  },
]) {
  test(`an invalid stage is refused: ${stage.name}`, () => {
    assert.throws(() => checkStages([stage as never]), want);
  });
}

let cluster: Cluster | undefined;
after(() => cluster?.stop());

test("a pod follows its stages, also after a failed write", async () => {
  const deleted: StageExpression = { key: ".metadata.deletionTimestamp", operator: "Exists" };
  const stages: PodStage[] = [
    {
      name: "gone",
      delay: "5s",
      selector: { matchExpressions: [deleted] },
      next: { finalizers: { remove: ["test/one"] }, delete: true },
    },
    {
      name: "start",
      delay: "2s",
      selector: { matchExpressions: [{ key: ".status.podIP", operator: "DoesNotExist" }] },
      next: { status: { phase: "Running", conditions: [{ type: "Ready", status: "False" }] }, finalizers: { add: ["test/one"] } },
    },
    {
      name: "ready",
      delay: "10s",
      selector: { matchExpressions: [{ key: ".status.reason", operator: "DoesNotExist" }] },
      next: {
        event: { type: "Normal", reason: "Warmed", message: "the caches are warm" },
        status: (_, { podIP }) => ({ reason: podIP, conditions: [{ type: "Ready", status: "True" }] as never }),
      },
    },
  ];
  cluster = await createCluster({ controllers: false, clock: "virtual", pods: [{ match: { name: "staged" }, stages }] });
  const { client, faults } = cluster;
  const staged = { namespace: "default", name: "staged" };
  faults.inject({ method: "PATCH", path: "/pods/staged/status", by: "fake-nodes", status: 500 });
  await client.create(pods, { metadata: staged, spec: { containers: [{ name: "c", image: "i" }] } } as never);
  const seen = async () => {
    const { status, metadata } = await client.get<Pod>(pods, staged);
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    return { phase: status?.phase, ready: ready?.status, since: ready?.lastTransitionTime, finalizers: metadata.finalizers };
  };
  await cluster.advance("1s");
  assert.equal((await seen()).phase, "Pending");
  await cluster.advance("2s");
  const { since, ...started } = await seen();
  assert.deepEqual(started, { phase: "Running", ready: "False", finalizers: ["test/one"] });
  await cluster.advance("11s");
  const ready = await seen();
  assert.equal(ready.ready, "True");
  assert.notEqual(ready.since, since);
  const { items } = await client.list<Event>(events, { namespace: "default" });
  assert.equal(items.filter(({ reason, message }) => reason === "Warmed" && message === "the caches are warm").length, 1);
  await client.delete(pods, staged);
  await cluster.advance("4s");
  await client.get(pods, staged);
  await cluster.eventuallyGone(pods, staged, { within: "2s" });
});

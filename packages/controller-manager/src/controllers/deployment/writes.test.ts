import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, StatusError, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { deployments, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newDeploymentController } from "./controller.ts";
import { buildNewSet } from "./new-replica-set.ts";

const stored = ({ client }: TestContext): Deployment => client.object<Deployment>(deployments, "default/web") as Deployment;
const statuses = ({ client }: TestContext) =>
  client.writes
    .filter(({ resource, subresource }) => resource === "deployments" && subresource === "status")
    .map(({ sent }) => (sent as Deployment).status ?? {});
const progressReasons = (world: TestContext) =>
  statuses(world).map(({ conditions = [] }) => conditions.find(({ type }) => type === "Progressing")?.reason);
const setNames = ({ client }: TestContext): string[] =>
  client
    .objects<ReplicaSet>(replicaSets)
    .map(({ metadata }) => metadata.name ?? "")
    .toSorted();

/** The ReplicaSet that the controller would create for the image, with `replicas` that all are available. */
function setOf(image: string, revision: bigint, replicas: number, spec: Partial<Deployment["spec"]> = {}): ReplicaSet {
  const built = buildNewSet(aDeployment({ image, replicas, spec }), [], revision);
  return {
    ...built,
    metadata: { ...built.metadata, uid: `${image}-uid`, generation: 1, creationTimestamp: "2021-01-01T00:00:00Z" },
    status: { replicas, readyReplicas: replicas, availableReplicas: replicas, observedGeneration: 1 },
  };
}

/** @throws in the controller from the twentieth write on, so that one that never ends fails */
async function running(world: TestContext, deployment: Deployment, ...sets: ReplicaSet[]): Promise<TestContext> {
  let writes = 0;
  world.client.react("update", "*", () => {
    if (++writes >= 20) throw serviceUnavailable("written over and over");
    return undefined;
  });
  world.client.put(replicaSets, ...sets);
  world.client.put(deployments, deployment);
  await world.run(newDeploymentController(world.ctx));
  return world;
}

test("nothing is tried again, and nothing is reported, in a namespace that is being deleted", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "replicasets", () => {
    tries++;
    const { status } = forbidden(replicaSets, "web", "the namespace is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  await running(world, aDeployment());
  await world.clock.advance(60_000);
  assert.deepEqual([tries, world.events, statuses(world)], [1, [], []]);
});

test("a deployment whose replica set is never created is given up after 15 retries", async (t) => {
  const world = newTestContext(t);
  let tries = 0;
  world.client.react("create", "replicasets", () => {
    tries++;
    throw forbidden(replicaSets, "web", "exceeded quota");
  });
  world.client.react("update", "deployments", () => {
    throw serviceUnavailable("no status is stored, so that no event follows");
  });
  await running(world, aDeployment());
  await world.clock.advance(86_400_000);
  await settle(30);
  assert.equal(tries, 16);
  const [event] = world.events;
  assert.match(event ?? "", /^Warning ReplicaSetCreateError .*exceeded quota$/, "the failed status write does not hide it");
});

for (const { name, spec, replicas, want, events } of [
  {
    name: "says that it was created",
    spec: {},
    replicas: 1,
    want: "NewReplicaSetCreated",
    events: [/^Normal ScalingReplicaSet Scaled up replica set web-\w+ to 1$/],
  },
  { name: "of no replicas is not reported as scaled", spec: {}, replicas: 0, want: "NewReplicaSetCreated", events: [] },
  {
    name: "without a progress deadline says nothing of progress",
    spec: { progressDeadlineSeconds: 2147483647 },
    replicas: 1,
    want: undefined,
    events: [/Scaled up/],
  },
]) {
  test(`a new replica set ${name}`, async (t) => {
    const world = await running(newTestContext(t), aDeployment({ replicas, spec }));
    assert.equal(progressReasons(world)[0], want);
    assert.equal(world.events.length, events.length);
    for (const [i, pattern] of events.entries()) assert.match(world.events[i] ?? "", pattern);
  });
}

test("a creation that fails without a progress deadline is reported, without a condition", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "replicasets", () => {
    throw forbidden(replicaSets, "web", "exceeded quota");
  });
  await running(world, aDeployment({ spec: { progressDeadlineSeconds: 2147483647 } }));
  assert.match(world.events[0] ?? "", /^Warning ReplicaSetCreateError /);
  assert.deepEqual(statuses(world), []);
});

test("the condition of a new replica set leaves the other conditions as they are", async (t) => {
  const available = { type: "Available", status: "True" as const, reason: "MinimumReplicasAvailable", message: "" };
  const deployment = aDeployment({ image: "v2" });
  await running(newTestContext(t), { ...deployment, status: { conditions: [available] } }).then((world) =>
    assert.deepEqual(
      statuses(world)[0]?.conditions?.map(({ type }) => type),
      ["Available", "Progressing"],
    ),
  );
});

for (const { name, spec, want } of [
  { name: "is found", spec: {}, want: "FoundNewReplicaSet" },
  { name: "without a progress deadline is found in silence", spec: { progressDeadlineSeconds: 2147483647 }, want: undefined },
]) {
  test(`a replica set of its template that exists already ${name}`, async (t) => {
    const world = await running(newTestContext(t), aDeployment({ image: "v1", spec }), setOf("v1", 1n, 1, spec));
    const [first] = statuses(world);
    assert.equal(first?.conditions?.find(({ type }) => type === "Progressing")?.reason, want);
    assert.equal(setNames(world).length, 1);
    assert.ok(statuses(world).length <= 2, "it is not written over and over");
  });
}

test("a replica set follows the deployment's minReadySeconds", async (t) => {
  const world = await running(newTestContext(t), aDeployment({ image: "v1", spec: { minReadySeconds: 9 } }), setOf("v1", 1n, 1));
  assert.equal(world.client.objects<ReplicaSet>(replicaSets)[0]?.spec.minReadySeconds, 9);
});

test("an own replica set of the name, with another template, is a collision, counted on from the status", async (t) => {
  const world = newTestContext(t);
  const deployment = { ...aDeployment({ image: "v1" }), status: { collisionCount: 2 } };
  const taken = buildNewSet(deployment, [], 1n);
  taken.spec = { ...taken.spec, ...setOf("v0", 1n, 0).spec };
  await running(world, deployment, taken);
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(stored(world).status?.collisionCount, 3);
  assert.equal(setNames(world).length, 2);
});

test("a replica set of the right size that remembers another one is told, without an event", async (t) => {
  const set = setOf("v1", 1n, 3);
  set.metadata.annotations = { ...set.metadata.annotations, "deployment.kubernetes.io/desired-replicas": "2" };
  const world = await running(newTestContext(t), aDeployment({ image: "v1", replicas: 3 }), set);
  assert.deepEqual(
    world.client
      .objects<ReplicaSet>(replicaSets)
      .map(({ metadata }) => metadata.annotations?.["deployment.kubernetes.io/desired-replicas"]),
    ["3"],
  );
  assert.deepEqual(world.events, []);
});

test("each resize in a rolling update is reported with its direction", async (t) => {
  const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: 2, maxUnavailable: 2 } };
  const old = setOf("v1", 1n, 4, { strategy });
  const fresh = { ...setOf("v2", 2n, 4, { strategy }), status: { replicas: 0 } };
  fresh.spec.replicas = 1;
  const world = await running(newTestContext(t), aDeployment({ image: "v2", replicas: 4, spec: { strategy } }), old, fresh);
  assert.deepEqual(world.events.slice(0, 2), [
    `Normal ScalingReplicaSet Scaled up replica set ${fresh.metadata.name} to 2`,
    `Normal ScalingReplicaSet Scaled down replica set ${old.metadata.name} to 2`,
  ]);
});

test("an old set that could not be removed is removed later", async (t) => {
  const world = newTestContext(t);
  const spec = { revisionHistoryLimit: 1 };
  await running(world, aDeployment({ image: "v2", spec }), setOf("v1", 1n, 0, spec), setOf("v2", 2n, 1, spec));
  let failures = 0;
  world.client.react("delete", "replicasets", () => {
    if (failures++ === 0) throw serviceUnavailable("the server is away");
    return undefined;
  });
  // The same generation: no status is written, so that no event follows.
  world.client.put(deployments, { ...stored(world), spec: { ...stored(world).spec, revisionHistoryLimit: 0 } });
  await settle(30);
  assert.deepEqual([failures, setNames(world).length], [1, 2]);
  await world.clock.advance(1000);
  await settle(30);
  assert.deepEqual(setNames(world), [setOf("v2", 2n, 1).metadata.name]);
});

for (const { name, paused, type, complete, annotations, kept } of [
  { name: "paused", paused: true, type: "RollingUpdate", complete: true, annotations: {}, kept: 1 },
  {
    name: "paused with a rollback pending",
    paused: true,
    type: "RollingUpdate",
    complete: true,
    annotations: { "deprecated.deployment.rollback.to": "1" },
    kept: 2,
  },
  { name: "recreated completely", paused: false, type: "Recreate", complete: true, annotations: {}, kept: 1 },
  { name: "recreated, but not available yet", paused: false, type: "Recreate", complete: false, annotations: {}, kept: 2 },
]) {
  test(`old sets of a deployment that is ${name} are ${kept === 1 ? "removed" : "kept"}`, async (t) => {
    const spec: Partial<Deployment["spec"]> = { paused, strategy: { type }, revisionHistoryLimit: 0 };
    const counts = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1 };
    const status = complete ? { ...counts, availableReplicas: 1 } : counts;
    const fresh = setOf("v2", 2n, 1, spec);
    if (!complete) fresh.status = { replicas: 1, observedGeneration: 1 };
    const deployment = { ...aDeployment({ image: "v2", spec, annotations }), status };
    const world = await running(newTestContext(t), deployment, setOf("v1", 1n, 0, spec), fresh);
    assert.equal(setNames(world).length, kept);
    assert.equal(stored(world).spec.template.spec.containers[0]?.image, "v2", "a rollback waits until it goes on");
  });
}

test("a deployment that would select everything is marked as seen, once", async (t) => {
  const world = await running(newTestContext(t), aDeployment({ generation: 5, spec: { selector: {} } }));
  assert.equal(stored(world).status?.observedGeneration, 5);
  world.client.put(deployments, { ...stored(world), metadata: { ...stored(world).metadata, labels: { touched: "yes" } } });
  await settle(30);
  assert.equal(statuses(world).length, 1);
});

test("events are recorded on the Deployment with its kind, though items of a list have none", async (t) => {
  const world = newTestContext(t);
  const about: (string | undefined)[] = [];
  const event = (object: KubeObject) => void about.push(`${object.apiVersion} ${object.kind} ${object.metadata.name}`);
  const {
    apiVersion: _,
    kind: __,
    ...bare
  } = aDeployment({ image: "v1", annotations: { "deprecated.deployment.rollback.to": "7" } });
  world.client.put(deployments, bare as Deployment);
  await world.run(newDeploymentController({ ...world.ctx, recorder: { event, flush: () => Promise.resolve() } }));
  assert.ok(about.length >= 2, "of the new set and of the rollback");
  assert.deepEqual([...new Set(about)], ["apps/v1 Deployment web"]);
});

test("a new set keeps the selector's expressions, and its name depends on the number of collisions", () => {
  const matchExpressions = [{ key: "app", operator: "In", values: ["web"] }];
  const deployment = aDeployment({ spec: { selector: { matchLabels: { app: "web" }, matchExpressions } } });
  assert.deepEqual(buildNewSet(deployment, [], 1n).spec.selector?.matchExpressions, matchExpressions);
  const names = [undefined, 0, 1].map(
    (collisionCount) =>
      buildNewSet({ ...deployment, status: collisionCount === undefined ? {} : { collisionCount } }, [], 1n).metadata.name,
  );
  assert.equal(new Set(names).size, 3);
  assert.equal(buildNewSet(aDeployment({ replicas: 2 }), [aReplicaSet({ replicas: 2 })], 1n).spec.replicas, 1, "the surge");
});

test("the failure of a creation is the one that is reported to the queue", async (t) => {
  const world = newTestContext(t);
  const causes: unknown[] = [];
  const log = { ...world.ctx.log, named: () => log, error: (_: string, err: unknown) => void causes.push(err) };
  const refused = forbidden(replicaSets, "web", "exceeded quota");
  world.client.react("create", "replicasets", () => {
    throw refused;
  });
  world.client.put(deployments, aDeployment());
  await world.run(newDeploymentController({ ...world.ctx, log }));
  await world.clock.advance(86_400_000);
  await settle(30);
  assert.ok(causes.length > 0);
  for (const cause of causes) assert.equal(cause, refused);
});

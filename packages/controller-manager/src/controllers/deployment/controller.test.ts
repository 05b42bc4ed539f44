import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, forbidden, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { deployments, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newReplicaSetController } from "../replicaset/controller.ts";
import { newDeploymentController } from "./controller.ts";
import { buildNewSet } from "./new-replica-set.ts";

/**
 * Stands in for the kubelets: every existing Pod runs and is ready.
 * @returns number of Pods that became ready
 */
async function makeReady({ client, clock }: TestContext, image?: string): Promise<void> {
  for (let quiet = 0; quiet < 2; ) {
    const waiting = client
      .objects<Pod>(pods)
      .filter(({ spec, status }) => !status?.conditions && (image === undefined || spec.containers[0]?.image === image));
    quiet = waiting.length === 0 ? quiet + 1 : 0;
    for (const pod of waiting) {
      client.put(pods, {
        ...pod,
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: "True", lastTransitionTime: pod.metadata.creationTimestamp }],
        },
      });
    }
    await settle(30);
    await clock.advance(50);
  }
}

const stored = ({ client }: TestContext) => client.object<Deployment>(deployments, "default/web") as Deployment;
const sizes = ({ client }: TestContext): Record<string, number> =>
  Object.fromEntries(
    client
      .objects<ReplicaSet>(replicaSets)
      .map(({ spec }) => [spec.template?.spec?.containers[0]?.image ?? "", spec.replicas ?? 1]),
  );
const reasonOf = (d: Deployment, type: string) => d.status?.conditions?.find((c) => c.type === type)?.reason;

async function rollOut(t: { after(fn: () => void): void }, deployment: Deployment): Promise<TestContext> {
  const world = newTestContext(t);
  world.client.put(deployments, deployment);
  await world.run(newDeploymentController(world.ctx), newReplicaSetController(world.ctx));
  return world;
}

function change(world: TestContext, edit: (deployment: Deployment) => void): Promise<void> {
  const deployment = deepClone(stored(world));
  edit(deployment);
  deployment.metadata.generation = (deployment.metadata.generation ?? 0) + 1;
  world.client.put(deployments, deployment);
  return settle(30);
}
const setImage = (image: string) => (deployment: Deployment) => {
  (deployment.spec.template.spec.containers[0] as { image: string }).image = image;
};

test("says that its replica set cannot be created", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "replicasets", () => {
    throw forbidden(replicaSets, "web", "exceeded quota");
  });
  world.client.put(deployments, aDeployment({ replicas: 1, image: "v1" }));
  await world.run(newDeploymentController(world.ctx));
  assert.match(
    world.events[0] ?? "",
    /^Warning ReplicaSetCreateError Failed to create new replica set "web-\w+": replicasets.apps "web" is forbidden: exceeded quota$/,
  );
  assert.equal(reasonOf(stored(world), "Progressing"), "ReplicaSetCreateError");
});

test("a deployment creates a replica set, this creates pods, and the status counts them", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 3, image: "v1" }));
  assert.deepEqual(sizes(world), { v1: 3 });
  assert.equal(world.client.objects(pods).length, 3);
  assert.equal(reasonOf(stored(world), "Available"), "MinimumReplicasUnavailable");
  await makeReady(world);
  const { status, metadata } = stored(world);
  assert.partialDeepStrictEqual(status, {
    replicas: 3,
    updatedReplicas: 3,
    readyReplicas: 3,
    availableReplicas: 3,
    observedGeneration: 1,
  });
  assert.equal(metadata.annotations?.["deployment.kubernetes.io/revision"], "1");
  assert.equal(reasonOf(stored(world), "Progressing"), "NewReplicaSetAvailable");
  assert.equal(reasonOf(stored(world), "Available"), "MinimumReplicasAvailable");
  const [set] = world.client.objects<ReplicaSet>(replicaSets);
  assert.ok(
    world.events.includes(`Normal ScalingReplicaSet Scaled up replica set ${set?.metadata.name} to 3`),
    world.events.join("\n"),
  );
});

test("a rolling update never has too many or too few, and ends with all of the new", async (t) => {
  const world = await rollOut(
    t,
    aDeployment({
      replicas: 4,
      image: "v1",
      spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } },
    }),
  );
  await makeReady(world);
  let most = 0;
  let fewest = 4;
  world.client.react("*", "pods", () => {
    const all = world.client.objects<Pod>(pods);
    most = Math.max(most, all.length);
    fewest = Math.min(fewest, all.filter(({ status }) => status?.phase === "Running").length);
    return undefined;
  });
  await change(world, setImage("v2"));
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 0, v2: 4 });
  assert.deepEqual([...new Set(world.client.objects<Pod>(pods).map(({ spec }) => spec.containers[0]?.image))], ["v2"]);
  assert.ok(most <= 5, `${most} pods at once`);
  assert.ok(fewest >= 3, `only ${fewest} pods were ready`);
  assert.equal(stored(world).metadata.annotations?.["deployment.kubernetes.io/revision"], "2");
  assert.equal(reasonOf(stored(world), "Progressing"), "NewReplicaSetAvailable");
});

test("a new version that does not come up leaves the old one in service, and times out", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 4, image: "v1" }));
  await makeReady(world);
  await change(world, setImage("broken"));
  await makeReady(world, "v1");
  assert.deepEqual(sizes(world), { v1: 3, broken: 2 });
  await world.clock.advance(700_000);
  assert.partialDeepStrictEqual(
    stored(world).status?.conditions?.find(({ type }) => type === "Progressing"),
    {
      status: "False",
      reason: "ProgressDeadlineExceeded",
    },
  );
  await change(world, setImage("v1"));
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 4, broken: 0 });
  assert.equal(stored(world).metadata.annotations?.["deployment.kubernetes.io/revision"], "3");
});

test("recreate starts nothing new before the old is gone", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 2, image: "v1", spec: { strategy: { type: "Recreate" } } }));
  await makeReady(world);
  let overlapped = false;
  world.client.react("create", "pods", () => {
    overlapped ||= world.client.objects<Pod>(pods).some(({ spec }) => spec.containers[0]?.image === "v1");
    return undefined;
  });
  await change(world, setImage("v2"));
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 0, v2: 2 });
  assert.equal(overlapped, false);
});

test("a paused deployment scales but does not roll; resumed it does", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 2, image: "v1" }));
  await makeReady(world);
  await change(world, (deployment) => {
    deployment.spec.paused = true;
    deployment.spec.replicas = 3;
    setImage("v2")(deployment);
  });
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 3 });
  assert.equal(reasonOf(stored(world), "Progressing"), "DeploymentPaused");
  await change(world, ({ spec }) => {
    spec.paused = false;
  });
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 0, v2: 3 });
});

test("keeps only so many old sets", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1", spec: { revisionHistoryLimit: 1 } }));
  for (const image of ["v2", "v3", "v4"]) {
    await makeReady(world);
    await change(world, setImage(image));
  }
  await makeReady(world);
  assert.deepEqual(Object.keys(sizes(world)).toSorted(), ["v3", "v4"]);
});

test("adopts a set with its labels, and every pod belongs to a set", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1" }));
  const [set] = world.client.objects<ReplicaSet>(replicaSets);
  const { ownerReferences: _, ...metadata } = (set as ReplicaSet).metadata;
  world.client.put(replicaSets, { ...(set as ReplicaSet), metadata });
  await settle(30);
  assert.equal(controllerOf(world.client.objects<ReplicaSet>(replicaSets)[0] as ReplicaSet)?.name, "web");
  assert.equal(controllerOf(world.client.objects<Pod>(pods)[0] as Pod)?.kind, "ReplicaSet");
});

test("refuses to select everything", async (t) => {
  const world = await rollOut(t, aDeployment({ spec: { selector: {} } }));
  assert.deepEqual(sizes(world), {});
  assert.ok(world.events.some((event) => event.startsWith("Warning SelectingAll ")));
});

test("rolls back to the revision that an annotation of an earlier API requests", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1" }));
  await makeReady(world);
  await change(world, setImage("v2"));
  await makeReady(world);
  await change(world, ({ metadata }) => {
    metadata.annotations = { ...metadata.annotations, "deprecated.deployment.rollback.to": "1" };
  });
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 1, v2: 0 });
  const { annotations } = stored(world).metadata;
  assert.equal(annotations?.["deprecated.deployment.rollback.to"], undefined);
  assert.equal(annotations?.["deployment.kubernetes.io/revision"], "3");
  assert.ok(world.events.includes('Normal DeploymentRollback Rolled back deployment "web" to revision 1'));
});

test("a revision that could not be stored is stored later, and no second set is created for it", async (t) => {
  const world = newTestContext(t);
  world.client.put(deployments, aDeployment({ replicas: 1 }));
  let failures = 0;
  world.client.react("update", "deployments", ({ subresource }) => {
    if (subresource === "status" && failures++ === 0) throw serviceUnavailable("the server is away");
    return undefined;
  });
  await world.run(newDeploymentController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(world.client.objects(replicaSets).length, 1);
  assert.equal(stored(world).metadata.annotations?.["deployment.kubernetes.io/revision"], "1");
});

test("a deployment that is being deleted is not rolled out, only counted", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 2, image: "v1" }));
  await change(world, (deployment) => {
    setImage("v2")(deployment);
    deployment.metadata.finalizers = ["foregroundDeletion"];
    deployment.metadata.deletionTimestamp = "2024-01-01T00:00:00Z";
  });
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 2 });
  assert.equal(stored(world).status?.readyReplicas, 2);
});

test("recreate back to an earlier set waits for the pods of the later one, too", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 2, image: "v1", spec: { strategy: { type: "Recreate" } } }));
  await change(world, setImage("v2"));
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 0, v2: 2 });
  let away = true;
  world.client.react("delete", "pods", () => {
    if (away) throw serviceUnavailable("the server is away");
    return undefined;
  });
  await change(world, setImage("v1"));
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 0, v2: 0 });
  away = false;
  await world.clock.advance(60_000);
  await makeReady(world);
  assert.deepEqual(sizes(world), { v1: 2, v2: 0 });
});

test("old sets beyond the history limit stay until the rollout is complete", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 2, image: "v1", spec: { revisionHistoryLimit: 5 } }));
  await makeReady(world);
  await change(world, setImage("v2"));
  await makeReady(world);
  await change(world, (deployment) => {
    deployment.spec.revisionHistoryLimit = 0;
    setImage("v3")(deployment);
  });
  await settle(60);
  assert.equal(sizes(world)["v1"], 0, "v3 is not ready yet");
  await makeReady(world);
  assert.deepEqual(sizes(world), { v3: 2 });
});

test("an old set that is gone already does not keep the next one from being removed", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1", spec: { revisionHistoryLimit: 5 } }));
  for (const image of ["v2", "v3"]) {
    await makeReady(world);
    await change(world, setImage(image));
  }
  await makeReady(world);
  const tried = new Set<string>();
  world.client.react("delete", "replicasets", ({ name = "" }) => {
    tried.add(name);
    throw notFound(replicaSets, name);
  });
  await change(world, ({ spec }) => {
    spec.revisionHistoryLimit = 0;
  });
  assert.equal(tried.size, 2);
});

test("another owner's set of the same name counts as a collision, and a set of another name is created", async (t) => {
  const world = newTestContext(t);
  const deployment = aDeployment({ replicas: 1, image: "v1" });
  const foreign = buildNewSet(deployment, [], 1n);
  const [owner] = foreign.metadata.ownerReferences ?? [];
  foreign.metadata.ownerReferences = [{ ...(owner as NonNullable<typeof owner>), uid: "another", name: "another" }];
  world.client.put(replicaSets, foreign);
  world.client.put(deployments, deployment);
  await world.run(newDeploymentController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(stored(world).status?.collisionCount, 1);
  assert.equal(world.client.objects(replicaSets).length, 2);
});

test("an own set of the same name with another template counts as a collision, too", async (t) => {
  const world = newTestContext(t);
  const deployment = aDeployment({ replicas: 1, image: "v1" });
  const { template } = buildNewSet(aDeployment({ image: "v2" }), [], 1n).spec;
  const set = buildNewSet(deployment, [], 1n);
  world.client.put(replicaSets, { ...set, spec: { ...set.spec, template } as ReplicaSet["spec"] });
  world.client.put(deployments, deployment);
  await world.run(newDeploymentController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(stored(world).status?.collisionCount, 1);
  assert.deepEqual(Object.keys(sizes(world)).toSorted(), ["v1", "v2"]);
});

test("a changed minReadySeconds reaches the set", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1" }));
  await change(world, (deployment) => {
    deployment.spec.minReadySeconds = 7;
  });
  const sets = world.client.objects<ReplicaSet>(replicaSets);
  assert.deepEqual(
    sets.map(({ spec }) => spec.minReadySeconds),
    [7],
  );
});

test("says that its replica set cannot be created also when its own status cannot be written", async (t) => {
  const world = newTestContext(t);
  world.client.react("create", "replicasets", () => {
    throw forbidden(replicaSets, "web", "exceeded quota");
  });
  world.client.react("update", "deployments", () => {
    throw serviceUnavailable("away");
  });
  world.client.put(deployments, aDeployment({ replicas: 1, image: "v1" }));
  await world.run(newDeploymentController(world.ctx));
  assert.match(world.events[0] ?? "", /^Warning ReplicaSetCreateError .*exceeded quota$/);
});

test("a set whose creation was not answered is taken as its own, and not reported a second time", async (t) => {
  const world = newTestContext(t);
  world.client.put(deployments, aDeployment({ replicas: 1 }));
  world.client.react("create", "replicasets", ({ sent }) => {
    const set = sent as ReplicaSet;
    if (world.client.objects(replicaSets).length === 0) world.client.put(replicaSets, set);
    throw alreadyExists(replicaSets, set.metadata.name ?? "");
  });
  await world.run(newDeploymentController(world.ctx));
  await settle(30);
  assert.equal(world.client.objects(replicaSets).length, 1);
  assert.equal(stored(world).status?.collisionCount, undefined);
  assert.deepEqual(
    world.events.filter((event) => event.includes("Scaled up")),
    [],
  );
});

test("a pause writes its condition and the counts one after the other, without a conflict", async (t) => {
  const world = await rollOut(t, aDeployment({ replicas: 1, image: "v1" }));
  world.client.clearActions();
  await change(world, ({ spec }) => {
    spec.paused = true;
  });
  const writes = world.client.writes.filter(({ subresource }) => subresource === "status");
  assert.deepEqual([writes.length, reasonOf(stored(world), "Progressing")], [2, "DeploymentPaused"]);
});

/** Statuses of the workload controllers while something else changes pods, specs and statuses during a reconciliation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  daemonSets,
  deployments,
  jobs,
  nodes,
  pods,
  replicaSets,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDaemonSet, aDeployment, aNode, aStatefulSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { newDaemonSetController } from "./controllers/daemonset/controller.ts";
import { newDeploymentController } from "./controllers/deployment/controller.ts";
import { newJobController } from "./controllers/job/controller.ts";
import { newReplicaSetController } from "./controllers/replicaset/controller.ts";
import { newStatefulSetController } from "./controllers/statefulset/controller.ts";
import { aJob } from "./testing/jobs.ts";
import { newTestContext, type TestContext } from "./testing/test-context.ts";

interface Stored extends KubeObject {
  readonly status?: Readonly<Record<string, unknown>>;
}

interface Workload {
  readonly ref: ResourceRef;
  /** Wants two pods. */
  readonly owner: KubeObject;
  readonly make: (ctx: ControllerContext) => readonly (Runnable | undefined)[];
  /** The count of pods in its status. */
  readonly counted: string;
  /** The object whose creation or scaling a reconciliation begins with. */
  readonly made: ResourceRef;
}

const workloads: readonly Workload[] = [
  {
    ref: statefulSets,
    owner: aStatefulSet({ name: "w", replicas: 2, spec: { podManagementPolicy: "Parallel" } }),
    make: (ctx) => [newStatefulSetController(ctx)],
    counted: "replicas",
    made: pods,
  },
  {
    ref: daemonSets,
    owner: aDaemonSet({ name: "w" }),
    make: (ctx) => [newDaemonSetController(ctx)],
    counted: "currentNumberScheduled",
    made: pods,
  },
  {
    ref: deployments,
    owner: aDeployment({ name: "w", replicas: 2 }),
    make: (ctx) => [newDeploymentController(ctx), newReplicaSetController(ctx)],
    counted: "replicas",
    made: replicaSets,
  },
  {
    ref: jobs,
    owner: aJob({ name: "w", spec: { parallelism: 2, completions: 2 } }),
    make: (ctx) => [newJobController(ctx)],
    counted: "active",
    made: pods,
  },
];

function prepare(t: Parameters<typeof newTestContext>[0], { ref, owner, make }: Workload) {
  const world = newTestContext(t);
  const { client } = world;
  const statuses: NonNullable<Stored["status"]>[] = [];
  for (const name of ["a", "b"]) client.put(nodes, aNode({ name }));
  client.put(ref, owner);
  client.react("update", ref.resource, ({ subresource, sent }) => {
    if (subresource === "status") statuses.push((sent as Stored).status ?? {});
    return undefined;
  });
  return {
    ...world,
    /** The statuses that it sent, whether they were stored or not. */
    statuses,
    start: () => world.run(...make(world.ctx)),
    stored: () => client.object<Stored>(ref, "default/w") as Stored,
    pods: () => client.objects<Pod>(pods),
    created: () => client.actions.filter(({ verb, resource }) => verb === "create" && resource === "pods").length,
    /** Runs `change` at the first request of this kind, before it is answered. */
    during(verb: "create" | "update", resource: string, change: () => void, subresource = "") {
      let isFirst = true;
      client.react(verb, resource, (action) => {
        if (isFirst && action.subresource === subresource) {
          isFirst = false;
          change();
        }
        return undefined;
      });
    },
  };
}

/** Lets retries come that wait for their back-off: that of Jobs is 10 s, 20 s, … */
async function later({ clock }: TestContext | ReturnType<typeof prepare>): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await clock.advance(15_000);
    await settle(30);
  }
}

for (const workload of workloads) {
  const { ref, counted, made } = workload;
  const { kind } = ref;

  test(`${kind}: a conflict at the write of the status changes neither what another writer stored nor the number of pods`, async (t) => {
    const world = prepare(t, workload);
    world.during(
      "update",
      ref.resource,
      () => {
        const now = world.stored();
        world.client.put(ref, { ...now, metadata: { ...now.metadata, annotations: { by: "another" } } });
      },
      "status",
    );
    await world.start();
    await later(world);
    assert.equal(world.stored().metadata.annotations?.["by"], "another");
    assert.equal(world.stored().status?.[counted], 2);
    assert.equal(world.created(), 2);
    assert.ok(world.statuses.length > 1, "the write was repeated");
  });

  test(`${kind}: a status that cannot be stored is stored later, and no pod is created twice`, async (t) => {
    const world = prepare(t, workload);
    let failures = 0;
    world.client.react("update", ref.resource, ({ subresource }) => {
      if (subresource === "status" && failures++ < 3) throw serviceUnavailable("etcd is busy");
      return undefined;
    });
    await world.start();
    await later(world);
    assert.ok(failures > 3);
    assert.equal(world.stored().status?.[counted], 2);
    assert.equal(world.created(), 2);
  });

  test(`${kind}: two changes of the spec within a reconciliation are observed, in order, and never before they were acted on`, async (t) => {
    const world = prepare(t, workload);
    world.during("create", made.resource, () => {
      for (const generation of [2, 3]) {
        const now = world.stored();
        world.client.put(ref, { ...now, metadata: { ...now.metadata, generation, annotations: { g: String(generation) } } });
      }
    });
    await world.start();
    await later(world);
    const observed = world.statuses.map(({ observedGeneration }) => Number(observedGeneration ?? 0));
    assert.deepEqual(observed, observed.toSorted());
    // A Job's status has no generation.
    if (ref !== jobs) assert.ok((observed[0] ?? 0) <= 1 && observed.at(-1) === 3, String(observed));
    assert.equal(world.stored().status?.[counted], 2);
    assert.equal(world.created(), 2);
    assert.equal(world.stored().metadata.annotations?.["g"], "3");
  });

  test(`${kind}: a pod that is deleted while the status is written is created again and counted once`, async (t) => {
    const world = prepare(t, workload);
    world.during(
      "update",
      ref.resource,
      () => {
        const [pod] = world.pods();
        if (pod !== undefined) world.client.remove(pods, `default/${pod.metadata.name}`);
      },
      "status",
    );
    await world.start();
    await later(world);
    assert.equal(world.pods().length, 2);
    assert.equal(world.stored().status?.[counted], 2);
  });
}

/**
 * DaemonSets and StatefulSets with lost requests and responses, ended watches and controller restarts. The desired
 * state must be reached eventually, and invariants must hold at every step.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ControllerRevision, DaemonSet, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  controllerRevisions,
  daemonSets,
  nodes,
  persistentVolumeClaims,
  pods,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDaemonSet, aNode, aStatefulSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext, Runnable } from "../controller-context.ts";
import { newDaemonSetController } from "../controllers/daemonset/controller.ts";
import { targetNodeOf } from "../controllers/daemonset/pod-template.ts";
import { newStatefulSetController } from "../controllers/statefulset/controller.ts";
import { newTestContext, type TestContext } from "../testing/test-context.ts";
import { seeded, unreliable } from "../testing/unreliable.ts";

type Set = DaemonSet | StatefulSet;

/**
 * Runs one controller with faults, then without.
 * @param watch called after every step to check invariants
 */
async function survive(
  world: TestContext,
  make: (ctx: ControllerContext) => Runnable,
  seed: number,
  ref: typeof daemonSets,
  key: string,
  watch: () => void,
): Promise<void> {
  const random = seeded(seed);
  const { client, clock } = world;
  let stop = new AbortController();
  const restart = async (share: number): Promise<void> => {
    stop.abort(new Error("killed"));
    stop = new AbortController();
    await world.run(withSignal(make({ ...world.ctx, client: unreliable(client, share, random) }), stop.signal));
  };
  const step = async (): Promise<void> => {
    await settle(12);
    for (const pod of client.objects<Pod>(pods)) {
      if (pod.status?.conditions !== undefined || random() < 0.3) continue;
      const conditions = [{ type: "Ready", status: "True", lastTransitionTime: "2024-01-01T00:00:00Z" }];
      const nodeName = targetNodeOf(pod) ?? "n1";
      client.put(pods, { ...pod, spec: { ...pod.spec, nodeName }, status: { phase: "Running", conditions } } as Pod);
    }
    await settle(12);
    await clock.advance(2000);
    watch();
  };
  await restart(0.4);
  for (let i = 0; i < 24; i++) {
    await step();
    if (i % 6 === 2) await restart(0.4);
    if (i % 8 === 5) client.endWatches();
    if (i % 8 === 7) client.compact();
    if (i === 10) {
      const set = deepClone(client.object<Set>(ref, key)) as Set;
      (set.spec.template.spec?.containers[0] as { image: string }).image = "v2";
      set.metadata.generation = 2;
      client.put(ref, set);
    }
  }
  await restart(0);
  // Expectations without a matching event expire after five minutes.
  await clock.advance(301_000);
  for (let i = 0; i < 24; i++) await step();
  stop.abort(new Error("the test is over"));
}

const withSignal = (controller: Runnable, signal: AbortSignal): Runnable => ({ run: () => controller.run(signal) });
const imagesOf = (all: readonly Pod[]): string[] => all.map(({ spec }) => spec.containers[0]?.image ?? "");

for (let seed = 1; seed <= 15; seed++) {
  test(`a daemon set ends with one new pod on each node, and two revisions, with seed ${seed}`, async (t) => {
    const world = newTestContext(t);
    const names = ["n1", "n2", "n3"];
    for (const name of names) world.client.put(nodes, aNode({ name }));
    world.client.put(daemonSets, aDaemonSet({ image: "v1" }));
    await survive(world, newDaemonSetController, seed, daemonSets, "default/agent", () => {});
    const all = world.client.objects<Pod>(pods);
    assert.deepEqual(all.map((pod) => targetNodeOf(pod)).toSorted(), names);
    assert.deepEqual(imagesOf(all), ["v2", "v2", "v2"]);
    assert.deepEqual(
      world.client.objects<ControllerRevision>(controllerRevisions).map(({ revision }) => revision),
      [1, 2],
    );
    assert.partialDeepStrictEqual(world.client.object<DaemonSet>(daemonSets, "default/agent")?.status, {
      desiredNumberScheduled: 3,
      numberAvailable: 3,
      updatedNumberScheduled: 3,
      observedGeneration: 2,
    });
  });

  test(`a stateful set never skips a number, and ends with all new, with seed ${seed}`, async (t) => {
    const world = newTestContext(t);
    const volumeClaimTemplates: PersistentVolumeClaim[] = [{ metadata: { name: "data" }, spec: {} }];
    world.client.put(statefulSets, aStatefulSet({ replicas: 3, image: "v1", spec: { volumeClaimTemplates } }));
    let most = 0;
    await survive(world, newStatefulSetController, seed, statefulSets, "default/db", () => {
      const all = world.client.objects<Pod>(pods);
      const serving = all.filter(({ status }) => status?.phase === "Running").map(({ metadata }) => metadata.name ?? "");
      // During the first scale-up no Pod is created before all lower ordinals are running.
      if (most < 3 && all.length > 0) {
        const highest = Math.max(...all.map(({ metadata }) => Number((metadata.name ?? "").split("-")[1])));
        for (let below = 0; below < highest; below++)
          assert.ok(serving.includes(`db-${below}`), `db-${highest} before db-${below}`);
      }
      most = Math.max(most, serving.length);
      if (most === 3) assert.ok(serving.length >= 2, "more than one is missing");
    });
    const all = world.client.objects<Pod>(pods);
    assert.deepEqual(all.map(({ metadata }) => metadata.name).toSorted(), ["db-0", "db-1", "db-2"]);
    assert.deepEqual(imagesOf(all), ["v2", "v2", "v2"]);
    assert.equal(world.client.objects(persistentVolumeClaims).length, 3);
    assert.equal(world.client.objects(controllerRevisions).length, 2);
    const { status } = world.client.object<StatefulSet>(statefulSets, "default/db") ?? {};
    assert.partialDeepStrictEqual(status, { readyReplicas: 3, updatedReplicas: 3, currentReplicas: 3, observedGeneration: 2 });
    assert.equal(status?.currentRevision, status?.updateRevision);
  });
}

/** One user's object with thousands of dependents: its requests leave others a share of the client's rate limit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { configMaps, jobs, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { newGarbageCollector } from "./controllers/garbagecollector/controller.ts";
import { newJobController } from "./controllers/job/controller.ts";
import { newPodGarbageCollector } from "./controllers/podgc/controller.ts";
import { newReplicaSetController } from "./controllers/replicaset/controller.ts";
import { serveDiscovery } from "./testing/discovery.ts";
import { meta } from "./testing/hostile-objects.ts";
import { aJob } from "./testing/jobs.ts";
import { newTestContext, type TestContext } from "./testing/test-context.ts";

const some = Array.from({ length: 200 }, (_, i) => `p${i}`);
const labels = { app: "web" };
const deletedAt = "2022-01-01T00:00:00Z";

for (const { name, make, prepare, verb, of, most } of [
  {
    name: "a ReplicaSet adopts 200 pods one after the other, as upstream does",
    make: newReplicaSetController,
    prepare({ client }) {
      client.put(replicaSets, aReplicaSet({ name: "web" }));
      client.put(pods, ...some.map((pod) => aPod({ name: pod, labels })));
    },
    ...{ verb: "patch", of: pods, most: 1 },
  },
  {
    name: "a suspended Job deletes its 200 pods, 50 at once",
    make: newJobController,
    prepare({ client }) {
      const owner = aJob({ spec: { suspend: true, selector: { matchLabels: labels } } });
      client.put(jobs, owner);
      client.put(pods, ...some.map((pod) => aPod({ name: pod, labels, owner: { ...owner, kind: "Job" } })));
    },
    ...{ verb: "delete", of: pods, most: 50 },
  },
  {
    name: "200 dependents of an object are orphaned, 50 at once",
    make: newGarbageCollector,
    prepare({ client }) {
      serveDiscovery(
        client,
        [configMaps, pods].map((ref) => ({ ...ref, deletable: true })),
      );
      client.put(configMaps, { metadata: meta("owner", { deletionTimestamp: deletedAt, finalizers: ["orphan"] }) } as never);
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "owner-uid" }];
      client.put(pods, ...some.map((pod) => aPod({ name: pod, ownerReferences })));
    },
    ...{ verb: "get", of: pods, most: 50 },
  },
  {
    name: "200 pods that were deleted without a node are removed, 50 at once",
    make: newPodGarbageCollector,
    prepare: ({ client }) => client.put(pods, ...some.map((pod) => aPod({ name: pod, deletedAt }))),
    ...{ verb: "delete", of: pods, most: 50 },
  },
] as readonly {
  readonly name: string;
  readonly make: (ctx: ControllerContext) => Runnable | undefined;
  readonly prepare: (world: TestContext) => void;
  readonly verb: TestContext["client"]["actions"][number]["verb"];
  readonly of: ResourceRef;
  readonly most: number;
}[]) {
  test(name, async (t) => {
    const world = newTestContext(t);
    prepare(world);
    world.client.react(verb, of.resource, () => new Promise(() => {})); // the server does not answer
    await world.run(make(world.ctx));
    await settle(60);
    const begun = world.client.actions.filter((action) => action.verb === verb && action.resource === of.resource);
    assert.equal(begun.length, most);
  });
}

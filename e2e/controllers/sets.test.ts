import assert from "node:assert/strict";
import { test } from "node:test";
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
import { waitFor } from "../framework/wait-for.ts";
import { type ManagedCluster, startManaged } from "./manager-process.ts";

const template = (app: string, image: string) => ({
  metadata: { labels: { app } },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: "main", image }] },
});
const pinnedTo = ({ spec }: Pod): string =>
  spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms[0]?.matchFields?.[0]
    ?.values?.[0] ?? "";
const imageOf = ({ spec }: Pod): string => spec.containers[0]?.image ?? "";
const namesOf = (objects: readonly { metadata: { name?: string } }[]): string[] =>
  objects.map(({ metadata }) => metadata.name ?? "").toSorted();

/** Simulates kubelets until the condition holds. */
function until(
  what: string,
  cluster: ManagedCluster,
  holds: () => Promise<boolean>,
  serves?: (pod: Pod) => boolean,
): Promise<boolean> {
  return waitFor(what, async () => {
    await cluster.tend((pod) => pinnedTo(pod) || "a", serves);
    return holds();
  }).catch((err) => {
    throw new Error(cluster.log().slice(-2000), { cause: err });
  });
}

test("a daemon set follows nodes and surges over them, on a real API server and with its own role", async (t) => {
  const cluster = await startManaged(t, ["daemonset", "serviceaccount"]);
  const { client } = cluster.server;
  const target = { namespace: "default", name: "agent" };
  for (const name of ["a", "b", "c"]) await cluster.addNode(name, { disk: "ssd" });
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
  const agents = template("agent", "v1");
  await client.create<DaemonSet>(daemonSets, {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { ...target, annotations: { "kubernetes.io/change-cause": "first" } },
    spec: {
      selector: { matchLabels: { app: "agent" } },
      updateStrategy,
      template: { ...agents, spec: { ...agents.spec, nodeSelector: { disk: "ssd" } } },
    },
  });
  const status = async (): Promise<DaemonSet["status"]> => (await client.get<DaemonSet>(daemonSets, target)).status;
  await until("three pods serve", cluster, async () => (await status())?.numberAvailable === 3);
  const before = await cluster.list<Pod>(pods);
  assert.deepEqual(before.map(pinnedTo).toSorted(), ["a", "b", "c"]);
  const [first] = await cluster.list<ControllerRevision>(controllerRevisions);
  assert.equal(first?.metadata.annotations?.["kubernetes.io/change-cause"], "first");

  await client.patch(daemonSets, target, {
    type: "strategic",
    body: { spec: { template: { spec: { containers: [{ name: "main", image: "v2" }] } } } },
  });
  let fewest = 3;
  await until("all pods are new", cluster, async () => {
    const all = await cluster.list<Pod>(pods);
    fewest = Math.min(fewest, all.filter((pod) => pod.status?.phase === "Running" && !pod.metadata.deletionTimestamp).length);
    return all.length === 3 && all.every((pod) => imageOf(pod) === "v2") && (await status())?.updatedNumberScheduled === 3;
  });
  assert.ok(fewest >= 2, `${fewest} served at the least`);

  // As kubectl rollout undo does: the revision's data is the patch.
  await client.patch(daemonSets, target, { type: "strategic", body: first?.data });
  await until("all pods are as they were", cluster, async () => {
    const all = await cluster.list<Pod>(pods);
    return all.length === 3 && all.every((pod) => imageOf(pod) === "v1") && (await status())?.updatedNumberScheduled === 3;
  });
  const again = await client.get<ControllerRevision>(controllerRevisions, {
    namespace: "default",
    name: first?.metadata.name ?? "",
  });
  assert.equal(again.revision, 3);

  await client.patch(nodes, { name: "c" }, { type: "merge", body: { metadata: { labels: { disk: null } } } });
  await until("the pod on c is gone, and the status says so", cluster, async () => {
    const [all, now] = [await cluster.list<Pod>(pods), await status()];
    return all.length === 2 && now?.desiredNumberScheduled === 2;
  });
  const [failing] = await cluster.list<Pod>(pods);
  const failed = { namespace: "default", name: failing?.metadata.name ?? "", subresource: "status" };
  await client.patch(pods, failed, { type: "merge", body: { status: { phase: "Failed" } } });
  await until("the failed pod is replaced", cluster, async () => {
    const all = await cluster.list<Pod>(pods);
    return all.length === 2 && !namesOf(all).includes(failed.name) && (await status())?.numberAvailable === 2;
  });
});

test("claims go with pods that are scaled away, and with the set, as it asks for", async (t) => {
  const controllers = ["statefulset", "garbagecollector", "pvc-protection", "serviceaccount"];
  const cluster = await startManaged(t, controllers, ["StatefulSetAutoDeletePVC"]);
  const { client } = cluster.server;
  const target = { namespace: "default", name: "db" };
  await cluster.addNode("a");
  const set = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: target,
    spec: {
      replicas: 2,
      serviceName: "db",
      selector: { matchLabels: { app: "db" } },
      template: template("db", "v1"),
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Delete" },
      volumeClaimTemplates: [
        { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } } },
      ],
    },
  };
  await client.create(statefulSets, set);
  const status = async (): Promise<StatefulSet["status"]> => (await client.get<StatefulSet>(statefulSets, target)).status;
  const claims = async (): Promise<PersistentVolumeClaim[]> => cluster.list(persistentVolumeClaims);
  await until("both pods serve", cluster, async () => (await status())?.availableReplicas === 2);
  await until("the claims are the set's", cluster, async () =>
    (await claims()).every(({ metadata }) => metadata.ownerReferences?.[0]?.kind === "StatefulSet"),
  );
  assert.deepEqual(namesOf(await claims()), ["data-db-0", "data-db-1"]);
  assert.equal((await status())?.currentRevision, (await status())?.updateRevision);

  await client.patch(statefulSets, target, { type: "merge", body: { spec: { replicas: 1 } } });
  await until("the second claim is gone", cluster, async () => namesOf(await claims()).join() === "data-db-0");
  await client.patch(statefulSets, target, { type: "merge", body: { spec: { replicas: 2 } } });
  await until("there is a new second claim", cluster, async () => (await status())?.availableReplicas === 2);
  assert.deepEqual(namesOf(await cluster.list<Pod>(pods)), ["db-0", "db-1"]);

  await client.delete(statefulSets, target, { propagationPolicy: "Foreground" });
  await until("nothing is left", cluster, async () => (await claims()).length === 0 && (await cluster.list(pods)).length === 0);
  await until("its revisions go too", cluster, async () => (await cluster.list(controllerRevisions)).length === 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  persistentVolumeClaims,
  persistentVolumes,
  serviceAccounts,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "../framework/wait-for.ts";
import { startScheduling } from "./scheduler-process.ts";

const key = { namespace: "default", name: "data" };

/** Stands in for the persistent volume controller after the scheduler has reserved a volume. */
async function bindClaim(client: Cluster["server"]["client"], volumeName: string): Promise<void> {
  await client.patch(persistentVolumeClaims, key, {
    type: "merge",
    body: { metadata: { annotations: { "pv.kubernetes.io/bind-completed": "yes" } }, spec: { volumeName } },
  });
}

type Cluster = Awaited<ReturnType<typeof startScheduling>>;

/** The pod `web` with a claim whose class waits for its first consumer. */
async function addClaimant(cluster: Cluster, storageClassName: string, provisioner: string): Promise<void> {
  const { client } = cluster.server;
  await client.create(serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "default", namespace: "default" },
  });
  await client.create(storageClasses, {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: storageClassName },
    provisioner,
    volumeBindingMode: "WaitForFirstConsumer",
  });
  await client.create(persistentVolumeClaims, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: key,
    spec: { accessModes: ["ReadWriteOnce"], storageClassName, resources: { requests: { storage: "1Gi" } } },
  });
  await cluster.addPod("web", "1", { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] });
}

test("a claim that waits for its first consumer gets a volume of the node, and the pod follows", async (t) => {
  const cluster = await startScheduling(t);
  const { client } = cluster.server;
  await cluster.addNode("a", "4");
  await cluster.addNode("b", "4");
  const volume = await client.create(persistentVolumes, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "disk" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "local",
      local: { path: "/mnt/disk" },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["b"] }] }],
        },
      },
    },
  });
  await client.update(persistentVolumes, { ...volume, status: { phase: "Available" } }, { subresource: "status" });
  await addClaimant(cluster, "local", "kubernetes.io/no-provisioner");

  const reserved = await waitFor("the volume to be reserved", async () => {
    const { spec } = await client.get<PersistentVolume>(persistentVolumes, { name: "disk" });
    return spec.claimRef;
  });
  assert.equal(reserved.name, "data");
  assert.equal((await cluster.pod("web")).spec.nodeName, undefined);
  await bindClaim(client, "disk");
  await waitFor("the pod to be on b", async () => (await cluster.pod("web")).spec.nodeName === "b");
  assert.doesNotMatch(cluster.log(), /forbidden/i);
});

test("a volume that has to be made is requested with the chosen node, again elsewhere when that fails", async (t) => {
  const cluster = await startScheduling(t);
  const { client } = cluster.server;
  await cluster.addNode("a", "4");
  await addClaimant(cluster, "made", "example.com/disk");
  const chosen = async (): Promise<string | undefined> => {
    const { metadata } = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, key);
    return metadata.annotations?.["volume.kubernetes.io/selected-node"];
  };
  await waitFor("a node to be chosen", async () => (await chosen()) === "a");
  await client.patch(persistentVolumeClaims, key, {
    type: "merge",
    body: { metadata: { annotations: { "volume.kubernetes.io/selected-node": null, seen: "yes" } } },
  });
  await waitFor("the failure to be reported", async () => {
    const [condition] = (await cluster.pod("web")).status?.conditions ?? [];
    return condition?.message?.includes('provisioning failed for PVC "data"');
  });
  await waitFor("a node to be chosen again", async () => (await chosen()) === "a");
  await client.create(persistentVolumes, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "made" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "made",
      hostPath: { path: "/mnt/made" },
    },
  });
  await bindClaim(client, "made");
  await waitFor("the pod to be on a", async () => (await cluster.pod("web")).spec.nodeName === "a");
});

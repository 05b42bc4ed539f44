import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { getJson, kubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, runToEnd, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Claim {
  metadata: { deletionTimestamp?: string; finalizers?: string[]; ownerReferences?: { kind: string; name: string }[] };
  spec: { volumeName?: string };
  status: { phase: string; capacity?: Record<string, string> };
}
interface Volume {
  metadata: { name: string };
  status: { phase: string };
}

/** Cluster-scoped objects of one test; their class is the name of its namespace, and they are deleted with it. */
async function withClass(t: TestContext, prefix: string, binding = "Immediate") {
  const namespace = await newNamespace(t, prefix);
  const folder = mkdtempSync(`/tmp/cox-${prefix}-`);
  t.after(async () => {
    await tryKubectl(["delete", "pv", "-l", `test=${namespace}`, "--wait=false"]);
    await tryKubectl(["delete", "storageclass", namespace]);
    rmSync(folder, { recursive: true, force: true });
  });
  const create = (object: object) => kubectl("create", "-f", "-", { input: JSON.stringify(object) });
  await create({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: namespace },
    provisioner: "kubernetes.io/no-provisioner",
    volumeBindingMode: binding,
  });
  const claimSpec = {
    accessModes: ["ReadWriteOnce"],
    storageClassName: namespace,
    resources: { requests: { storage: "100Mi" } },
  };
  return {
    namespace,
    folder,
    create,
    claimSpec,
    aVolume: (name: string, source: object) =>
      create({
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `${namespace}-${name}`, labels: { test: namespace } },
        spec: {
          capacity: { storage: "200Mi" },
          accessModes: ["ReadWriteOnce"],
          persistentVolumeReclaimPolicy: "Retain",
          storageClassName: namespace,
          ...source,
        },
      }),
    aClaim: (name: string) =>
      create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace }, spec: claimSpec }),
    claim: (name: string) => getJson<Claim>("pvc", name, "-n", namespace),
    volume: (name: string) => getJson<Volume>("pv", `${namespace}-${name}`),
  };
}

const usingClaim = (claimName: string, script: string) => ({
  containers: [busybox("main", script, { volumeMounts: [{ name: "data", mountPath: "/data" }] })],
  volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
});

test("a claim is bound, holds while a pod uses it, and leaves a released volume with its data", async (t) => {
  const { namespace, folder, aVolume, aClaim, claim, volume } = await withClass(t, "claims");
  await aVolume("disk", { hostPath: { path: folder } });
  await waitFor("the volume to be available", async () => (await volume("disk")).status.phase === "Available");
  await aClaim("data");
  const bound = await waitFor("the claim to be bound", async () => {
    const now = await claim("data");
    return now.status.phase === "Bound" && now;
  });
  assert.deepEqual([bound.spec.volumeName, bound.status.capacity], [`${namespace}-disk`, { storage: "200Mi" }]);
  assert.equal((await volume("disk")).status.phase, "Bound");

  const script = "echo kept > /data/file; sleep 3600";
  await createPod(namespace, "user", { terminationGracePeriodSeconds: 0, ...usingClaim("data", script) });
  await waitForPod(namespace, "user", "runs", ({ status }) => status.phase === "Running");
  await waitFor("the pod to have written", async () => existsSync(`${folder}/file`));
  await kubectl("delete", "pvc", "data", "-n", namespace, "--wait=false");
  const held = await claim("data");
  assert.ok(held.metadata.deletionTimestamp !== undefined);
  assert.deepEqual(held.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  await kubectl("delete", "pod", "--all", "-n", namespace);
  await waitFor("the claim to go", async () => (await tryKubectl(["get", "pvc", "data", "-n", namespace])).code !== 0);
  await waitFor("the volume to be released", async () => (await volume("disk")).status.phase === "Released");
  assert.equal(readFileSync(`${folder}/file`, "utf8"), "kept\n");
});

test("the claim of an ephemeral volume is owned by its pod and deleted with it", async (t) => {
  const { namespace, folder, aVolume, claim, claimSpec } = await withClass(t, "ephemeral");
  await aVolume("disk", { hostPath: { path: folder } });
  await createPod(namespace, "web", {
    terminationGracePeriodSeconds: 0,
    containers: [busybox("main", "echo here > /data/file; sleep 3600", { volumeMounts: [{ name: "data", mountPath: "/data" }] })],
    volumes: [{ name: "data", ephemeral: { volumeClaimTemplate: { spec: claimSpec } } }],
  });
  await waitForPod(namespace, "web", "runs", ({ status }) => status.phase === "Running");
  const made = await claim("web-data");
  assert.equal(made.status.phase, "Bound");
  assert.partialDeepStrictEqual(made.metadata.ownerReferences?.[0], { kind: "Pod", name: "web" });
  await kubectl("delete", "pod", "web", "-n", namespace);
  await waitFor("the claim to go", async () => (await tryKubectl(["get", "pvc", "web-data", "-n", namespace])).code !== 0);
});

test("a claim that waits for its first pod is bound where the pod is placed", async (t) => {
  const { namespace, folder, aVolume, aClaim, claim } = await withClass(t, "waiting", "WaitForFirstConsumer");
  const { items } = await getJson<{ items: { metadata: { name: string } }[] }>("nodes");
  const values = [items[0]?.metadata.name];
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values }];
  await aVolume("disk", {
    local: { path: folder },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
  });
  await aClaim("data");
  await waitFor("the claim to say what it waits for", async () => {
    const { items: events } = await getJson<{ items: { reason: string; message: string }[] }>("events", "-n", namespace);
    return events.some(
      ({ reason, message }) =>
        reason === "WaitForFirstConsumer" && message === "waiting for first consumer to be created before binding",
    );
  });
  assert.equal((await claim("data")).status.phase, "Pending");
  await runToEnd(namespace, "writer", usingClaim("data", "echo placed > /data/file"));
  assert.equal(readFileSync(`${folder}/file`, "utf8"), "placed\n");
  assert.equal((await claim("data")).status.phase, "Bound");
});

test("a CSI volume is attached for its pod, the node status shows it, and it is detached after it", async (t) => {
  const { namespace, aVolume, aClaim } = await withClass(t, "attach");
  const driver = `${namespace}.example.com`;
  await aVolume("disk", { csi: { driver, volumeHandle: "disk-1" } });
  await aClaim("data");
  await createPod(namespace, "web", { terminationGracePeriodSeconds: 0, ...usingClaim("data", "sleep 3600") });
  const attachment = async () => {
    const { items } = await getJson<{ items: { metadata: { name: string }; spec: { attacher: string; nodeName: string } }[] }>(
      "volumeattachments",
    );
    return items.find(({ spec }) => spec.attacher === driver);
  };
  const made = await waitFor("the volume to be requested", attachment);
  const { resourceVersion } = (await getJson<{ metadata: { resourceVersion: string } }>("volumeattachment", made.metadata.name))
    .metadata;
  // Stands in for the driver's attacher.
  await kubectl("replace", "--raw", `/apis/storage.k8s.io/v1/volumeattachments/${made.metadata.name}/status`, "-f", "-", {
    input: JSON.stringify({ ...made, metadata: { ...made.metadata, resourceVersion }, status: { attached: true } }),
  });
  const listed = async () => {
    const { status } = await getJson<{ status: { volumesAttached?: { name: string }[] } }>("node", made.spec.nodeName);
    return (status.volumesAttached ?? []).some(({ name }) => name === `kubernetes.io/csi/${driver}^disk-1`);
  };
  await waitFor("the node's status to show it", listed);
  await waitFor("an event for the pod", async () => {
    const { items } = await getJson<{ items: { reason: string; message: string }[] }>("events", "-n", namespace);
    return items.some(
      ({ reason, message }) =>
        reason === "SuccessfulAttachVolume" && message === `AttachVolume.Attach succeeded for volume "${namespace}-disk" `,
    );
  });
  await kubectl("delete", "pod", "web", "-n", namespace);
  await waitFor("the volume to be detached", async () => (await attachment()) === undefined);
  assert.equal(await listed(), false);
});

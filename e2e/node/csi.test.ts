import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isMissingFile } from "@coxswain/apimachinery/testing/wait-for";
import { daemonProcess } from "@coxswain/dev-cluster/daemons";
import { start, stop } from "@coxswain/dev-cluster/processes";
import { send } from "../framework/api.ts";
import { newDriverProcess } from "../framework/csi-driver.ts";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, runToEnd, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface NodeView {
  metadata: { annotations: Record<string, string> };
  status: { volumesInUse?: string[]; volumesAttached?: { name: string }[] };
}

interface AttachmentView {
  metadata: { name: string };
  spec: { attacher: string };
}

const create = (...objects: object[]): Promise<string> =>
  kubectl("create", "-f", "-", { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) });

const driverObject = (name: string, spec: object): object => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "CSIDriver",
  metadata: { name },
  spec,
});

/**
 * A running driver without attachment, with a volume of 1Gi bound to the claim `data`.
 * @param spec further fields of volume and claim
 */
async function driverWithVolume(t: TestContext, name: string, namespace: string, spec: object) {
  t.after(() => tryKubectl(["delete", "--ignore-not-found", "--wait=false", `csidriver/${name}`, `pv/${name}`]));
  const driver = newDriverProcess(t, name);
  driver.start();
  const both = { accessModes: ["ReadWriteOnce"], storageClassName: "", ...spec };
  const size = { storage: "1Gi" };
  await create(
    driverObject(name, { attachRequired: false }),
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: { ...both, capacity: size, csi: { driver: name, volumeHandle: "vol" }, claimRef: { namespace, name: "data" } },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data", namespace },
      spec: { ...both, volumeName: name, resources: { requests: size } },
    },
  );
  return driver;
}

const registeredHere = async (name: string): Promise<boolean> => {
  const { spec } = await getJson<{ spec: { drivers: { name: string }[] | null } }>("csinode", settings.nodeName);
  return (spec.drivers ?? []).some((driver) => driver.name === name);
};

const mountsBelow = (path: string): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((mountPoint) => mountPoint.startsWith(path));

test("a CSI volume is attached, staged and published for its pod, survives the kubelet's death, and is taken off again", async (t) => {
  const name = `disk-${process.pid}.example.com`;
  const namespace = await newNamespace(t, "csi");
  t.after(() =>
    tryKubectl(["delete", "--ignore-not-found", "--wait=false", `csidriver/${name}`, `storageclass/${name}`, `pv/${name}`]),
  );
  const driver = newDriverProcess(t, name);
  await create(driverObject(name, { attachRequired: true, podInfoOnMount: true }), {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: name,
    volumeBindingMode: "WaitForFirstConsumer",
  });
  driver.start();
  await waitFor("the driver in CSINode", () => registeredHere(name));
  const { metadata } = await getJson<NodeView>("node", settings.nodeName);
  assert.equal(JSON.parse(metadata.annotations["csi.volume.kubernetes.io/nodeid"] ?? "{}")[name], `${name}-node`);

  const size = { storage: "1Gi" };
  const accessModes = ["ReadWriteOnce"];
  await create(
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: { capacity: size, accessModes, storageClassName: name, csi: { driver: name, volumeHandle: "vol" } },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data", namespace },
      spec: { accessModes, storageClassName: name, resources: { requests: size } },
    },
  );
  await createPod(namespace, "user", {
    terminationGracePeriodSeconds: 1,
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    containers: [busybox("main", "echo kept > /data/file; sleep 3600", { volumeMounts: [{ name: "data", mountPath: "/data" }] })],
  });

  // Stands in for the driver's controller.
  const attachment = await waitFor("the volume to be requested", async () =>
    (await getJson<{ items: AttachmentView[] }>("volumeattachments")).items.find(({ spec }) => spec.attacher === name),
  );
  assert.deepEqual(driver.calls(), [], "nothing is mounted before it is attached");
  const path = `/apis/storage.k8s.io/v1/volumeattachments/${attachment.metadata.name}/status`;
  const status = JSON.stringify({ status: { attached: true, attachmentMetadata: { lun: "4" } } });
  const answer = await send("PATCH", path, status, { "content-type": "application/merge-patch+json" });
  assert.equal(answer.code, 200, answer.text);
  const before = await waitForPod(namespace, "user", "is ready", isReady);
  await waitFor("the pod to have written", async () => readFileSync(join(driver.volumeDir("vol"), "file"), "utf8") === "kept\n", {
    retry: isMissingFile,
  });
  const volume = `kubernetes.io/csi/${name}^vol`;
  assert.ok((await getJson<NodeView>("node", settings.nodeName)).status.volumesInUse?.includes(volume));
  const publish = driver.calls().find(({ method }) => method === "NodePublishVolume");
  assert.deepEqual(publish?.request.publishContext, { lun: "4" });
  assert.equal(publish?.request.volumeContext["csi.storage.k8s.io/pod.name"], "user");

  await stop(settings, "kubelet", 0); // killed
  await kubectl("delete", "pod", "user", "-n", namespace, "--wait=false");
  await start(settings, daemonProcess(settings, "kubelet"));
  await waitFor("the pod to be gone", async () => (await tryKubectl(["get", "pod", "user", "-n", namespace])).code !== 0);
  await waitFor("the volume to be no more in use", async () => {
    const { status } = await getJson<NodeView>("node", settings.nodeName);
    return !(status.volumesInUse ?? []).includes(volume) && !(status.volumesAttached ?? []).some((one) => one.name === volume);
  });
  await waitFor("the volume to be taken off", async () =>
    (await getJson<{ items: AttachmentView[] }>("volumeattachments")).items.every(({ spec }) => spec.attacher !== name),
  );
  assert.ok(driver.calls().some(({ method }) => method === "NodeUnpublishVolume"));
  assert.equal(driver.calls().at(-1)?.method, "NodeUnstageVolume");
  assert.deepEqual(mountsBelow(join(settings.state, `kubelet/pods/${before.metadata.uid}`)), []);
  assert.deepEqual(mountsBelow(join(settings.state, "kubelet/plugins")), []);
  const folders = join(settings.state, "kubelet/plugins/kubernetes.io/csi/pv");
  assert.ok(!existsSync(folders) || !readdirSync(folders).includes(name));
  await driver.kill();
});

test("a volume without a file system is a device in the container", async (t) => {
  const name = `block-${process.pid}.example.com`;
  const namespace = await newNamespace(t, "block");
  const driver = await driverWithVolume(t, name, namespace, { volumeMode: "Block" });
  await waitFor("the driver in CSINode", () => registeredHere(name));
  const printed = await runToEnd(namespace, "user", {
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    containers: [
      busybox("main", "test -f /dev/disk && echo file; head -c 3 /dev/disk | od -An -tx1", {
        volumeDevices: [{ name: "data", devicePath: "/dev/disk" }],
      }),
    ],
  });
  assert.equal(printed.trim(), "00 00 00");
  await kubectl("delete", "pod", "user", "-n", namespace);
  await waitFor("the volume to be unstaged", async () => driver.calls().at(-1)?.method === "NodeUnstageVolume");
  await driver.kill();
});

test("a claim shows that its volume has grown when the file system has, and not before", async (t) => {
  const name = `grow-${process.pid}.example.com`;
  const namespace = await newNamespace(t, "grow");
  const driver = await driverWithVolume(t, name, namespace, {});
  const capacity = (): Promise<string> =>
    kubectl("get", "pvc", "data", "-n", namespace, "-o", "jsonpath={.status.capacity.storage}");
  await waitFor("the claim to be bound", async () => (await capacity()) === "1Gi");
  // Stands in for the driver's controller, which expands the volume.
  await kubectl("patch", "pv", name, "-p", JSON.stringify({ spec: { capacity: { storage: "2Gi" } } }));
  assert.equal(await capacity(), "1Gi");
  await waitFor("the driver in CSINode", () => registeredHere(name));
  await runToEnd(namespace, "user", {
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    containers: [busybox("main", "true", { volumeMounts: [{ name: "data", mountPath: "/data" }] })],
  });
  assert.equal(await capacity(), "2Gi");
  assert.ok(driver.calls().some(({ method }) => method === "NodeExpandVolume"));
  const reported = `MountVolume.NodeExpandVolume succeeded for volume "${name}" ${settings.nodeName}`;
  await waitFor("an event", async () => (await kubectl("get", "events", "-n", namespace)).includes(reported));
  await kubectl("delete", "pod", "user", "-n", namespace);
  await waitFor("the volume to be unstaged", async () => driver.calls().at(-1)?.method === "NodeUnstageVolume");
  await driver.kill();
});

test("a pod with an inline volume waits for a driver that is away, and says so; it ends when the driver is back", async (t) => {
  const name = `inline-${process.pid}.example.com`;
  const namespace = await newNamespace(t, "inline");
  t.after(() => tryKubectl(["delete", "--ignore-not-found", "--wait=false", `csidriver/${name}`]));
  const driver = newDriverProcess(t, name);
  await create(driverObject(name, { attachRequired: false, podInfoOnMount: true, volumeLifecycleModes: ["Ephemeral"] }));
  await createPod(namespace, "user", {
    terminationGracePeriodSeconds: 1,
    volumes: [{ name: "scratch", csi: { driver: name } }],
    containers: [
      busybox("main", "echo here > /scratch/file; sleep 3600", { volumeMounts: [{ name: "scratch", mountPath: "/scratch" }] }),
    ],
  });
  const text = `MountVolume.SetUp failed for volume "scratch" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${name} not found in the list of registered CSI drivers`;
  await waitFor("an event for the pod", async () => (await kubectl("get", "events", "-n", namespace)).includes(text));
  driver.start();
  await waitForPod(namespace, "user", "is ready", isReady);
  const handle = driver.calls()[0]?.request.volumeId ?? "";
  await waitFor(
    "the pod to have written",
    async () => readFileSync(join(driver.volumeDir(handle), "file"), "utf8") === "here\n",
    {
      retry: isMissingFile,
    },
  );

  await driver.kill();
  await kubectl("delete", "pod", "user", "-n", namespace, "--wait=false");
  await waitFor("its containers to have ended", async () => {
    const { status } = await getJson<{ status: { containerStatuses: { state: { terminated?: object } }[] } }>(
      ...["pod", "user", "-n", namespace],
    );
    return status.containerStatuses.every(({ state }) => state.terminated !== undefined);
  });
  assert.deepEqual(
    driver.calls().map(({ method }) => method),
    ["NodePublishVolume"],
  );
  driver.start();
  await waitFor("the pod to be gone", async () => (await tryKubectl(["get", "pod", "user", "-n", namespace])).code !== 0);
  assert.equal(driver.calls().at(-1)?.method, "NodeUnpublishVolume");
});

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../../pod/pod.ts";
import { podUsage, usageBelow } from "../../resources/usage.ts";
import { noObjects } from "../../sources/api-objects.ts";
import { aContainer, aPodWithVolumes } from "../../testing/builders.ts";
import { newFakeRuntime } from "../../testing/fake-runtime.ts";
import { newVolumeManager } from "../volume-manager.ts";
import type { FolderQuotas } from "./folder-quotas.ts";

/** Reports 4096 bytes and 7 inodes for every assigned directory. */
function playFolderQuotas(): FolderQuotas & { limited: Map<string, boolean> } {
  const limited = new Map<string, boolean>();
  return {
    limited,
    assign: async (path, isLimited) => void limited.set(path, isLimited),
    usage: async (path) => (limited.has(path) ? { bytes: 4096, inodes: 7 } : undefined),
    clear: async (path) => void limited.delete(path),
  };
}

async function aManager(t: TestContext) {
  const podsDir = await mkdtemp(join(tmpdir(), "cox-volumes-"));
  t.after(() => rm(podsDir, { recursive: true, force: true }));
  const quotas = playFolderQuotas();
  const mounter = { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] };
  const clock = newFakeClock();
  const manager = newVolumeManager({ podsDir, objects: noObjects, mounter, clock, log: discardLogger, quotas });
  const downward = { nodeName: "n1", hostIps: [], podIps: [], allocatable: {} };
  const setUp = (pod: NodePod) => manager.setUp(pod, downward);
  return { manager, quotas, setUp, clock };
}

const volumes = [
  { name: "plain", emptyDir: {} },
  { name: "limited", emptyDir: { sizeLimit: "1Gi" } },
  { name: "memory", emptyDir: { medium: "Memory" } },
];

test("folders of a pod on disk are counted by the file system until they are removed, for every caller", async (t) => {
  const { manager, quotas, setUp, clock } = await aManager(t);
  const pod = aPodWithVolumes(volumes);
  const made = await setUp(pod);
  assert.deepEqual(made.failures, []);
  const pathOf = (name: string): string => made.volumes.get(name)?.path ?? "";
  assert.deepEqual([...quotas.limited].toSorted(), [
    [pathOf("limited"), true],
    [pathOf("plain"), false],
  ]);
  await writeFile(join(pathOf("plain"), "file"), Buffer.alloc(100_000));
  const measured = await made.volumes.get("plain")?.measure?.();
  assert.deepEqual([measured?.usedBytes, measured?.inodesUsed], [4096, 7]);
  assert.equal((await made.volumes.get("memory")?.measure?.())?.inodesUsed, 1, "walked");
  const usage = await podUsage({
    runtime: newFakeRuntime(clock),
    pods: [pod],
    podDir: (uid) => manager.podDir(uid),
    logDir: () => "/nowhere",
    everyPod: true,
    processes: async () => 0,
    quotas,
    measure: usageBelow,
  });
  assert.deepEqual(Object.fromEntries(usage.get(pod.metadata.uid)?.emptyDirs ?? []), { plain: 4096, limited: 4096 });
  await manager.remove(pod.metadata.uid);
  assert.deepEqual([...quotas.limited], []);
});

test("an emptyDir of a pod with a storage limit gets an enforced quota", async (t) => {
  const { quotas, setUp } = await aManager(t);
  const resources = { limits: { "ephemeral-storage": "1Gi" } };
  const volumeMounts = [{ name: "plain", mountPath: "/plain" }];
  await setUp(aPodWithVolumes([{ name: "plain", emptyDir: {} }], { containers: [aContainer({ resources, volumeMounts })] }));
  assert.deepEqual([...quotas.limited.values()], [true]);
});

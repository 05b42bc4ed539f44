import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newOperations, storageOperations } from "@coxswain/apimachinery/volumes/storage-operations";
import { aNodePod } from "../testing/builders.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { VolumeWaits } from "./volume.ts";
import { countVolumes, newVolumeOperations, pluginOf, type VolumeOfPod } from "./volume-operations.ts";

function setUp() {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const operations = newVolumeOperations(newOperations(storageOperations(registry), clock));
  countVolumes(registry, operations);
  const lines = async (name: string): Promise<string[]> =>
    (await registry.render()).split("\n").filter((line) => line.startsWith(`${name}{`));
  return { clock, operations, ended: () => lines("storage_operation_duration_seconds_count"), lines };
}

const secret: VolumeOfPod = { uid: "u", name: "s", kind: "mount", plugin: "kubernetes.io/secret", isRefreshed: true };
const disk: VolumeOfPod = { uid: "u", name: "d", kind: "block", plugin: "kubernetes.io/csi:x", isRefreshed: false };
const count = (plugin: string, operation: string, status: string, times: number): string =>
  `storage_operation_duration_seconds_count{volume_plugin="${plugin}",operation_name="${operation}",status="${status}",migrated="false"} ${times}`;

test("a volume is mounted once, and again each time its contents are refreshed", async () => {
  const { operations, ended, clock, lines } = setUp();
  for (const _ of [1, 2]) {
    await operations.setUp(secret, () => clock.advance(2000));
    await operations.setUp(disk, async () => {});
  }
  assert.deepEqual(await ended(), [
    count("kubernetes.io/secret", "volume_mount", "success", 2),
    count("kubernetes.io/csi:x", "map_volume", "success", 1),
  ]);
  assert.match((await lines("storage_operation_duration_seconds_sum"))[0] ?? "", / 4$/);
  assert.deepEqual((await lines("storage_operation_duration_seconds_bucket")).length, 2 * 14);
});

test("a failed mount is counted as an error, a volume that waits for its attachment is not", async () => {
  const { operations, ended } = setUp();
  const failing = (err: Error) => operations.setUp(disk, () => Promise.reject(err));
  await assert.rejects(failing(new VolumeWaits("not yet")), { message: "not yet" });
  assert.deepEqual(await ended(), []);
  await assert.rejects(failing(new Error("broken")), { message: "broken" });
  assert.deepEqual(await ended(), [count("kubernetes.io/csi:x", "map_volume", "fail-unknown", 1)]);
});

test("metrics count volumes as desired until their pod ends, and as actual until they are unmounted", async () => {
  const { operations, ended, lines } = setUp();
  const states = async (): Promise<string[]> =>
    (await lines("volume_manager_total_volumes")).map(
      (line) => /plugin_name="([^"]*)",state="([a-z]*)/.exec(line)?.slice(1).join(" ") ?? line,
    );
  await operations.setUp(secret, async () => {});
  await operations.setUp(disk, () => Promise.reject(new Error("broken"))).catch(() => {});
  assert.deepEqual(await states(), [
    "kubernetes.io/secret desired",
    "kubernetes.io/secret actual",
    "kubernetes.io/csi:x desired",
  ]);
  await assert.rejects(
    operations.tearDown("u", () => Promise.reject(new Error("busy"))),
    { message: "busy" },
  );
  assert.deepEqual(await states(), ["kubernetes.io/secret actual"]);
  await operations.tearDown("u", async () => {});
  assert.deepEqual(await states(), []);
  assert.deepEqual((await ended()).slice(2), [
    count("kubernetes.io/secret", "volume_unmount", "fail-unknown", 1),
    count("kubernetes.io/secret", "volume_unmount", "success", 1),
  ]);
});

test("the operations of a device are named apart from those of a file system", async () => {
  const { operations, ended } = setUp();
  await operations.setUp(disk, async () => {});
  await operations.tearDown("u", async () => {});
  const [mapped, unmapped] = ["map_volume", "unmap_volume"].map((name) => count("kubernetes.io/csi:x", name, "success", 1));
  assert.deepEqual(await ended(), [mapped, unmapped]);
});

test("the duration of a group change is observed, a skipped one is not", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-group-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const { operations, ended } = setUp();
  const pod = aNodePod({ securityContext: { fsGroup: process.getgid?.() ?? 0, fsGroupChangePolicy: "OnRootMismatch" } });
  const options = {
    readOnly: false,
    policy: true,
    log: discardLogger,
    plugin: "kubernetes.io/local-volume",
    operations: operations.begin,
  };
  for (const _ of [1, 2]) await setVolumeOwnership(dir, pod, options);
  assert.deepEqual(await ended(), [count("kubernetes.io/local-volume", "volume_fsgroup_recursive_apply", "success", 1)]);
});

for (const [source, plugin] of [
  [{ configMap: { name: "c" } }, "kubernetes.io/configmap"],
  [{ csi: { driver: "d.example.com" } }, "kubernetes.io/csi:d.example.com"],
  [{ flexVolume: { driver: "example.com/disk" } }, "example.com/disk"],
  [{ awsElasticBlockStore: { volumeID: "v" } }, "kubernetes.io/csi:ebs.csi.aws.com"],
  [{ local: { path: "/x" } }, "kubernetes.io/local-volume"],
  [{}, "kubernetes.io/empty-dir"],
] as const) {
  test(`the plugin of ${JSON.stringify(source)} is ${plugin}`, () => {
    assert.equal(pluginOf(source), plugin);
  });
}

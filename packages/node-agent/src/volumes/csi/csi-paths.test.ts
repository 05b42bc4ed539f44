import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { aNodePod } from "../../testing/builders.ts";
import { newCsiPaths } from "./csi-paths.ts";
import { ephemeralSource, podAttributes, takesGroup } from "./csi-source.ts";

test("volumes are found by their staging folders and by the pods' folders", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-csi-paths-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const { layouts, pods } = newCsiPaths({ podsDir: join(dir, "pods"), pluginsDir: join(dir, "plugins") });
  assert.deepEqual([await pods(), await layouts.mount.names(), await layouts.block.names()], [[], [], []]);
  for (const name of ["pv1", "pv2"]) {
    for (const layout of [layouts.mount, layouts.block])
      for (const path of [layout.staging(name), layout.data(name)]) await mkdir(path, { recursive: true });
    await mkdir(dirname(layouts.block.target("u1", name)), { recursive: true });
  }
  for (const [uid, name] of [
    ["u1", "pv1"],
    ["u1", "pv2"],
    ["u2", "pv2"],
  ] as const) {
    await mkdir(layouts.mount.ofPod(uid, name), { recursive: true });
    await mkdir(dirname(layouts.block.ofPod(uid, name)), { recursive: true });
    // The link of a pod to its device leads nowhere while the device is not published.
    await symlink("/nowhere", layouts.block.ofPod(uid, name));
  }
  for (const layout of [layouts.mount, layouts.block]) {
    assert.deepEqual((await layout.names()).toSorted(), ["pv1", "pv2"]);
    assert.deepEqual((await layout.podVolumes("u1")).toSorted(), ["pv1", "pv2"]);
    const users = await Promise.all(["pv1", "pv2", "pv3"].map((name) => layout.usersOf(name)));
    assert.deepEqual(
      users.map((uids) => uids.toSorted()),
      [["u1"], ["u1", "u2"], []],
    );
  }
  assert.deepEqual((await pods()).toSorted(), ["u1", "u2"]);
});

test("an inline volume's secret is one of its pod's namespace, and pods have different volumes of one name", () => {
  const volume = { name: "v", csi: { driver: "d", nodePublishSecretRef: { name: "s" } } };
  const [one, other] = ["uid-1", "uid-2"].map((uid) => ephemeralSource(aNodePod({}, { uid, namespace: "team" }), volume));
  assert.deepEqual(one?.publishSecret, { name: "s", namespace: "team" });
  assert.notEqual(one?.handle, other?.handle);
  assert.equal(
    one?.handle,
    "csi-c6b9fee9f58dbcf8514714e33b3bef6c8d259821373330068f9524db0a81a80e",
    "of the pod's UID and the volume's name",
  );
});

test("a driver is told the account of its pod: none when the pod has none", () => {
  const spec = { podInfoOnMount: true };
  const source = ephemeralSource(aNodePod(), { name: "v", csi: { driver: "d" } }) ?? assert.fail();
  const accountOf = (serviceAccountName?: string) => {
    const pod = aNodePod();
    const told = podAttributes(source, { ...pod, spec: { ...pod.spec, serviceAccountName } }, {
      metadata: { name: "d" },
      spec,
    } as never);
    return told["csi.storage.k8s.io/serviceAccount.name"];
  };
  assert.deepEqual([accountOf("robot"), accountOf()], ["robot", ""]);
});

for (const { policy, fsType = "", accessModes = [], readOnly = false, want } of [
  { policy: "File", want: true },
  { policy: "File", readOnly: true, want: false },
  { policy: "None", fsType: "ext4", accessModes: ["ReadWriteOnce"], want: false },
  { policy: "", fsType: "ext4", accessModes: ["ReadOnlyMany", "ReadWriteOnce"], want: true },
  { policy: "", fsType: "ext4", accessModes: ["ReadWriteOnce"], readOnly: true, want: false },
  { policy: "ReadWriteOnceWithFSType", accessModes: ["ReadWriteOnce"], want: false },
  { policy: "ReadWriteOnceWithFSType", fsType: "ext4", accessModes: ["ReadWriteMany"], want: false },
] as { policy: string; fsType?: string; accessModes?: string[]; readOnly?: boolean; want: boolean }[]) {
  const what = `${readOnly ? "read-only " : ""}volume of ${fsType || "no type"} with ${accessModes.join() || "no access modes"}`;
  test(`with fsGroupPolicy "${policy}" a ${what} is ${want ? "" : "not "}given to the pod's group`, () => {
    const source = ephemeralSource(aNodePod(), { name: "v", csi: { driver: "d", fsType, readOnly } }) ?? assert.fail();
    assert.equal(takesGroup({ ...source, accessModes }, policy), want);
  });
}

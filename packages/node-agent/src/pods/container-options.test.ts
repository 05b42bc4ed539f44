import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { VolumeMount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { containerDevices, containerMounts, type MountSettings } from "./container-options.ts";

async function mountsOf(t: TestContext, mount: Partial<VolumeMount>, settings: Partial<MountSettings> = {}) {
  const podDir = await mkdtemp(join(tmpdir(), "cox-mounts-"));
  t.after(() => rm(podDir, { recursive: true, force: true }));
  const container = aContainer({ volumeMounts: [{ name: "v", mountPath: "/v", ...mount }] });
  return containerMounts(aNodePod({ containers: [container] }), container, {
    podDir,
    podIps: [],
    clusterDomain: "cluster.local",
    volumes: new Map([["v", { path: "/volumes/v", readOnly: false }]]),
    environment: new Map(),
    mounter: { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] },
    ...settings,
  });
}

for (const { volume, mount, want } of [
  { volume: false, mount: undefined, want: false },
  { volume: false, mount: true, want: true },
  { volume: true, mount: undefined, want: true },
  { volume: true, mount: false, want: true },
]) {
  const what = `a volume that is read-only: ${volume}, mounted with readOnly: ${mount},`;
  test(`${what} is one that containers may ${want ? "not " : ""}write`, async (t) => {
    const volumes = new Map([["v", { path: "/volumes/v", readOnly: volume }]]);
    const [made] = await mountsOf(t, mount === undefined ? {} : { readOnly: mount }, { volumes });
    assert.equal(made?.readonly, want);
  });
}

test("a subPath of variables that are not set, or empty, is reported with all their names", async (t) => {
  const environment = new Map([
    ["A", "a"],
    ["EMPTY", ""],
  ]);
  await assert.rejects(mountsOf(t, { subPathExpr: "$(Z)/$(A)/$(EMPTY)/$(Z)" }, { environment }), {
    message: "missing value for EMPTY, Z",
  });
});

test("an error of a subPath on the host is reported without its host path", async (t) => {
  const volumes = new Map([["v", { path: "/no-such-folder/secret", readOnly: false }]]);
  await assert.rejects(mountsOf(t, { subPath: "x" }, { volumes }), {
    message: 'failed to create subPath directory for volumeMount "v" of container "main"',
  });
});

test("each mount of a subPath has a separate target below the pod's folder: volume, container, number of the mount", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "cox-mounts-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const volumeMounts = ["/plain", "/a", "/b"].map((mountPath, i) => ({
    name: "v",
    mountPath,
    ...(i > 0 && { subPath: `sub${i}` }),
  }));
  const container = aContainer({ volumeMounts });
  const mounts = await containerMounts(aNodePod({ containers: [container] }), container, {
    podDir: join(folder, "pod"),
    podIps: [],
    clusterDomain: "cluster.local",
    volumes: new Map([["v", { path: folder, readOnly: false }]]),
    environment: new Map(),
    mounter: { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] },
  });
  const target = (i: number): string => join(folder, "pod", "volume-subpaths", "v", "main", String(i));
  assert.deepEqual(
    mounts.slice(0, 3).map(({ containerPath, hostPath }) => [containerPath, hostPath]),
    [
      ["/plain", folder],
      ["/a", target(1)],
      ["/b", target(2)],
    ],
  );
});

test("a mount has an absolute path and its propagation; the hosts file is the agent's unless the container mounts one", async (t) => {
  const mounts = await mountsOf(t, { mountPath: "data", mountPropagation: "HostToContainer" }, { podIps: ["10.0.0.1"] });
  assert.deepEqual(
    mounts.map(({ containerPath, propagation }) => [containerPath, propagation]),
    [
      ["/data", 1],
      ["/etc/hosts", undefined],
    ],
  );
  const own = await mountsOf(t, { mountPath: "/etc/hosts", mountPropagation: "Bidirectional" }, { podIps: ["10.0.0.1"] });
  assert.deepEqual(
    own.map(({ containerPath, hostPath, propagation }) => [containerPath, hostPath, propagation]),
    [["/etc/hosts", "/volumes/v", 2]],
  );
  assert.deepEqual(
    (await mountsOf(t, {})).map(({ containerPath }) => containerPath),
    ["/v"],
    "nor before the pod has addresses",
  );
});

test("the hosts file is not the agent's though another mount follows the container's own", async (t) => {
  const podDir = await mkdtemp(join(tmpdir(), "cox-mounts-"));
  t.after(() => rm(podDir, { recursive: true, force: true }));
  const volumeMounts = ["/etc/hosts", "/other"].map((mountPath) => ({ name: "v", mountPath }));
  const mounter = { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] };
  const mounts = await containerMounts(aNodePod({ hostNetwork: true }), aContainer({ volumeMounts }), {
    podDir,
    podIps: ["10.0.0.1"],
    clusterDomain: "",
    volumes: new Map([["v", { path: "/volumes/v", readOnly: false }]]),
    environment: new Map(),
    mounter,
  });
  assert.deepEqual(
    mounts.map(({ containerPath, hostPath }) => `${hostPath} ${containerPath}`),
    ["/volumes/v /etc/hosts", "/volumes/v /other"],
  );
  const inHostNetwork = { podDir, podIps: [], clusterDomain: "", volumes: new Map(), environment: new Map(), mounter };
  const [hosts] = await containerMounts(aNodePod({ hostNetwork: true }), aContainer(), inHostNetwork);
  assert.equal(hosts?.containerPath, "/etc/hosts", "in the host's network also before the node's address is known");
});

test("each life of a container has a file of its own for its last words, which any user may write", async (t) => {
  const podDir = await mkdtemp(join(tmpdir(), "cox-mounts-"));
  t.after(() => rm(podDir, { recursive: true, force: true }));
  const umask = process.umask(0o077);
  t.after(() => void process.umask(umask));
  const container = aContainer({ terminationMessagePath: "/dev/termination-log" });
  const settings = {
    podDir,
    podIps: [],
    clusterDomain: "",
    volumes: new Map(),
    environment: new Map(),
    mounter: { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] },
  };
  const paths = await Promise.all(
    [1, 2].map(async () => (await containerMounts(aNodePod(), container, settings)).at(-1)?.hostPath ?? ""),
  );
  assert.equal(new Set(paths).size, 2);
  for (const path of paths) assert.equal((await stat(path)).mode & 0o777, 0o666);
});

test("a block volume is a device that may be read, written and made, a read-only one may only be read", () => {
  const container = aContainer({ volumeDevices: ["a", "b"].map((name) => ({ name, devicePath: `/dev/${name}` })) });
  const volumes = new Map(
    ["a", "b"].map((name) => [name, { path: `/host/${name}`, readOnly: name === "b", device: true as const }]),
  );
  assert.deepEqual(containerDevices(container, volumes), [
    { hostPath: "/host/a", containerPath: "/dev/a", permissions: "mrw" },
    { hostPath: "/host/b", containerPath: "/dev/b", permissions: "r" },
  ]);
  const files = new Map([["a", { path: "/host/a", readOnly: false }]]);
  assert.throws(() => containerDevices(container, files), {
    message: 'cannot find volume "a" to pass into container "main"',
  });
});

test("a mount of a volume that is not there, or is a device, is refused", async (t) => {
  const message = 'cannot find volume "v" to mount into container "main"';
  await assert.rejects(mountsOf(t, {}, { volumes: new Map() }), { message });
  const device = new Map([["v", { path: "/dev/x", readOnly: false, device: true }]]);
  await assert.rejects(mountsOf(t, {}, { volumes: device }), { message });
});

test("a subPath must stay below its volume, also one of variables; their values name the folder that is mounted", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "cox-mounts-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const volumes = new Map([["v", { path: folder, readOnly: false }]]);
  const environment = new Map([
    ["UP", ".."],
    ["ROOT", "/etc"],
    ["A", "a"],
    ["B", "b"],
  ]);
  const of = (mount: Partial<VolumeMount>) => mountsOf(t, mount, { volumes, environment });
  for (const [mount, message] of [
    [{ subPath: "a/../b" }, "unable to provision SubPath `a/../b`: must not contain '..'"],
    [{ subPathExpr: "a/$(UP)" }, "unable to provision SubPath `a/..`: must not contain '..'"],
    [{ subPath: "/etc" }, "error SubPath `/etc` must not be an absolute path"],
    [{ subPathExpr: "$(ROOT)" }, "error SubPath `/etc` must not be an absolute path"],
  ] as const) {
    await assert.rejects(of(mount), { message });
  }
  await of({ subPath: "ignored", subPathExpr: "$(A)/x-$(B)" });
  assert.ok((await stat(join(folder, "a", "x-b"))).isDirectory());
  await assert.rejects(stat(join(folder, "ignored")), { code: "ENOENT" });
});

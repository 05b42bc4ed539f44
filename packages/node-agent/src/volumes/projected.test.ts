import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PodSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { PodObjects } from "../pod/pod-objects.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aPodWithVolumes } from "../testing/builders.ts";
import { newVolumeManager } from "./volume-manager.ts";

const downward = { nodeName: "n1", hostIps: [], podIps: [], allocatable: {} };

async function bench(t: TestContext) {
  const podsDir = await mkdtemp(join(tmpdir(), "cox-projected-"));
  t.after(() => rm(podsDir, { recursive: true, force: true }));
  const requested: unknown[] = [];
  const objects: PodObjects = {
    ...noObjects,
    async secret(_, name) {
      if (name !== "s") throw notFound(secrets, name);
      const data = Object.entries({ user: "u", password: "p" }).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
      return { metadata: { name }, data: Object.fromEntries(data) };
    },
    async serviceAccountToken(request) {
      requested.push(request);
      return { token: "t", expirationTimestamp: "2030-01-01T00:00:00Z" };
    },
  };
  const mounter = { mount: async () => {}, unmount: async () => {}, mountsBelow: async () => [] };
  const manager = newVolumeManager({ podsDir, objects, mounter, clock: newFakeClock(), log: discardLogger });
  /** @returns the volume's folder, or the failure */
  const setUp = async (source: Partial<Volume>, spec: Partial<PodSpec> = {}, uid = "uid-1") => {
    const pod = aPodWithVolumes([{ name: "v", ...source }], spec, { uid });
    const { volumes, failures } = await manager.setUp(pod, downward);
    return failures[0]?.message ?? volumes.get("v")?.path ?? "";
  };
  return { manager, requested, setUp };
}

const visible = async (path: string): Promise<string[]> => (await readdir(path)).filter((name) => !name.startsWith(".."));
const token = (more: object = {}) => ({ projected: { sources: [{ serviceAccountToken: { path: "token", ...more } }] } });
const volumeMounts = [{ name: "v", mountPath: "/v" }];
const running = (...users: (number | undefined)[]) =>
  users.map((runAsUser, i) =>
    aContainer({ name: `c${i}`, volumeMounts, ...(runAsUser !== undefined && { securityContext: { runAsUser } }) }),
  );

test("a token is that of the pod's service account, else of default, for an hour or as long as it is asked for", async (t) => {
  const { setUp, requested } = await bench(t);
  await setUp(token());
  await setUp(token({ expirationSeconds: 600, audience: "vault" }), { serviceAccountName: "robot" }, "uid-2");
  const of = (uid: string) => ({ namespace: "default", pod: { name: "web", uid } });
  assert.deepEqual(requested, [
    { ...of("uid-1"), serviceAccount: "default", audience: undefined, expirationSeconds: 3600 },
    { ...of("uid-2"), serviceAccount: "robot", audience: "vault", expirationSeconds: 600 },
  ]);
});

test("all sources that fail are told, each failure once", async (t) => {
  const { setUp } = await bench(t);
  const failed = (...names: string[]) => setUp({ projected: { sources: names.map((name) => ({ secret: { name } })) } });
  assert.equal(await failed("a", "s", "a"), 'secrets "a" not found');
  assert.equal(await failed("a", "b", "a"), '[secrets "a" not found, secrets "b" not found]');
});

for (const { name, spec, mode } of [
  { name: "of a pod without users and group", spec: {}, mode: 0o644 },
  { name: "of a pod whose containers have several users", spec: { containers: running(1, 2) }, mode: 0o644 },
  { name: "of a pod whose containers have one user", spec: { containers: running(process.getuid?.() ?? 0) }, mode: 0o600 },
  {
    name: "of a pod with a group, which may read it",
    spec: { securityContext: { fsGroup: process.getgid?.() ?? 0 } },
    mode: 0o640,
  },
]) {
  test(`the token ${name} has mode ${mode.toString(8)}`, async (t) => {
    const { setUp } = await bench(t);
    assert.equal((await stat(join(await setUp(token(), spec), "token"))).mode & 0o777, mode);
  });
}

test("a secret's items become files of their own names and modes; a missing one is an error unless it is optional", async (t) => {
  const { setUp } = await bench(t);
  const items = [{ key: "password", path: "pw", mode: 0o400 }];
  const path = await setUp({ secret: { secretName: "s", items } });
  assert.deepEqual(await visible(path), ["pw"]);
  assert.equal((await stat(join(path, "pw"))).mode & 0o777, 0o400);
  const missing = [{ key: "none", path: "x" }, ...items];
  assert.equal(await setUp({ secret: { secretName: "s", items: missing } }, {}, "a"), "references non-existent secret key: none");
  const partly = await setUp({ secret: { secretName: "s", items: missing, optional: true } }, {}, "b");
  assert.deepEqual(await visible(partly), ["pw"]);
  assert.match(await setUp({ secret: { secretName: "other" } }, {}, "c"), /"other" not found$/);
  assert.deepEqual(await visible(await setUp({ secret: { secretName: "other", optional: true } }, {}, "d")), []);
});

test("items of the downward API have modes and paths of their own", async (t) => {
  const { setUp } = await bench(t);
  const items = [
    { path: "//name", fieldRef: { fieldPath: "metadata.name" }, mode: 0o400 },
    { path: "uid", fieldRef: { fieldPath: "metadata.uid" } },
  ];
  const path = await setUp({ downwardAPI: { items, defaultMode: 0o440 } });
  assert.equal(await readFile(join(path, "name"), "utf8"), "web");
  const modes = await Promise.all(["name", "uid"].map(async (name) => (await stat(join(path, name))).mode & 0o777));
  assert.deepEqual(modes, [0o400, 0o440]);
});

test("a projected volume has the files of all its sources, a later one in place of an earlier one", async (t) => {
  const { setUp } = await bench(t);
  const name = { path: "name", fieldRef: { fieldPath: "metadata.name" } };
  const cpu = { path: "cpu", resourceFieldRef: { containerName: "main", resource: "requests.cpu", divisor: "1m" }, mode: 0o400 };
  const sources = [
    { downwardAPI: { items: [name, { ...name, path: "user" }, cpu] } },
    { secret: { name: "s" } },
    { downwardAPI: {} },
    { serviceAccountToken: { path: "below/token" } },
  ];
  const container = aContainer({ volumeMounts, resources: { requests: { cpu: "1500m" } } });
  const path = await setUp({ projected: { sources, defaultMode: 0o440 } }, { containers: [container] });
  const read = async (file: string) => [await readFile(join(path, file), "utf8"), (await stat(join(path, file))).mode & 0o777];
  assert.deepEqual((await visible(path)).toSorted(), ["below", "cpu", "name", "password", "user"]);
  assert.deepEqual(await Promise.all(["name", "cpu", "user", "below/token"].map(read)), [
    ["web", 0o440],
    ["1500", 0o400],
    ["u", 0o440],
    ["t", 0o440],
  ]);
});

test("a refresh that changes nothing leaves the measured usage as it was", async (t) => {
  const { setUp, manager } = await bench(t);
  const path = await setUp({ secret: { secretName: "s" } });
  const inodes = async () => (await manager.of("uid-1").get("v")?.measure?.())?.inodesUsed;
  const before = await inodes();
  await writeFile(join(path, "..other"), "not the agent's");
  await setUp({ secret: { secretName: "s" } });
  assert.equal(await inodes(), before);
});

test("a volume of an unknown kind is reported, one of no kind is an emptyDir", async (t) => {
  const { setUp } = await bench(t);
  for (const unknown of [
    { nfs: { server: "s", path: "/" } },
    { flexVolume: { driver: "example.com/disk" } },
    { csi: { driver: "disk.example.com" } },
    { gcePersistentDisk: { pdName: "d" } },
  ]) {
    assert.equal(await setUp(unknown), "no volume plugin matched", JSON.stringify(unknown));
  }
  assert.match(await setUp({}), /kubernetes\.io~empty-dir\/v$/);
});

test("a path of the host is used as it is, if it is of the type that the pod names", async (t) => {
  const { setUp } = await bench(t);
  assert.equal(await setUp({ hostPath: { path: "/proc/self" } }), "/proc/self");
  assert.equal(await setUp({ hostPath: { path: "/proc", type: "Directory" } }), "/proc");
  assert.equal(await setUp({ hostPath: { path: "/proc", type: "File" } }), "hostPath type check failed: /proc is not a file");
  assert.equal(await setUp({ hostPath: { path: "/none", type: "" } }), "/none");
});

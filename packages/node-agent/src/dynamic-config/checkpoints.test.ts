import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ConfigMap, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { type Checkpoints, openCheckpoints } from "./checkpoints.ts";
import type { ConfigSource } from "./config-source.ts";
import { takeOver } from "./take-over.ts";

const clock = newFakeClock();
const source = (part: Partial<ConfigSource["configMap"]> = {}): ConfigSource => ({
  configMap: {
    namespace: "kube-system",
    name: "settings",
    uid: "uid-1",
    resourceVersion: "7",
    kubeletConfigKey: "kubelet",
    ...part,
  },
});
const aMap = (data: Record<string, string>, metadata: Partial<ConfigMap["metadata"]> = {}): ConfigMap => ({
  metadata: { namespace: "kube-system", name: "settings", uid: "uid-1", resourceVersion: "7", ...metadata },
  data,
});

async function open(t: TestContext): Promise<{ dir: string; checkpoints: Checkpoints }> {
  const dir = await mkdtemp(join(tmpdir(), "cox-dynamic-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return { dir, checkpoints: openCheckpoints(dir, clock) };
}

test("a new folder has no assignment; a written one is read by the next process, in upstream's file format", async (t) => {
  const { dir, checkpoints } = await open(t);
  assert.deepEqual([checkpoints.read("assigned"), checkpoints.read("last-known-good")], [undefined, undefined]);
  checkpoints.write("assigned", source());
  assert.deepEqual(openCheckpoints(dir, clock).read("assigned"), source());
  const text = await readFile(join(dir, "store/meta/assigned"), "utf8");
  assert.match(
    text,
    /^apiVersion: kubelet\.config\.k8s\.io\/v1beta1\nkind: SerializedNodeConfigSource\nsource:\n {2}configMap:\n/,
  );
  await writeFile(
    join(dir, "store/meta/last-known-good"),
    'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource:\n  configMap:\n    kubeletConfigKey: kubelet\n    name: settings\n    namespace: kube-system\n    resourceVersion: "7"\n    uid: uid-1\n',
  );
  assert.deepEqual(checkpoints.read("last-known-good"), source());
  for (const other of [
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
    "apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: SerializedNodeConfigSource\n",
  ]) {
    await writeFile(join(dir, "store/meta/last-known-good"), other);
    assert.throws(() => checkpoints.read("last-known-good"), { message: /failed to decode/ });
  }
  for (const nothing of ["", "source:\n", "source: {}\n", "source:\n  configMap: settings\n"]) {
    const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\n";
    await writeFile(join(dir, "store/meta/last-known-good"), `${head}${nothing}`);
    const message = "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil";
    assert.throws(() => checkpoints.read("last-known-good"), { message }, nothing);
  }
});

test("each version of a config map is kept as its files", async (t) => {
  const { dir, checkpoints } = await open(t);
  assert.equal(checkpoints.has(source()), false);
  checkpoints.save(aMap({ kubelet: "kind: KubeletConfiguration", other: "x" }));
  checkpoints.save(aMap({ kubelet: "later" }, { resourceVersion: "8" }));
  assert.equal(await readFile(checkpoints.fileOf(source()), "utf8"), "kind: KubeletConfiguration");
  assert.equal(await readFile(checkpoints.fileOf(source({ resourceVersion: "8" })), "utf8"), "later");
  assert.deepEqual((await readdir(join(dir, "store/checkpoints/uid-1"))).sort(), ["7", "8"], "nothing half done is left");
  assert.throws(() => checkpoints.fileOf(source({ resourceVersion: "9" })), {
    message: "no checkpoint for source /api/v1/namespaces/kube-system/configmaps/settings, UID: uid-1, ResourceVersion: 9",
  });
});

test("forgetting reports whether there was an assignment; an assignment has the clock's time", async (t) => {
  const { checkpoints } = await open(t);
  assert.equal(checkpoints.reset(), false);
  for (const slot of ["assigned", "last-known-good"] as const) checkpoints.write(slot, source());
  assert.equal(checkpoints.writtenAt("assigned"), clock.now());
  assert.equal(checkpoints.reset(), true);
  assert.deepEqual([checkpoints.read("assigned"), checkpoints.read("last-known-good")], [undefined, undefined]);
});

for (const name of ["", ".", "..", "../../etc/passwd", "a/b", "a\0b"]) {
  test(`the name ${JSON.stringify(name)} cannot lead out of the folder`, async (t) => {
    const { dir, checkpoints } = await open(t);
    const message = /only base names are allowed/;
    assert.throws(() => checkpoints.save(aMap({ [name]: "x" })), { message });
    assert.throws(() => checkpoints.save(aMap({}, { uid: name })), { message });
    assert.throws(() => checkpoints.has(source({ resourceVersion: name })), { message });
    checkpoints.save(aMap({ kubelet: "x" }));
    assert.throws(() => checkpoints.fileOf(source({ kubeletConfigKey: name })), { message });
    assert.deepEqual(await readdir(join(dir, "store/checkpoints/uid-1")), ["7"]);
  });
}

test("checkpoint files are closed after writing", async (t) => {
  const { dir, checkpoints } = await open(t);
  checkpoints.save(aMap({ kubelet: "kind: KubeletConfiguration", other: "x" }));
  checkpoints.write("assigned", source());
  assert.deepEqual(await openFilesBelow(dir), []);
});

test("a source that cannot be taken over says why, and leaves what was assigned", async (t) => {
  const { dir, checkpoints } = await open(t);
  const { uid: _, resourceVersion: __, ...named } = source().configMap;
  const node = (configSource: object) => ({ metadata: { name: "n1" }, spec: { configSource } }) as Node;
  const settings = node({ configMap: named });
  const map = async () => aMap({ kubelet: "x" });
  assert.deepEqual(await takeOver(settings, checkpoints, map), { changed: true, source: source() });
  assert.deepEqual(await takeOver(settings, checkpoints, map), { changed: false, source: source() });
  const shown = (wanted: Node | undefined, download: () => Promise<ConfigMap> = map) =>
    takeOver(wanted, checkpoints, download).then(
      () => "",
      (err: Error & { shown: string }) => [err.shown, (err.cause as Error).message].join("; "),
    );
  const see = "see Kubelet log for details";
  assert.equal(await shown(undefined), `failed to sync: internal failure, ${see}; the node is not known yet`);
  assert.equal(
    await shown(settings, () => Promise.reject(new Error("away"))),
    `failed to sync: failed to download config, ${see}; away`,
  );
  assert.match(
    await shown(node({ other: {} })),
    /^failed to sync: invalid NodeConfigSource, exactly one subfield must be non-nil/,
  );
  await writeFile(join(dir, "store/checkpoints/uid-2"), "a file in place of a folder");
  const problem = await shown(settings, async () => aMap({ kubelet: "x" }, { uid: "uid-2" }));
  assert.match(problem, new RegExp(`^failed to sync: internal failure, ${see}; E(EXIST|NOTDIR)`));
  assert.deepEqual(checkpoints.read("assigned"), source());
  assert.deepEqual(await takeOver({ metadata: { name: "n1" }, spec: {} }, checkpoints, map), {
    changed: true,
    source: undefined,
  });
  assert.equal(checkpoints.read("assigned"), undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";
import { aVolume } from "../../testing/volumes.ts";
import { deleterOf, pluginOf, provisionerNamed } from "./plugins.ts";

const sources: Readonly<Record<string, object>> = {
  hostPath: { hostPath: { path: "/tmp/a" } },
  nfs: { nfs: { server: "s", path: "/" } },
  local: { local: { path: "/mnt" } },
  csi: { csi: { driver: "d", volumeHandle: "h" } },
  other: { cephfs: { monitors: [] } },
};
const specOf = (source: string): Partial<PersistentVolumeSpec> => ({ hostPath: undefined, ...sources[source] }) as never;

for (const [source, name, recycles, deletes] of [
  ["hostPath", "kubernetes.io/host-path", true, true],
  ["nfs", "kubernetes.io/nfs", true, false],
  ["local", "kubernetes.io/local-volume", false, false],
  ["csi", "kubernetes.io/csi", false, false],
  ["other", undefined, false, false],
] as const)
  test(`the plugin of a volume of ${source} is ${name}`, () => {
    const volume = aVolume("pv", specOf(source));
    const plugin = pluginOf(volume.spec);
    assert.deepEqual([plugin?.name, plugin?.recycles ?? false], [name, recycles]);
    const error = 'error getting deleter volume plugin for volume "pv": ';
    if (deletes) assert.equal(deleterOf(volume)?.name, name);
    else
      assert.throws(() => deleterOf(volume), {
        message: `${error}${name === undefined ? "no volume plugin matched" : "no deletable volume plugin matched"}`,
      });
  });

for (const [name, deleter, provisioner] of [
  ["kubernetes.io/host-path", "kubernetes.io/host-path", "kubernetes.io/host-path"],
  ["example.com/disk", undefined, undefined],
  ["kubernetes.io/nfs", "no deletable volume plugin matched", "no provisionable volume plugin matched"],
  ["kubernetes.io/x", "no volume plugin matched name: kubernetes.io/x", "no volume plugin matched name: kubernetes.io/x"],
] as const)
  test(`${name} as the provisioner of a volume and of a class`, () => {
    const outcome = (read: () => { name: string } | undefined) => {
      try {
        return read()?.name;
      } catch (err) {
        return (err as Error).message;
      }
    };
    const volume = aVolume("pv", specOf("hostPath"), { [provisionedBy]: name });
    assert.equal(
      outcome(() => deleterOf(volume)),
      deleter,
      "whatever its source",
    );
    assert.equal(
      outcome(() => provisionerNamed(name)),
      provisioner,
    );
  });

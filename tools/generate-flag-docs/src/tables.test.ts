import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gates } from "@coxswain/apimachinery/flags/gates";

const root = join(import.meta.dirname, "../../..");

/**
 * Gates that are off by default and have no effect here: they concern kube-proxy or docker, remove code that does not exist here,
 * or enable behaviour that is always on (kernel settings that the kubelet may not change are only logged, in a user namespace or
 * not).
 */
const idleGates: ReadonlySet<string> = new Set([
  "DisableCloudProviders",
  "DisableKubeletCloudCredentialProviders",
  "ExperimentalHostUserNamespaceDefaulting",
  "InTreePluginAWSUnregister",
  "InTreePluginAzureDiskUnregister",
  "InTreePluginAzureFileUnregister",
  "InTreePluginGCEUnregister",
  "InTreePluginOpenStackUnregister",
  "InTreePluginPortworxUnregister",
  "InTreePluginRBDUnregister",
  "InTreePluginvSphereUnregister",
  "KubeletInUserNamespace",
  "ProxyTerminatingEndpoints",
  "WinDSR",
]);

test("a gate that is off by default is read by a program, or listed as without effect", () => {
  const source = globSync("packages/*/src/**/*.ts", { cwd: root })
    .filter((file) => !file.endsWith(".test.ts"))
    .map((file) => readFileSync(join(root, file), "utf8"))
    .join("\n");
  const forgotten = Object.keys(gates).filter((name) => {
    const known = gates[name]?.default || name.startsWith("All") || idleGates.has(name);
    return !known && !source.includes(`"${name}"`);
  });
  assert.deepEqual(forgotten, []);
  assert.deepEqual(
    [...idleGates].filter((name) => gates[name] === undefined || source.includes(`"${name}"`)),
    [],
  );
});

for (const path of globSync("packages/*/src/metrics.json", { cwd: root })) {
  test(`${path}: each metric is registered under its name`, () => {
    const definitions = JSON.parse(readFileSync(join(root, path), "utf8")) as Record<string, { name: string }>;
    const source = globSync(join(dirname(path), "**/*.ts"), { cwd: root })
      .map((file) => readFileSync(join(root, file), "utf8"))
      .join("\n");
    const names = Object.keys(definitions);
    assert.deepEqual(names, names.toSorted());
    assert.deepEqual(
      names.filter((name) => definitions[name]?.name !== name || !new RegExp(`definitions\\.${name}\\b`).test(source)),
      [],
    );
  });
}

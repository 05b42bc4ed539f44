import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { configFromFlags, inClusterConfig } from "./in-cluster.ts";

async function aFolder(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "in-cluster-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

for (const [host, want] of [
  ["10.0.0.1", "https://10.0.0.1:6443"],
  ["fd00::1", "https://[fd00::1]:6443"],
] as const) {
  test(`in a pod the server is ${want}, with the mounted token and authority`, async (t) => {
    const folder = await aFolder(t, { token: "secret\n", "ca.crt": "CA" });
    const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: "6443" };
    assert.deepEqual(await inClusterConfig(env, folder), {
      host: want,
      token: "secret",
      tokenFile: join(folder, "token"),
      caFile: join(folder, "ca.crt"),
    });
  });
}

test("in a pod without a mounted authority that of the system is used", async (t) => {
  const folder = await aFolder(t, { token: "secret" });
  const env = { KUBERNETES_SERVICE_HOST: "h", KUBERNETES_SERVICE_PORT: "1" };
  assert.equal((await inClusterConfig(env, folder)).caFile, undefined);
});

for (const env of [{}, { KUBERNETES_SERVICE_HOST: "h" }, { KUBERNETES_SERVICE_PORT: "1", KUBERNETES_SERVICE_HOST: "" }])
  test(`outside of a pod, with ${JSON.stringify(env)}, there is no configuration`, async () => {
    await assert.rejects(inClusterConfig(env), /unable to load in-cluster configuration/);
  });

test("--master overrides the server of --kubeconfig, and alone is a server without credentials", async (t) => {
  const config = {
    clusters: [{ name: "c", cluster: { server: "https://h" } }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  const file = join(await aFolder(t, { config: JSON.stringify(config) }), "config");
  assert.partialDeepStrictEqual(await configFromFlags(file, ""), { host: "https://h", token: "t" });
  assert.partialDeepStrictEqual(await configFromFlags(file, "https://other"), { host: "https://other", token: "t" });
  assert.deepEqual(await configFromFlags("", "other:1"), { host: "http://other:1" });
  assert.deepEqual(await configFromFlags("", "https://other:1"), { host: "https://other:1" });
});

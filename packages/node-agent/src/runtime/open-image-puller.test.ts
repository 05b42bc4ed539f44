import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { openImagePuller } from "./open-image-puller.ts";

/** A node with credentials of its own, and a plugin that has others. @returns user names of the attempts to pull an image */
async function bench(t: TestContext, gates: Readonly<Record<string, boolean>>, config: Partial<AgentConfig> = {}) {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-puller-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  await writeFile(join(rootDir, "config.json"), JSON.stringify({ auths: { "r.test": { username: "node", password: "p" } } }));
  const apiVersion = "credentialprovider.kubelet.k8s.io/v1alpha1";
  const auth = { "r.test": { username: "plugin", password: "p" } };
  const answer = JSON.stringify({ kind: "CredentialProviderResponse", apiVersion, cacheKeyType: "Image", auth });
  await writeFile(join(rootDir, "plugin"), `#!/bin/sh\necho '${answer}'\n`, { mode: 0o755 });
  const providers = [{ name: "plugin", matchImages: ["r.test"], defaultCacheDuration: "1m", apiVersion }];
  const configFile = join(rootDir, "providers.yaml");
  const kind = { apiVersion: "kubelet.config.k8s.io/v1alpha1", kind: "CredentialProviderConfig" };
  await writeFile(configFile, JSON.stringify({ ...kind, providers }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const users: (string | undefined)[] = [];
  runtime.pullImage = async (_, login) => {
    users.push(login?.username);
    throw new Error("denied");
  };
  const puller = openImagePuller({
    config: {
      rootDir,
      imageCredentialProviders: { configFile, binDir: rootDir },
      serializeImagePulls: true,
      registryQps: 0,
      registryBurst: 10,
      ...config,
    } as AgentConfig,
    featureGates: newFeatureGates("kubelet", gates),
    runtime,
    clock,
    log: discardLogger,
  });
  const pull = (name: string): Promise<string> =>
    puller
      .ensure(aNodePod(), aContainer({ image: `r.test/${name}:1` }), [], {}, () => undefined)
      .then(
        () => "",
        (err: Error) => err.message,
      );
  return { users, pull, clock };
}

test("the node's credentials are used, and those of plugins with the gate KubeletCredentialProviders", async (t) => {
  for (const enabled of [false, true]) {
    const { users, pull } = await bench(t, { KubeletCredentialProviders: enabled });
    await pull("a");
    assert.deepEqual(users, enabled ? ["node", "plugin"] : ["node"]);
  }
});

test("pulls are limited to --registry-qps with --registry-burst at once", async (t) => {
  const { pull, clock } = await bench(t, {}, { registryQps: 1, registryBurst: 2 });
  const refused = await Promise.all(["a", "b", "c"].map(pull));
  assert.deepEqual(
    refused.map((message) => message === "pull QPS exceeded"),
    [false, false, true],
  );
  await clock.advance(999);
  assert.equal(await pull("d"), "pull QPS exceeded");
  await clock.advance(1);
  assert.notEqual(await pull("e"), "pull QPS exceeded", "one a second");
});

test("without a configuration of plugins none is asked, whatever the gate", async (t) => {
  const imageCredentialProviders = { configFile: "", binDir: "" };
  const { users, pull } = await bench(t, { KubeletCredentialProviders: true }, { imageCredentialProviders });
  await pull("a");
  assert.deepEqual(users, ["node"]);
});

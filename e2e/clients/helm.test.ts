import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { fetchTool } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";

/** Helm 3 uses a three-way merge patch, helm 4 server-side apply. */
const helms = [
  { version: "3.9", program: () => fetchTool(settings, "helm", "1.23") },
  { version: "4.1", program: () => fetchTool(settings, "helm", "1.35") },
];
const chart = join(import.meta.dirname, "chart");
const run = promisify(execFile);

interface Release {
  name: string;
  version: number;
  info: { status: string };
}

for (const { version, program: find } of helms) {
  test(`helm ${version} installs with a hook and a definition, upgrades, rolls back and leaves nothing`, async (t) => {
    const program = await find();
    const namespace = await newNamespace(t, "helm");
    const home = mkdtempSync(join(tmpdir(), "helm-"));
    t.after(() => tryKubectl(["delete", "crd", "greetings.chart.example.com"])); // helm does not delete CRDs
    t.after(() => rmSync(home, { recursive: true, force: true }));
    const env = { ...process.env, HOME: home, KUBECONFIG: kubeconfigFile(settings, "admin"), HELM_NAMESPACE: namespace };
    const helm = async (...args: string[]): Promise<string> => (await run(program, args, { env, timeout: 240_000 })).stdout;
    const change = async (...args: string[]): Promise<Release> => JSON.parse(await helm(...args, "-o", "json")) as Release;
    const greeting = () =>
      kubectl("-n", namespace, "get", "configmap", "web", "-o", "jsonpath={.data.greeting}/{.data.revision}");
    const wait = ["--atomic", "--timeout", "180s"];

    const installed = await change("install", "web", chart, ...wait);
    assert.equal(`${installed.info.status} ${installed.version}`, "deployed 1");
    assert.equal(await greeting(), "hello/1");
    const custom = () => kubectl("-n", namespace, "get", "greetings", "web", "-o", "jsonpath={.spec.text}/{.spec.loud}");
    assert.equal(await custom(), "hello/false", "what the chart itself defines was there in time");
    const before = () => kubectl("-n", namespace, "logs", "web-before");
    assert.equal(await before(), "before revision 1\n", "the hook ran first");
    const deployment = () => getJson<{ status: { availableReplicas: number } }>("-n", namespace, "deployment", "web");
    assert.equal((await deployment()).status.availableReplicas, 1);

    const upgraded = await change("upgrade", "web", chart, ...wait, "--set", "greeting=welcome,replicas=2");
    assert.equal(`${upgraded.info.status} ${upgraded.version}`, "deployed 2");
    assert.equal(await greeting(), "welcome/2");
    assert.equal(await custom(), "welcome/false");
    assert.equal(await before(), "before revision 2\n");
    assert.equal((await deployment()).status.availableReplicas, 2);

    await assert.rejects(helm("upgrade", "web", chart, ...wait, "--set", "replicas=-1"), /spec\.replicas: Invalid value: -1/);
    assert.equal(await greeting(), "welcome/2", "what failed was taken back");

    await helm("rollback", "web", "1");
    assert.equal(await greeting(), "hello/1");
    const history = JSON.parse(await helm("history", "web", "-o", "json")) as { status: string }[];
    assert.equal(history.at(-1)?.status, "deployed");

    await helm("uninstall", "web", "--wait", "--timeout", "180s");
    assert.equal((await tryKubectl(["-n", namespace, "get", "deployment", "web"])).code, 1);
    assert.equal(await kubectl("-n", namespace, "get", "secrets", "-l", "owner=helm", "-o", "name"), "");
  });
}

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { type AgentConfig, ineffectiveFields, newAgentConfig } from "./config.ts";
import { kubelet } from "./flags.ts";

function configure(...argv: string[]): AgentConfig {
  const { values, set } = parseFlags(kubelet.flags, [
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/c.sock",
    ...argv,
  ]);
  return newAgentConfig(values, set);
}

async function file(t: TestContext, fields: Record<string, unknown>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-config-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.yaml");
  await writeFile(path, JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...fields }));
  return path;
}

test("flags alone leave the kubelet API open, a file closes it", async (t) => {
  assert.partialDeepStrictEqual(configure(), { anonymousAuth: true, webhookAuth: false, authorizationMode: "AlwaysAllow" });
  const path = await file(t, {});
  assert.partialDeepStrictEqual(configure(`--config=${path}`), {
    anonymousAuth: false,
    webhookAuth: true,
    authorizationMode: "Webhook",
  });
});

test("a flag wins over the file, the file over the defaults", async (t) => {
  const path = await file(t, {
    port: 1234,
    maxPods: 20,
    syncFrequency: "5s",
    authentication: { x509: { clientCAFile: "/ca" } },
    evictionHard: { "memory.available": "1Mi" },
    eventRecordQPS: 0,
  });
  assert.partialDeepStrictEqual(configure(`--config=${path}`, "--max-pods=30"), {
    port: 1234,
    maxPods: 30,
    syncFrequencyMs: 5_000,
    clientCaFile: "/ca",
    evictionHard: { "memory.available": "1Mi" },
    eventQps: 0,
    healthzPort: 10_248,
    nodeStatusUpdateFrequencyMs: 10_000,
    containerLogMaxSizeBytes: 10 * 1024 ** 2,
  });
});

for (const { argv, want } of [
  { argv: ["--container-log-max-files=1"], want: /containerLogMaxFiles must be >= 2/ },
  {
    argv: ["--image-gc-high-threshold=50", "--image-gc-low-threshold=60"],
    want: /imageGCLowThresholdPercent 60 must be less than/,
  },
  { argv: ["--image-gc-high-threshold=101"], want: /must be between 0 and 100, inclusive/ },
  { argv: ["--authorization-mode=RBAC"], want: /unknown authorization-mode: RBAC/ },
  { argv: ["--container-runtime=docker"], want: /container runtime "docker" is not built in/ },
  { argv: ["--cgroup-driver=systemd"], want: /only cgroupfs/ },
  {
    argv: ["--node-labels=kubernetes.io/evil=1"],
    want: /--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix/,
  },
  { argv: ["--register-with-taints=a=b:Sometimes"], want: /invalid taint/ },
  { argv: ["--config=/no/such/file"], want: /failed to load config file \/no\/such\/file/ },
]) {
  test(`refuses ${argv.join(" ")}`, () => assert.throws(() => configure(...argv), want));
}

test("refuses fields that do not exist, and tells of those that do nothing", async (t) => {
  const wrong = await file(t, { maxPodz: 1 });
  assert.throws(() => configure(`--config=${wrong}`), /strict decoding error: unknown field "maxPodz"/);
  const path = await file(t, { cpuManagerPolicy: "static", readOnlyPort: 0 });
  assert.deepEqual(ineffectiveFields(configure(`--config=${path}`).written), ["cpuManagerPolicy"]);
});

test("reads taints and labels", () => {
  assert.partialDeepStrictEqual(
    configure("--register-with-taints=a=b:NoSchedule,c:NoExecute", "--node-labels=node.kubernetes.io/role=x,team=y"),
    {
      registerWithTaints: [
        { key: "a", value: "b", effect: "NoSchedule" },
        { key: "c", effect: "NoExecute" },
      ],
      nodeLabels: { "node.kubernetes.io/role": "x", team: "y" },
    },
  );
});

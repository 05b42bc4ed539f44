import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { unpackedPackage } from "../framework/debian.ts";
import { kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

const { ports } = settings;

const rights = (namespace: string): string => `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: ${namespace}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ${namespace}}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${namespace}}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: ${namespace}}]
`;

/** Debian builds Prometheus without Kubernetes service discovery (`kubernetes_sd_configs` is an unknown field). */
const configuration = (tokenFile: string): object => ({
  global: { scrape_interval: "3s", scrape_timeout: "3s" },
  scrape_configs: Object.entries({
    "kube-apiserver": ports.apiserver,
    "kube-controller-manager": ports.controllerManager,
    "kube-scheduler": ports.scheduler,
    kubelet: ports.kubelet,
  }).map(([job, port]) => ({
    job_name: job,
    scheme: "https",
    authorization: { credentials_file: tokenFile },
    tls_config: { insecure_skip_verify: true },
    static_configs: [{ targets: [`127.0.0.1:${port}`] }],
  })),
});

interface Sample {
  metric: Record<string, string>;
  /** Seconds since the epoch, and the number as text. */
  value: [number, string];
}

test("Prometheus scrapes all four daemons with the rights of a service account", async (t) => {
  const namespace = await newNamespace(t, "prometheus");
  t.after(() => tryKubectl(["delete", "clusterrole,clusterrolebinding", namespace]));
  await kubectl("apply", "-f", "-", { input: rights(namespace) });
  const folder = mkdtempSync(join(tmpdir(), "prometheus-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, await tokenOf(namespace));
  const file = join(folder, "prometheus.yml");
  writeFileSync(file, JSON.stringify(configuration(tokenFile)));
  const url = await start(t, file, folder);
  const query = async (expression: string): Promise<Sample[]> => {
    const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    return ((await response.json()) as { data: { result: Sample[] } }).data.result;
  };

  const up = await waitFor("every daemon is scraped", async () => {
    const found = (await query("up")).map(({ metric, value }) => `${metric["job"]}=${value[1]}`).sort();
    return found.length === 4 && found.every((one) => one.endsWith("=1")) && found;
  });
  assert.deepEqual(up, ["kube-apiserver=1", "kube-controller-manager=1", "kube-scheduler=1", "kubelet=1"]);
  for (const metric of [
    'apiserver_request_total{job="kube-apiserver",verb="LIST"}',
    'etcd_request_duration_seconds_count{job="kube-apiserver"}',
    'workqueue_adds_total{job="kube-controller-manager",name="replicaset"}',
    'scheduler_pending_pods{job="kube-scheduler"}',
    'kubelet_running_pods{job="kubelet"}',
    'rest_client_requests_total{job="kube-scheduler"}',
  ]) {
    assert.notEqual((await query(metric)).length, 0, metric);
  }
});

/** The token that the controller manager created for the account. */
async function tokenOf(namespace: string): Promise<string> {
  const name = await waitFor("the account has a token", async () =>
    kubectl("-n", namespace, "get", "serviceaccount", "prometheus", "-o", "jsonpath={.secrets[0].name}").then(
      (found) => found !== "" && found,
    ),
  );
  const encoded = await kubectl("-n", namespace, "get", "secret", name, "-o", "jsonpath={.data.token}");
  return Buffer.from(encoded, "base64").toString();
}

async function start(t: TestContext, file: string, folder: string): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`;
  const program = join(unpackedPackage("prometheus"), "usr/bin/prometheus");
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${address}`];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  t.after(async () => {
    child.kill();
    await ended;
  });
  await waitFor(`Prometheus is ready: ${file}`, async () => {
    if (child.exitCode !== null) throw new Error(said);
    return (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok;
  });
  return `http://${address}`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

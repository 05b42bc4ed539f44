import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";

/** An API server of its own and a scheduler beside it, which may do what RBAC's bootstrap roles let it and nothing more. */
export interface SchedulingCluster {
  readonly server: TestServer;
  /** What the scheduler wrote to its log. */
  log(): string;
  /** A node that nobody runs pods on. */
  addNode(name: string, cpu: string, labels?: Record<string, string>): Promise<void>;
  addPod(name: string, cpu: string, spec?: object): Promise<void>;
  pod(name: string): Promise<Pod>;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

const program = fileURLToPath(new URL("../../packages/scheduler/src/main.ts", import.meta.url));

/** @param configuration of the scheduler, without its client connection */
export async function startScheduling(t: TestContext, configuration: object = {}): Promise<SchedulingCluster> {
  const server = await startTestServer(t);
  const directory = mkdtempSync(join(tmpdir(), "cox-scheduling-"));
  const file = (name: string): string => join(directory, name);
  const { cert, key } = await server.clientCertificate("system:kube-scheduler");
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: server.url, "certificate-authority-data": base64(server.ca) } }],
    users: [{ name: "u", user: { "client-certificate-data": base64(cert), "client-key-data": base64(key) } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(file("kubeconfig"), JSON.stringify(kubeconfig), { mode: 0o600 });
  writeFileSync(
    file("config.yaml"),
    JSON.stringify({
      apiVersion: "kubescheduler.config.k8s.io/v1beta3",
      kind: "KubeSchedulerConfiguration",
      clientConnection: { kubeconfig: file("kubeconfig") },
      leaderElection: { leaderElect: false },
      ...configuration,
    }),
  );
  const log = openSync(file("log"), "w");
  const argv = ["-C", "cox-source", program, `--config=${file("config.yaml")}`, "--secure-port=0", "--v=2"];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", log, log] });
  closeSync(log);
  t.after(async () => {
    await ended(child);
    rmSync(directory, { recursive: true, force: true });
  });
  const { client } = server;
  return {
    server,
    log: () => readFileSync(file("log"), "utf8"),
    async addNode(name, cpu, labels = {}) {
      const allocatable = { cpu, memory: "8Gi", pods: "110" };
      const metadata = { name, labels: { "kubernetes.io/hostname": name, ...labels } };
      const status = { allocatable, capacity: allocatable } as unknown as Node["status"];
      await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata, spec: {}, status });
      // Admission keeps pods off a node that is new; nobody is here to say that it is ready.
      await client.patch(nodes, { name }, { type: "merge", body: { spec: { taints: null } } });
    },
    async addPod(name, cpu, spec = {}) {
      const containers = [{ name: "main", image: "busybox", resources: { requests: { cpu } } }];
      const metadata = { name, namespace: "default" };
      await client.create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers, ...spec } } as Pod);
    },
    pod: (name) => client.get<Pod>(pods, { namespace: "default", name }),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

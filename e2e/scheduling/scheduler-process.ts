import { writeFileSync } from "node:fs";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import { startDaemon, type TestContext } from "../framework/daemon-process.ts";

/** A separate API server and a scheduler with only the permissions of RBAC's bootstrap roles. */
export interface SchedulingCluster {
  readonly server: TestServer;
  /** The scheduler's log so far. */
  log(): string;
  /** A Node object without a kubelet. */
  addNode(name: string, cpu: string, labels?: Record<string, string>): Promise<void>;
  addPod(name: string, cpu: string, spec?: object): Promise<void>;
  pod(name: string): Promise<Pod>;
}

/** @param configuration scheduler configuration without clientConnection */
export async function startScheduling(t: TestContext, configuration: object = {}): Promise<SchedulingCluster> {
  const server = await startTestServer(t);
  const { log } = await startDaemon(t, server, {
    packageName: "scheduler",
    user: "system:kube-scheduler",
    flags(kubeconfig, file) {
      const config = {
        apiVersion: "kubescheduler.config.k8s.io/v1beta3",
        kind: "KubeSchedulerConfiguration",
        clientConnection: { kubeconfig },
        leaderElection: { leaderElect: false },
        ...configuration,
      };
      writeFileSync(file("config.yaml"), JSON.stringify(config));
      return [`--config=${file("config.yaml")}`, "--secure-port=0", "--v=2"];
    },
  });
  const { client } = server;
  return {
    server,
    log,
    async addNode(name, cpu, labels = {}) {
      const allocatable = { cpu, memory: "8Gi", pods: "110" };
      const metadata = { name, labels: { "kubernetes.io/hostname": name, ...labels } };
      const status = { allocatable, capacity: allocatable } as unknown as Node["status"];
      await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata, spec: {}, status });
      // Admission taints new nodes as not ready; no kubelet or controller removes the taint here.
      await client.patch(nodes, { name }, { type: "merge", body: { spec: { taints: null } } });
    },
    async addPod(name, cpu, spec = {}) {
      const containers = [{ name: "main", image: "busybox", resources: { requests: { cpu } } }];
      const metadata = { name, namespace: "default" };
      await client.create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers, ...spec } });
    },
    pod: (name) => client.get<Pod>(pods, { namespace: "default", name }),
  };
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { deployments, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startRestorableEtcd } from "@coxswain/apimachinery/testing/restorable-etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "@coxswain/apiserver/testing/start-test-server";
import { startDaemon } from "../framework/daemon-process.ts";

const replicas = 4;

test("after etcd was restored all go on from what it holds, without a restart", async (t) => {
  const etcd = await startRestorableEtcd(t);
  const server = await startTestServer(t, [`--etcd-servers=${etcd.endpoint}`, "--disable-admission-plugins=ServiceAccount"]);
  const { client } = server;
  const manager = await startDaemon(t, server, {
    packageName: "controller-manager",
    user: "system:kube-controller-manager",
    flags: (kubeconfig) => [`--kubeconfig=${kubeconfig}`, "--use-service-account-credentials=true", "--secure-port=0", "--v=4"],
  });
  const scheduler = await startDaemon(t, server, {
    packageName: "scheduler",
    user: "system:kube-scheduler",
    flags: (kubeconfig) => [`--kubeconfig=${kubeconfig}`, "--secure-port=0", "--v=4"],
  });

  // Also frees resources for the replacement pods of "lost": without a kubelet no pod terminates.
  const allocatable = { cpu: String(20 * replicas), memory: "8Gi", pods: "110" };
  const conditions = [
    { type: "Ready", status: "True", lastHeartbeatTime: new Date().toISOString(), lastTransitionTime: new Date().toISOString() },
  ];
  const status = { allocatable, capacity: allocatable, conditions } as unknown as Node["status"];
  await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {}, status });
  await client.patch(nodes, { name: "n1" }, { type: "merge", body: { spec: { taints: null } } });

  const deploy = async (name: string): Promise<void> => {
    const labels = { app: name };
    const containers = [{ name: "main", image: "busybox", resources: { requests: { cpu: "1" } } }];
    const tolerations = [{ operator: "Exists" }];
    const spec = {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, tolerations } },
    };
    const metadata = { name, namespace: "default" };
    await client.create(deployments, { apiVersion: "apps/v1", kind: "Deployment", metadata, spec });
  };
  const bound = async (name: string): Promise<Pod[]> => {
    const all = await client.list<Pod>(pods, { namespace: "default" }, { labelSelector: `app=${name}` });
    return all.items.filter(({ spec }) => spec.nodeName);
  };
  const isDeployed = (name: string) =>
    waitFor(async () => (await bound(name)).length === replicas, { what: `the pods of ${name}` });

  await deploy("before");
  await isDeployed("before");
  const kept = (await bound("before")).map(({ metadata }) => metadata.uid).sort();
  etcd.save();
  await deploy("lost");
  await isDeployed("lost");
  await etcd.restore();

  await waitFor(() => deploy("after").then(() => true), { what: "a deployment after the restore" });
  await isDeployed("after");
  // Some may have been recreated before all caches were refilled; without their owner they have to be deleted, as far as that is
  // possible on a node without a kubelet.
  await waitFor(async () => (await bound("lost")).every(({ metadata }) => metadata.deletionTimestamp), {
    what: "the end of the pods whose deployment is gone",
  });
  assert.deepEqual((await bound("before")).map(({ metadata }) => metadata.uid).sort(), kept);
  assert.deepEqual([manager.end(), scheduler.end()], [undefined, undefined], manager.log().slice(-2000));
});

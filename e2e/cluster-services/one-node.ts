import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { applyRights } from "@coxswain/cluster-services/apply-rights";
import type { parts } from "@coxswain/cluster-services/parts";
import { rightsOf } from "@coxswain/cluster-services/rights";
import type { Namespace } from "@coxswain/cluster-services/testing/namespaces";
import { type Cluster, createCluster } from "@coxswain/testing";
import { kubeconfigOfNode, openRelay } from "./killed-process.ts";

export const nodeAddress = "192.168.77.1";

export interface OneNodeCluster {
  /** Temporary, with `kubeconfig` of the node's process and the socket `api`, which relays to the API server. */
  readonly folder: string;
  readonly cluster: Cluster;
  /** The administrator's. */
  readonly kubeconfig: string;
}

/** An API server with the rights of these parts and the Ready Node `n1`, whose pods have addresses of 10.77.0.0/24. */
export async function startOneNodeCluster(
  t: TestContext,
  name: string,
  chosen: typeof parts,
  apiServerFlags: readonly string[] = [],
): Promise<OneNodeCluster> {
  const folder = mkdtempSync(join(tmpdir(), `cox-${name}-`));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // The controllers remove the finalizers that the API server adds to claims and volumes.
  const controllers = ["pvc-protection", "pv-protection"];
  const cluster = await createCluster({ nodes: 0, controllers, scheduler: false, apiServerFlags });
  t.after(() => cluster.stop());
  const { client } = cluster;
  await openRelay(t, join(folder, "api"), (await cluster.listen()).url);
  const kubeconfig = await cluster.kubeconfig();
  writeFileSync(join(folder, "kubeconfig"), kubeconfigOfNode(kubeconfig));
  await applyRights(client, rightsOf(chosen, { leaseNamespace: "kube-system", leaseName: "coxswain-services" }), t.signal);
  await client.create<Node>(nodes, {
    metadata: { name: "n1", labels: { "kubernetes.io/hostname": "n1" } },
    spec: { podCIDR: "10.77.0.0/24", podCIDRs: ["10.77.0.0/24"] },
  });
  const node = await client.get<Node>(nodes, { name: "n1" });
  const status = { addresses: [{ type: "InternalIP", address: nodeAddress }], conditions: [{ type: "Ready", status: "True" }] };
  await client.update<Node>(nodes, { ...node, status } as Node, { subresource: "status" });
  return { folder, cluster, kubeconfig };
}

/** Gives a machine the node's address on a link whose other end is up and unconnected. */
export async function addNodeLink(namespace: Namespace): Promise<void> {
  await namespace.ip("link add eth0 type veth peer name far");
  await namespace.ip(`address add ${nodeAddress}/24 dev eth0`);
  for (const link of ["eth0", "far"]) await namespace.ip(`link set ${link} up`);
}

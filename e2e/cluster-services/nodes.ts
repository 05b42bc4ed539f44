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
import { kubeconfigOfNode, Relay } from "./killed-process.ts";

export const nodeAddress = "192.168.77.1";

export interface ServicesCluster {
  /** Temporary, with `kubeconfig.<node>` of the nodes' processes and the socket `api`, which relays to the API server. */
  readonly folder: string;
  readonly cluster: Cluster;
  readonly relay: Relay;
  /** The administrator's. */
  readonly kubeconfig: string;
  /** Makes a Ready Node, with the kubeconfig of its process. */
  addNode(name: string, podCidr: string, address: string): Promise<void>;
}

export interface ServicesClusterOptions {
  readonly apiServerFlags?: readonly string[];
  /** URLs of a real etcd. Default: a store in memory. */
  readonly etcd?: readonly string[];
  /** Default: those that remove the finalizers that the API server adds to claims and volumes. */
  readonly controllers?: readonly string[];
}

/** An API server with the rights of these parts. */
export async function startServicesCluster(
  t: TestContext,
  name: string,
  chosen: typeof parts,
  { apiServerFlags = [], etcd, controllers = ["pvc-protection", "pv-protection"] }: ServicesClusterOptions = {},
): Promise<ServicesCluster> {
  const folder = mkdtempSync(join(tmpdir(), `cox-${name}-`));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const cluster = await createCluster({ nodes: 0, controllers, scheduler: false, apiServerFlags, ...(etcd && { etcd }) });
  t.after(() => cluster.stop());
  const { client } = cluster;
  const relay = await Relay.open(t, join(folder, "api"), (await cluster.listen()).url);
  const kubeconfig = await cluster.kubeconfig();
  await applyRights(client, rightsOf(chosen, { leaseNamespace: "kube-system", leaseName: "coxswain-services" }), t.signal);
  const addNode = async (node: string, podCidr: string, address: string): Promise<void> => {
    writeFileSync(join(folder, `kubeconfig.${node}`), kubeconfigOfNode(kubeconfig, node));
    const made = await client.create<Node>(nodes, {
      metadata: { name: node, labels: { "kubernetes.io/hostname": node } },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
    });
    const status = { addresses: [{ type: "InternalIP", address }], conditions: [{ type: "Ready", status: "True" }] };
    await client.update<Node>(nodes, { ...made, status } as Node, { subresource: "status" });
  };
  return { folder, cluster, relay, kubeconfig, addNode };
}

/** The same with the Node `n1`, whose pods have addresses of 10.77.0.0/24. */
export async function startOneNodeCluster(
  t: TestContext,
  name: string,
  chosen: typeof parts,
  options?: ServicesClusterOptions,
): Promise<ServicesCluster> {
  const started = await startServicesCluster(t, name, chosen, options);
  await started.addNode("n1", "10.77.0.0/24", nodeAddress);
  return started;
}

/** Gives a machine the node's address on a link whose other end is up and unconnected. */
export async function addNodeLink(namespace: Namespace): Promise<void> {
  await namespace.ip("link add eth0 type veth peer name far");
  await namespace.ip(`address add ${nodeAddress}/24 dev eth0`);
  for (const link of ["eth0", "far"]) await namespace.ip(`link set ${link} up`);
}

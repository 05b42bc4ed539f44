import { isNotFound, isTimeout } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, NodeCondition, Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { DaemonCluster } from "./cluster.ts";
import { repeat } from "./repeat.ts";

interface Capacity {
  readonly cpu: string;
  readonly memory: string;
  readonly pods: string;
}

const large: Capacity = { cpu: "64", memory: "256Gi", pods: "500" };
const zones = 3;

/** Creates nodes in three zones, as API objects without machines. */
export function addNodes({ client }: DaemonCluster, count: number, capacity: Capacity = large): Promise<void> {
  return repeat(count, async (index) => {
    const name = nodeName(index);
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": `zone-${index % zones}` };
    const now = new Date().toISOString();
    const ready: NodeCondition = {
      type: "Ready",
      status: "True",
      lastHeartbeatTime: now,
      lastTransitionTime: now,
      reason: "KubeletReady",
    };
    const conditions = [ready];
    const status = { capacity: { ...capacity }, allocatable: { ...capacity }, conditions };
    await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: {}, status });
    // Admission taints new nodes as not ready, and there may be no controller that removes the taint.
    await client.patch(nodes, { name }, { type: "merge", body: { spec: { taints: null } } });
  });
}

const leaseNamespace = "kube-node-lease";

/** Renews the lease of a node every second, like a kubelet that runs. Returns the function that removes the lease. */
export async function reportNode({ client }: DaemonCluster, name: string): Promise<() => Promise<void>> {
  const lease = { namespace: leaseNamespace, name };
  const spec = { holderIdentity: name, leaseDurationSeconds: 40 };
  await client.create<Lease>(leases, { metadata: lease, spec }, { namespace: leaseNamespace });
  const renew = async (): Promise<void> => {
    const renewTime = new Date().toISOString().replace("Z", "000Z");
    await client.patch(leases, lease, { type: "merge", body: { spec: { renewTime } } });
  };
  await renew();
  // The next renewal follows a failed one within the node's grace period.
  const timer = setInterval(() => void renew().catch(() => {}), 1000);
  return async () => {
    clearInterval(timer);
    await client.delete(leases, lease);
  };
}

export const nodeName = (index: number): string => `node-${String(index).padStart(4, "0")}`;

interface PodOptions {
  readonly name: string;
  readonly labels?: Record<string, string>;
  readonly cpu?: string;
  readonly spec?: Partial<PodSpec>;
}

/** A small Pod without volumes and with a grace period of 0. */
export function benchPod({ name, labels = {}, cpu = "10m", spec = {} }: PodOptions): Pod {
  const container = { name: "web", image: "example.com/web:1", resources: { requests: { cpu, memory: "16Mi" } } };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: "web", ...labels } },
    spec: { containers: [container], automountServiceAccountToken: false, terminationGracePeriodSeconds: 0, ...spec },
  };
}

/** Creates `count` Pods, several requests at a time; resolves when all were created. */
export function addPods({ client, namespace }: DaemonCluster, count: number, podOf: (index: number) => Pod): Promise<void> {
  return repeat(count, (index) => client.create<Pod>(pods, podOf(index), { namespace }));
}

/** Deletes all objects of a resource at once, again when that takes longer than a request may; resolves when they are gone. */
export async function removeAll(cluster: DaemonCluster, ref: ResourceRef): Promise<void> {
  const { client, namespace } = cluster;
  for (let finished = false; !finished; ) {
    try {
      await client.deleteCollection(ref, { namespace }, { gracePeriodSeconds: 0, propagationPolicy: "Background" });
      finished = true;
    } catch (err) {
      if (!isTimeout(err)) throw err;
    }
  }
  await untilGone(cluster, ref);
}

/** Resolves when no object of a resource exists in the cluster's namespace; polls a few times a second. */
export async function untilGone({ client, namespace }: DaemonCluster, ref: ResourceRef, label = ""): Promise<void> {
  const count = async (): Promise<number> => {
    const list = await client.list(
      ref,
      { namespace },
      { limit: 1, resourceVersion: "", ...(label !== "" && { labelSelector: label }) },
    );
    return list.items.length + (list.metadata.remainingItemCount ?? 0);
  };
  await waitFor(async (seen) => seen(await count()) === 0, { what: `no ${ref.resource}`, timeoutMs: 600_000 });
}

async function get<T extends object>({ client, namespace }: DaemonCluster, ref: ResourceRef, name: string): Promise<T> {
  return client.get<T>(ref, { namespace, name });
}

/** Waits until one object is in a state; polls every 25 ms at first. */
export async function untilObject<T extends object = Unstructured>(
  cluster: DaemonCluster,
  ref: ResourceRef,
  name: string,
  matches: (object: T) => boolean,
): Promise<void> {
  await waitFor(async (seen) => matches(seen(await get<T>(cluster, ref, name))), {
    what: `${ref.resource} ${name}`,
    timeoutMs: 600_000,
    intervalMs: 25,
    retry: isNotFound,
  });
}

import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import { startDaemon, type TestContext } from "../framework/daemon-process.ts";

/** A separate API server and a controller manager whose controllers have only their bootstrap roles. */
export interface ManagedCluster {
  readonly server: TestServer;
  /** The controller manager's log so far. */
  log(): string;
  /** A Node object without a kubelet. */
  addNode(name: string, labels?: Record<string, string>): Promise<void>;
  /**
   * Simulates scheduler and kubelets: binds pods to `nodeOf`, marks them running and, if `serves` returns true, ready, and
   * removes deleted ones.
   */
  tend(nodeOf: (pod: Pod) => string, serves?: (pod: Pod) => boolean): Promise<void>;
  list<T extends object>(ref: ResourceRef): Promise<T[]>;
}

/**
 * @param gates feature gates of both
 * @param serverFlags additional flags of the API server
 */
export async function startManaged(
  t: TestContext,
  controllers: readonly string[],
  gates: readonly string[] = [],
  serverFlags: readonly string[] = [],
): Promise<ManagedCluster> {
  const gateFlags = gates.length === 0 ? [] : [`--feature-gates=${gates.map((gate) => `${gate}=true`).join(",")}`];
  const server = await startTestServer(t, [...gateFlags, ...serverFlags]);
  const { log } = await startDaemon(t, server, {
    packageName: "controller-manager",
    user: "system:kube-controller-manager",
    flags: (kubeconfig) => [
      `--kubeconfig=${kubeconfig}`,
      `--controllers=${controllers.join(",")}`,
      "--use-service-account-credentials=true",
      "--leader-elect=false",
      "--secure-port=0",
      ...gateFlags,
    ],
  });
  const { client } = server;
  const list = async <T extends object>(ref: ResourceRef): Promise<T[]> =>
    (await client.list<T>(ref, ref.namespaced ? { namespace: "default" } : {})).items;
  const tendPod = async (pod: Pod, nodeOf: (pod: Pod) => string, serves: (pod: Pod) => boolean): Promise<void> => {
    const { name = "", namespace, deletionTimestamp } = pod.metadata;
    const target = { namespace, name };
    if (deletionTimestamp) {
      await client.delete(pods, target, { gracePeriodSeconds: 0 });
      return;
    }
    if (!pod.spec.nodeName) {
      const binding = { apiVersion: "v1", kind: "Binding", metadata: target, target: { kind: "Node", name: nodeOf(pod) } };
      await client.create(pods, binding, { ...target, subresource: "binding" });
    }
    if (pod.status?.phase !== "Pending" || !serves(pod)) return;
    const conditions = [{ type: "Ready", status: "True", lastTransitionTime: new Date().toISOString() }];
    const body = { status: { phase: "Running", conditions } };
    await client.patch(pods, { ...target, subresource: "status" }, { type: "strategic", body });
  };
  return {
    server,
    list,
    log,
    async addNode(name, labels = {}) {
      await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: {} });
      // Admission taints new nodes as not ready; no kubelet or controller removes the taint here.
      await client.patch(nodes, { name }, { type: "merge", body: { spec: { taints: null } } });
    },
    async tend(nodeOf, serves = () => true) {
      for (const pod of await list<Pod>(pods)) {
        await tendPod(pod, nodeOf, serves).catch((err) => {
          if (!isNotFound(err)) throw err; // its controller deleted it after the list
        });
      }
    },
  };
}

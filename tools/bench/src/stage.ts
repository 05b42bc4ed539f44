import type { Connection } from "./http.ts";
import { closedLoop } from "./load.ts";
import { benchPod } from "./objects.ts";
import type { Target } from "./target.ts";

/** A server with a namespace of pods, ready for measurement. */
export interface Stage {
  readonly target: Target;
  readonly connection: Connection;
  readonly http1Connection: Connection;
  readonly userConnection?: Connection;
  /** `/api/v1/namespaces/<name>` of the listed pods */
  readonly namespacePath: string;
  /** Path of one of the Pods; takes any integer. */
  podPath(sequence: number): string;
  readonly podCount: number;
  /** `/api/v1/namespaces/<name>` for rows that write, separate from the measured list */
  readonly writtenPath: string;
  tearDown(): Promise<void>;
}

const json = { "content-type": "application/json" };

/** @param run unique suffix of the namespaces */
export async function setUpStage(target: Target, podCount: number, run: string): Promise<Stage> {
  const connection = await target.connect();
  const http1Connection = target.connectHttp1();
  const userConnection = await target.connectAsUser?.();
  const list = `cox-bench-${run}`;
  const extra = `cox-bench-${run}-created`;
  const post = (path: string, object: object) =>
    connection.request(path, { method: "POST", body: JSON.stringify(object), headers: json });
  for (const name of [list, extra]) {
    await post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } };
    await post(`/api/v1/namespaces/${name}/serviceaccounts`, account).catch(existsAlready); // the controller may have created it
  }
  if (userConnection !== undefined) {
    await post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "bench" },
      subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "benchers" }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    }).catch(existsAlready);
  }
  const pods = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
  const fill = (sequence: number) => post(pods(list), benchPod(podName(sequence), sequence));
  await closedLoop(fill, { concurrency: 16, seconds: 300, maxOperations: podCount });
  // A most-recent read, after which the watch cache is current.
  await connection.request(`${pods(list)}?limit=1`);
  return {
    target,
    connection,
    http1Connection,
    ...(userConnection !== undefined && { userConnection }),
    namespacePath: `/api/v1/namespaces/${list}`,
    podPath: (sequence) => `${pods(list)}/${podName((sequence * 7919) % podCount)}`,
    podCount,
    writtenPath: `/api/v1/namespaces/${extra}`,
    async tearDown() {
      for (const name of [list, extra]) {
        await connection.request(`${pods(name)}?gracePeriodSeconds=0`, { method: "DELETE" });
        await connection.request(`/api/v1/namespaces/${name}`, { method: "DELETE" });
      }
      connection.close();
      http1Connection.close();
      userConnection?.close();
    },
  };
}

function podName(index: number): string {
  return `web-5d8f7c9b6d-${String(index).padStart(5, "0")}`;
}

function existsAlready(err: Error): void {
  if (!err.message.includes(": 409 ")) throw err;
}

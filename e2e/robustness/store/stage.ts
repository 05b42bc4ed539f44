import assert from "node:assert/strict";
import { type EtcdHistory, followEtcd } from "../../framework/history/etcd-history.ts";
import { type ApiServer, type ApiServers, startApiServers } from "./apiservers.ts";
import { type EtcdCluster, startEtcdCluster } from "./etcd-cluster.ts";

/** The cluster of a store test: etcd members, API servers, and a recorder of etcd's history, against which reads are checked. */
export interface Stage {
  readonly etcd: EtcdCluster;
  readonly apis: ApiServers;
  readonly history: EtcdHistory;
  /** Names of two existing namespaces. */
  readonly namespaces: readonly [string, string];
  /** Compacts etcd up to the last revision that `history` has recorded. */
  compact(): Promise<void>;
}

export interface StageOptions {
  members: number;
  apiServers: number;
  /** Additional flags of each API server, by its number. */
  flags?: (server: number) => readonly string[];
  /** Path of the etcd program of each member, by its number. */
  etcdProgram?: (member: number) => string;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

/** Starts etcd and API servers of their own, with two namespaces, and records etcd's history. All of it ends with the test. */
export async function newStage(t: TestContext, { members, apiServers, flags, etcdProgram }: StageOptions): Promise<Stage> {
  const etcd = await startEtcdCluster(t, members, etcdProgram);
  const apis = await startApiServers(t, apiServers, etcd.endpoints, flags);
  const history = followEtcd(etcd.endpoints, "/registry");
  t.after(() => history.stop());
  const namespaces = ["one", "two"] as const;
  for (const name of namespaces) {
    const { code } = await (apis.servers[0] as ApiServer).request("POST", "/api/v1/namespaces", { metadata: { name } });
    assert.equal(code, 201);
  }
  return { etcd, apis, history, namespaces, compact: () => etcd.compact(history.revision) };
}

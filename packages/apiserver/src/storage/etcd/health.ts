import type { EtcdClient } from "./client.ts";

/**
 * The check named `etcd` of /healthz, /livez and /readyz: a linearizable read of one key. Concurrent probes share one read,
 * which bounds the load on etcd.
 * @returns a check that rejects with the reason when etcd does not answer within `timeoutMs`
 * Source: k8s.io/apiserver pkg/storage/storagebackend/factory/etcd3.go newETCD3HealthCheck
 */
export function newEtcdHealth(clients: readonly EtcdClient[], prefix: string, timeoutMs: number): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= probe().finally(() => {
      running = undefined;
    });
    return running;
  };

  async function probe(): Promise<void> {
    await within(timeoutMs, Promise.all(clients.map((client) => client.range({ key: `${prefix}/health` }))));
  }
}

/**
 * Detects an etcd that serves reads but has no space left, for `/readyz?verbose`. The server stays ready, so that deletions,
 * which free the space, still reach it.
 * @returns the warning; undefined when there is none, or etcd cannot be reached
 */
export async function etcdWarning(clients: readonly EtcdClient[], timeoutMs: number): Promise<string | undefined> {
  // Members are queried independently: the alarm is cluster-wide, and an unreachable member must not hide it.
  const pending = clients.flatMap((client) => client.servers.map((_, i) => within(timeoutMs, client.status(i))));
  const reported = (await Promise.allSettled(pending)).flatMap((answer) =>
    answer.status === "fulfilled" ? answer.value.errors : [],
  );
  const full = reported.some((text) => /alarm:NOSPACE/.test(text));
  return full ? "no space left, all writes but deletions are refused" : undefined;
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("context deadline exceeded")), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

import type { EtcdClient } from "./client.ts";

/**
 * The check named `etcd` of /healthz, /livez and /readyz: a linearizable read of one key. Probes that come while one
 * runs share it, so that a crowd of them costs etcd nothing.
 * @returns a check that rejects with the reason when etcd does not answer in time.
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
 * What a reader of `/readyz?verbose` has to know of an etcd that is well enough for reads: it has no space left. Readiness
 * stays as it is, so that the deletions that make room still find a server.
 * @returns undefined when there is nothing to say, or etcd cannot be asked
 */
export async function etcdWarning(clients: readonly EtcdClient[], timeoutMs: number): Promise<string | undefined> {
  // Each for itself: the alarm is the whole cluster's, and a member that is away must not hide it.
  const asked = clients.flatMap((client) => client.servers.map((_, i) => within(timeoutMs, client.status(i))));
  const told = (await Promise.allSettled(asked)).flatMap((answer) => (answer.status === "fulfilled" ? answer.value.errors : []));
  const full = told.some((text) => /alarm:NOSPACE/.test(text));
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

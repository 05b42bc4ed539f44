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
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("context deadline exceeded")), timeoutMs);
    });
    try {
      await Promise.race([Promise.all(clients.map((client) => client.range({ key: `${prefix}/health` }))), late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

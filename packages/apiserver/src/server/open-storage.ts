import type { ProxyCertificate } from "../aggregation/proxy-certificate.ts";
import type { EtcdOptions } from "../storage/cluster.ts";
import type { EtcdIdentity } from "../storage/etcd/channel.ts";
import { openStorage, type StorageSet } from "../storage/open.ts";
import type { Foundation } from "./foundation.ts";
import { newGrpcMetrics } from "./grpc-metrics.ts";
import { newStorageMetrics } from "./storage-metrics.ts";
import { untilAborted } from "./until-aborted.ts";

const storageRetryMs = 1000;

function identityOf({ current }: ProxyCertificate, certFile: string): EtcdIdentity | undefined {
  return current && { cert: Buffer.from(current.cert), key: Buffer.from(current.key), certFile };
}

/**
 * Opens the storage; an etcd that cannot be reached is tried again until the server stops.
 * @param replaced used in place of connections to etcd
 * @param counted receives the number of objects of each resource from time to time
 */
export async function openStorageWithRetry(
  { config, clock, log, metrics, turns, memory, tracer, tunnels, certificates, signal }: Foundation,
  replaced: Pick<EtcdOptions, "around" | "client">,
  counted: (resource: string, count: number) => void,
): Promise<StorageSet> {
  const { flags } = config;
  const calls = newGrpcMetrics(metrics);
  const stopped = untilAborted(signal);
  stopped.catch(() => {});
  for (;;) {
    signal.throwIfAborted();
    const opening = openStorage({
      etcd: {
        servers: flags["etcd-servers"],
        overrides: config.etcdOverrides,
        prefix: flags["etcd-prefix"],
        ...config.etcdTls,
        identity: () => identityOf(certificates.etcd, flags["etcd-certfile"]),
        compactionIntervalMs: flags["etcd-compaction-interval"],
        healthTimeoutMs: flags["etcd-healthcheck-timeout"],
        leaseReuseSeconds: flags["lease-reuse-duration-seconds"],
        ...replaced,
        calls: tracer?.calls(calls) ?? calls,
        connect: tunnels.etcd,
      },
      watchCache: flags["watch-cache"],
      cachedWhenNamed: flags["default-watch-cache-size"] === 0,
      watchCacheSizes: config.watchCacheSizes,
      mediaType: flags["storage-media-type"],
      ...(config.encryption !== undefined && { transformerFor: config.encryption.transformerFor }),
      clock,
      log: log.named("storage"),
      metrics: newStorageMetrics(metrics, counted),
      turns,
      memory,
      countPollMs: flags["etcd-count-metric-poll-period"],
      databaseSizePollMs: flags["etcd-db-metric-poll-interval"],
      signal,
    });
    try {
      return await Promise.race([opening, stopped]);
    } catch (err) {
      opening.catch(() => {}); // fails when the server stops, as this does
      signal.throwIfAborted();
      log.error("cannot reach etcd, trying again", err, { servers: flags["etcd-servers"].join(",") });
      await clock.sleep(storageRetryMs, signal);
    }
  }
}

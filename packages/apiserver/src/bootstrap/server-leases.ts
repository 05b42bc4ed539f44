/**
 * Liveness of API servers: one key per address below `masterleases/`, with a TTL of 15 s. The keys are the same as
 * upstream's, so that both kinds of server can run side by side.
 * Source: pkg/controlplane/reconcilers/lease.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Storage } from "../storage/storage.ts";
import type { LiveServers, Members } from "./kubernetes-service.ts";

const ttlSeconds = 15;

/** Defines the storage of these keys, which are not an API resource. */
export const serverLeasesResource = {
  group: "",
  resource: "masterleases",
  kind: "Endpoints",
  namespaced: false,
  hub: "v1",
  storageFolder: "masterleases",
  versions: [{ version: "v1" }],
} as const;

interface Lease extends KubeObject {
  subsets?: { addresses?: { ip: string }[] }[];
}

export function newServerLeases(storage: Storage): LiveServers {
  const alive = async (): Promise<Members> => {
    const { entries } = await storage.list({ prefix: "" });
    return () => entries.map(({ key }) => key);
  };
  return {
    async renew(address) {
      await storage.guaranteedUpdate(
        address,
        (current) => {
          const before = current?.object();
          const lease: Lease = {
            apiVersion: "v1",
            kind: "Endpoints",
            // The incremented generation makes each renewal a write, which renews the TTL.
            metadata: { ...before?.metadata, generation: (before?.metadata.generation ?? 0) + 1 },
            subsets: [{ addresses: [{ ip: address }] }],
          };
          return lease;
        },
        { ignoreNotFound: true, ttlSeconds },
      );
      return alive();
    },
    async remove(address) {
      await storage.delete(address);
      return alive();
    },
  };
}

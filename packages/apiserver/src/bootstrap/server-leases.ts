/**
 * Which API servers are alive: one key for each address below `masterleases/`, which etcd forgets 15 s after its last
 * renewal. The same keys as upstream's, so that both kinds of server can run side by side.
 * Source: pkg/controlplane/reconcilers/lease.go
 */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Storage } from "../storage/storage.ts";
import type { LiveServers, Members } from "./kubernetes-service.ts";

const ttlSeconds = 15;

/** What the storage has to know of these keys; they are no resource of the API. */
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
            // A generation that counts up makes each renewal a write, which gives the key a new time to live.
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

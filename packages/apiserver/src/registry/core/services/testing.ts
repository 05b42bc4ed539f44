/** Fixture of this folder's tests. */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Entry, Storage } from "../../../storage/storage.ts";

/** A storage of ranges in memory that can be made unavailable. */
export class RangeStorage {
  isAway = false;
  readonly stored = new Map<string, KubeObject>();
  readonly storage = {
    guaranteedUpdate: async (key: string, change: (entry: Entry | undefined) => KubeObject, { dryRun }: { dryRun: boolean }) => {
      if (this.isAway) throw new Error("etcd is away");
      const object = this.stored.get(key);
      const next = change(object === undefined ? undefined : ({ object: () => object } as Entry));
      if (!dryRun) this.stored.set(key, next);
    },
  } as unknown as Storage;
}

import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Part, PartContext } from "../part.ts";
import { newClassKeeper, newDeleter, newProvisioner } from "./controllers.ts";
import { newDiskWatch } from "./disk-watch.ts";
import { openFolders } from "./folders.ts";
import { newLeftFolders } from "./left-folders.ts";

/** Makes and deletes volumes that are folders of this node. */
export async function startLocalVolumes(context: PartContext, open = openFolders): Promise<Part> {
  const { informers, signal, flags, fail } = context;
  const folders = await open(flags["local-volumes-dir"]);
  const options = { ...context, folders };
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const volumes = informers.for<PersistentVolume>(persistentVolumes);
  const disk = newDiskWatch({ ...options, claims: claims.lister, volumes: volumes.lister });
  const all = [newClassKeeper(options), newProvisioner(options), newDeleter(options), newLeftFolders(options), disk];
  const running = Promise.all(all.map((one) => one.run(signal))).catch(fail);
  await Promise.all([claims, volumes].map((informer) => informer.waitForSync(signal)));
  return {
    check() {
      if (disk.problem !== undefined) throw new Error(`the disk of ${folders.root} is full: ${disk.problem}`);
    },
    async stop() {
      await running;
    },
  };
}

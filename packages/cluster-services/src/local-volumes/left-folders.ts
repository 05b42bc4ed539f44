import { newPeriodic, type Periodic } from "@coxswain/apimachinery/controller/periodic";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { volumeNameOf } from "./decisions.ts";
import type { Folders } from "./folders.ts";

const periodMs = 10 * 60_000;
/** The caches may not show the volume yet. */
const leastAgeMs = 60_000;

/**
 * Removes folders whose claim went before its volume was made, because the process was killed in between or the volume was
 * refused. Only empty folders are removed, because no pod has used them.
 */
export function newLeftFolders(options: {
  readonly folders: Pick<Folders, "untouchedFor" | "removeEmpty">;
  readonly informers: InformerFactory;
  readonly log: Logger;
  readonly clock: Clock;
}): Periodic {
  const { folders, informers, log, clock } = options;
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const volumes = informers.for<PersistentVolume>(persistentVolumes);
  return newPeriodic({
    name: "local-volumes-left-folders",
    periodMs,
    synced: [claims, volumes],
    async work() {
      const old = await folders.untouchedFor(leastAgeMs, clock.now());
      if (old.length === 0) return;
      const claimed = new Set(claims.lister.list().map(volumeNameOf));
      for (const name of old) {
        if (claimed.has(name) || volumes.lister.get(name) !== undefined) continue;
        if (await folders.removeEmpty(name))
          log.info("removed the empty folder of a claim that was deleted before its volume was created", { name });
      }
    },
    log,
    clock,
  });
}

import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newPeriodic, type Periodic } from "@coxswain/apimachinery/controller/periodic";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import { inGi } from "./controllers.ts";
import type { Folders, Space } from "./folders.ts";

interface DiskWatchOptions {
  readonly nodeName: string;
  readonly folders: Pick<Folders, "root" | "space">;
  readonly claims: Pick<Lister<PersistentVolumeClaim>, "get">;
  readonly volumes: Pick<Lister<PersistentVolume>, "list">;
  readonly recorder: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

const periodMs = 30_000;
/** While the disk is full, events are repeated after this. */
const repeatMs = 10 * 60_000;
const fullShare = 0.03;

/** Pure: why too little disk space is left for writes to volumes; undefined when there is enough. */
export function fullness({ totalBytes, freeBytes, totalFiles, freeFiles }: Space): string | undefined {
  if (freeBytes < totalBytes * fullShare) return `${inGi(freeBytes)} of ${inGi(totalBytes)} are free`;
  if (totalFiles > 0 && freeFiles < totalFiles * fullShare) return `${freeFiles} of ${totalFiles} files can still be created`;
  return undefined;
}

interface DiskWatch extends Periodic {
  /** What `fullness` said last. */
  readonly problem: string | undefined;
}

/** Creates events on the claims of this node's volumes when their disk is full, once and then every ten minutes. */
export function newDiskWatch(options: DiskWatchOptions): DiskWatch {
  const { nodeName, folders, claims, volumes, recorder, log, clock, metrics } = options;
  const free = metrics.gauge(definitions.coxswain_local_volumes_free_bytes);
  const total = metrics.gauge(definitions.coxswain_local_volumes_capacity_bytes);
  let problem: string | undefined;
  let reportedAt = 0;
  const notify = (text: string): void => {
    for (const { spec } of volumes.list()) {
      if (!spec?.local?.path.startsWith(`${folders.root}/`)) continue;
      const claim = claims.get(`${spec.claimRef?.namespace}/${spec.claimRef?.name}`);
      if (claim === undefined || claim.metadata.uid !== spec.claimRef?.uid) continue;
      recorder.event(claim, "Warning", "DiskFull", `the disk of local volumes of node ${nodeName} is full: ${text}`);
    }
  };
  const periodic = newPeriodic({
    name: "local-volumes-disk",
    periodMs,
    log,
    clock,
    async work() {
      const space = await folders.space();
      free.set(space.freeBytes);
      total.set(space.totalBytes);
      const was = problem;
      problem = fullness(space);
      if (problem === undefined || (was !== undefined && clock.monotonic() - reportedAt < repeatMs)) return;
      reportedAt = clock.monotonic();
      log.warn("the disk of local volumes is full", { folder: folders.root, state: problem });
      notify(problem);
    },
  });
  return {
    run: (signal) => periodic.run(signal),
    get problem() {
      return problem;
    },
  };
}

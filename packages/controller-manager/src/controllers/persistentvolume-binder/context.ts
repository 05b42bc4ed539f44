import { needsSynced, type Source } from "@coxswain/apimachinery/controller/sources";
import { type Newest, newNewest } from "@coxswain/apimachinery/informers/newest";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { ControllerContext } from "../../controller-context.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";
import { countVolumes, type Lifecycles, newLifecycles } from "./metrics.ts";
import { newOperations, type Operations } from "./operations.ts";
import type { EventData } from "./plan-claim.ts";
import { type BindingWriter, newBindingWriter } from "./writes.ts";

/** Dependencies and state shared by all reconciliations of claims and volumes. */
export interface BinderContext extends ControllerContext {
  readonly volumeInformer: SharedInformer<PersistentVolume>;
  readonly claimInformer: SharedInformer<PersistentVolumeClaim>;
  /** Waits for all informers whose objects are read. */
  readonly synced: readonly Source[];
  /** Volumes and claims including this controller's last writes. */
  readonly volumes: Newest<PersistentVolume>;
  readonly claims: Newest<PersistentVolumeClaim>;
  readonly classes: SharedInformer<StorageClass>;
  readonly podsOf: (claim: ObjectKey) => Pod[];
  readonly write: BindingWriter;
  readonly operations: Operations;
  readonly lifecycles: Lifecycles;
  enqueueClaim(claim: ObjectKey): void;
}

export function newBinderContext(base: ControllerContext, queues: Pick<BinderContext, "enqueueClaim">): BinderContext {
  const volumeInformer = base.informers.for<PersistentVolume>(persistentVolumes);
  const claimInformer = base.informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const classes = base.informers.for<StorageClass>(storageClasses);
  const podInformer = base.informers.for<Pod>(pods);
  const [volumes, claims] = [newNewest(volumeInformer), newNewest(claimInformer)];
  countVolumes(base.registry, volumes, claims);
  return {
    ...base,
    ...queues,
    volumeInformer,
    claimInformer,
    synced: [needsSynced(volumeInformer), needsSynced(claimInformer), needsSynced(classes), needsSynced(podInformer)],
    volumes,
    claims,
    classes,
    podsOf: podsByClaim(podInformer),
    write: newBindingWriter(base.client, base.recorder, volumes, claims),
    operations: newOperations(base.clock, base.log),
    lifecycles: newLifecycles(base.registry, base.clock),
  };
}

/** Records an Event on the object. */
export function recordEvent(ctx: BinderContext, object: KubeObject, { type, reason, message }: EventData): void {
  ctx.recorder.event(object, type, reason, message);
}

/** Key of the claim in the volume's claimRef. */
export function claimKeyOf({ spec: { claimRef } }: PersistentVolume): ObjectKey {
  return `${claimRef?.namespace ?? ""}/${claimRef?.name ?? ""}`;
}

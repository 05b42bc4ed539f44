import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { ControllerContext } from "../../controller-context.ts";
import type { BindingWriter } from "./binding.ts";
import type { Notice } from "./decide-claim.ts";
import type { Lifecycles } from "./metrics.ts";
import type { Operations } from "./operations.ts";

/** Dependencies shared by the parts of the binder. */
export interface Room {
  readonly ctx: ControllerContext;
  readonly volumes: Newest<PersistentVolume>;
  readonly claims: Newest<PersistentVolumeClaim>;
  readonly classes: SharedInformer<StorageClass>;
  readonly podsOf: (claim: ObjectKey) => Pod[];
  readonly write: BindingWriter;
  readonly operations: Operations;
  readonly lifecycles: Lifecycles;
}

/** Records an Event on the object. */
export function say({ ctx }: Room, object: KubeObject, { type, reason, message }: Notice): void {
  ctx.recorder.event(object, type, reason, message);
}

/** Key of the claim in the volume's claimRef. */
export function claimKeyOf({ spec: { claimRef } }: PersistentVolume): ObjectKey {
  return `${claimRef?.namespace ?? ""}/${claimRef?.name ?? ""}`;
}

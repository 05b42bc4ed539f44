import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { preResizeCapacity, storageResizer } from "@coxswain/apimachinery/volumes/annotations";
import { requestedSize } from "@coxswain/apimachinery/volumes/matching";
import { migratedPluginOf } from "@coxswain/apimachinery/volumes/migration";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * expand-controller: detects claims that request more than their capacity. No in-tree plugin here can expand volumes: the
 * controller records an Event, and for migrated volumes sets the annotation with the CSI driver's resizer.
 * Source: pkg/controller/volume/expand
 */
export function newExpandController(base: ControllerContext): Controller | undefined {
  if (!base.featureGates.enabled("ExpandPersistentVolumes")) return undefined;
  const ctx: ExpandContext = { ...base, claims: base.informers.for<PersistentVolumeClaim>(persistentVolumeClaims) };
  return defineController(ctx, {
    name: "volume_expand",
    resource: persistentVolumeClaims,
    sources: [
      enqueueBy(ctx.claims, ({ enqueue }) => {
        const enqueueBound = (claim: PersistentVolumeClaim): void => {
          if (claim.status?.phase === "Bound") enqueue(keyOf(claim));
        };
        return {
          added: enqueueBound,
          updated(old, now) {
            const hasGrown = sizeOf(now).cmp(sizeOf(old)) > 0;
            if (hasGrown || requestedSize(now).cmp(requestedSize(old)) > 0) enqueueBound(now);
          },
        };
      }),
    ],
    reconcile,
    workers: 10,
  });
}

interface ExpandContext extends ControllerContext {
  readonly claims: SharedInformer<PersistentVolumeClaim>;
}

async function reconcile(ctx: ExpandContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const claim = ctx.claims.lister.get(key);
  if (claim !== undefined) await expand(ctx, claim, signal);
  return done;
}

async function expand(ctx: ControllerContext, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { client, recorder, featureGates } = ctx;
  const name = claim.spec.volumeName ?? "";
  const volume = await client.get<PersistentVolume>(persistentVolumes, { name }, { signal });
  const { claimRef } = volume.spec;
  if (claimRef?.namespace !== claim.metadata.namespace || claimRef?.uid !== claim.metadata.uid)
    throw new Error(`persistent Volume is not bound to PVC being updated : ${keyOf(claim)}`);
  const wantsMore = requestedSize(claim).cmp(sizeOf(claim)) > 0;
  if (!wantsMore && volume.metadata.annotations?.[preResizeCapacity] === undefined) return;
  const recordEvent = (type: "Normal" | "Warning", message: string): void =>
    recorder.event(claim, type, "ExternalExpanding", message);

  const migrated = migratedPluginOf(volume.spec, featureGates);
  if (migrated === undefined) {
    const type = isKnown(volume) ? "Normal" : "Warning";
    const why = "didn't find a plugin capable of expanding the volume; waiting for an external controller to process this PVC";
    recordEvent(type, `Ignoring the PVC: ${why}.`);
    return;
  }
  recordEvent("Normal", `CSI migration enabled for ${migrated.plugin}; waiting for external resizer to expand the pvc`);
  try {
    await annotateResizer(ctx, claim, migrated.driver, signal);
  } catch (err) {
    const message = `Error setting resizer annotation to pvc ${keyOf(claim)}, with error ${messageOf(err)}`;
    recordEvent("Warning", message);
    throw new Error(message, { cause: err });
  }
}

/** Patches the status subresource, the only one this controller may write. */
async function annotateResizer(
  { client }: ControllerContext,
  { metadata }: PersistentVolumeClaim,
  driver: string,
  signal: AbortSignal,
): Promise<void> {
  if (metadata.annotations?.[storageResizer] === driver) return;
  const { namespace, name = "", resourceVersion } = metadata;
  const body = { metadata: { resourceVersion, annotations: { [storageResizer]: driver } } };
  await client.patch(persistentVolumeClaims, { namespace, name, subresource: "status" }, { type: "merge", body }, { signal });
}

/** Whether the volume type is known, although its plugin leaves expansion to an external controller. */
function isKnown({ spec }: PersistentVolume): boolean {
  return [spec.csi, spec.hostPath, spec.nfs, spec.local, spec.flexVolume].some((source) => source !== undefined);
}

function sizeOf({ status }: PersistentVolumeClaim): Quantity {
  return Quantity.tryParse(String(status?.capacity?.["storage"] ?? "0")) ?? Quantity.fromValue(0);
}

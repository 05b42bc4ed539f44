import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, PersistentVolume, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { podsByNode } from "../../pods/pods-by-node.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";
import { attachedVolumeIds } from "./attachments.ts";
import type { AttachDetachContext } from "./context.ts";
import { isManaged } from "./managed-node.ts";
import { csiFormOf } from "./resolve.ts";
import { idOfSpec } from "./volume.ts";
import { recordDetached } from "./writes.ts";

const keepTerminated = "volumes.kubernetes.io/keep-terminated-pod-volumes";

/** Updates the desired volumes and enqueues affected volumes and nodes on every change. */
export class EventHandlers {
  readonly #ctx: AttachDetachContext;
  readonly #podsOf: (claim: ObjectKey) => Pod[];
  readonly #podsOn: (node: string) => Pod[];

  /** Adds the necessary indexes to the informers. */
  constructor(ctx: AttachDetachContext) {
    this.#ctx = ctx;
    this.#podsOf = podsByClaim(ctx.cache.pods);
    this.#podsOn = podsByNode(ctx.cache.pods);
  }

  register(): void {
    const { cache, desired } = this.#ctx;
    const changed = <T>(handle: (object: T) => void) => ({ added: handle, updated: (_old: T, now: T) => handle(now) });
    cache.pods.addHandler({
      ...changed((pod: Pod) => this.#podChanged(pod)),
      deleted: (last) => this.#enqueueVolumes(desired.forget(keyOf(last))),
    });
    cache.claims.addHandler(changed((claim) => this.#resolvePods(this.#podsOf(keyOf(claim)))));
    const volumeChanged = (volume: PersistentVolume): void => this.#volumeChanged(volume);
    cache.volumes.addHandler({ ...changed(volumeChanged), deleted: volumeChanged });
    cache.attachments.addHandler({
      ...changed((attachment: VolumeAttachment) => this.#attachmentChanged(attachment)),
      deleted: (last) => this.#attachmentDeleted(last),
    });
    cache.nodes.addHandler({
      added: (node) => this.#nodeChanged(node),
      updated: (old, now) => this.#nodeUpdated(old, now),
      deleted: (last) => this.#enqueueVolumes(usedOrAttached(last)),
    });
    const driverChanged = (): void => this.resolveAllPods();
    cache.drivers.addHandler({ ...changed(driverChanged), deleted: driverChanged });
    cache.csiNodes.addHandler(changed((csiNode) => this.#resolvePods(this.#podsOn(keyOf(csiNode)))));
  }

  /** Enqueues all desired and attached volumes. */
  enqueueAll(): void {
    const { cache, desired } = this.#ctx;
    this.#enqueueVolumes(desired.ids());
    for (const attachment of cache.attachments.lister.list()) this.#attachmentChanged(attachment);
  }

  /** Resolves the volumes of all Pods again. */
  resolveAllPods(): void {
    this.#resolvePods(this.#ctx.cache.pods.lister.list());
  }

  #enqueueVolumes(ids: Iterable<VolumeId>): void {
    for (const id of ids) this.#ctx.enqueueVolume(id);
  }

  #resolvePods(pods: readonly Pod[]): void {
    for (const pod of pods) this.#podChanged(pod);
  }

  #podChanged(pod: Pod): void {
    if (!pod.spec.nodeName) return;
    const { cache, desired } = this.#ctx;
    const node = cache.nodes.lister.get(pod.spec.nodeName);
    // Pods of a deleted node keep their desired volumes until the Pods are deleted.
    const attaches = node === undefined ? desired.has(keyOf(pod)) : isManaged(node);
    const isFinished = isTerminated(pod) && node?.metadata.annotations?.[keepTerminated] !== "true";
    this.#enqueueVolumes(desired.set(pod, attaches && !isFinished));
  }

  #attachmentChanged(attachment: VolumeAttachment): void {
    this.#ctx.enqueueNode(attachment.spec.nodeName);
    const id = this.#ctx.attachments.idOf(attachment);
    if (id !== undefined) this.#ctx.enqueueVolume(id);
  }

  #attachmentDeleted(last: VolumeAttachment): void {
    const id = this.#ctx.attachments.idOf(last);
    if (id !== undefined) recordDetached(this.#ctx, id, last.spec.nodeName);
    this.#attachmentChanged(last);
  }

  #volumeChanged(volume: PersistentVolume): void {
    const { attachments, featureGates } = this.#ctx;
    const id = idOfSpec(csiFormOf(volume, featureGates)?.spec);
    if (id !== undefined) {
      this.#ctx.enqueueVolume(id);
      for (const { node } of attachments.of(id, [])) this.#ctx.enqueueNode(node);
    }
    const { claimRef } = volume.spec;
    if (claimRef !== undefined) this.#resolvePods(this.#podsOf(`${claimRef.namespace}/${claimRef.name}`));
  }

  #nodeChanged(node: Node): void {
    this.#ctx.enqueueNode(keyOf(node));
    this.#resolvePods(this.#podsOn(keyOf(node)));
  }

  #nodeUpdated(old: Node, now: Node): void {
    if (isManaged(old) !== isManaged(now)) this.#nodeChanged(now);
    const listed = usedOrAttached(old, now);
    if (old === now || listed.size === 0) return;
    this.#ctx.enqueueNode(keyOf(now));
    this.#enqueueVolumes(listed);
  }
}

function usedOrAttached(...nodes: readonly Node[]): Set<VolumeId> {
  return new Set(nodes.flatMap((node) => [...(node.status?.volumesInUse ?? []), ...attachedVolumeIds(node)]));
}

import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSIDriver, CSINode, VolumeAttachment } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";
import { type Attachments, namesAttached } from "./attachments.ts";
import { isManaged } from "./managed-node.ts";
import { csiFormOf } from "./resolve.ts";
import { idOfSpec } from "./volume.ts";
import type { WantedVolumes } from "./wanted.ts";

/** Informers of the controller. */
export interface Informers {
  readonly pods: SharedInformer<Pod>;
  readonly nodes: SharedInformer<Node>;
  readonly claims: SharedInformer<PersistentVolumeClaim>;
  readonly volumes: SharedInformer<PersistentVolume>;
  readonly drivers: SharedInformer<CSIDriver>;
  readonly csiNodes: SharedInformer<CSINode>;
  readonly attachments: SharedInformer<VolumeAttachment>;
}

export interface WakeOptions {
  readonly informers: Informers;
  readonly wanted: WantedVolumes;
  readonly attachments: Attachments;
  readonly gates: { enabled(name: string): boolean };
  readonly volume: (id: VolumeId) => void;
  readonly node: (name: string) => void;
  /** Called for each deleted attachment, before its volume is enqueued. */
  readonly gone: (id: VolumeId, node: string) => void;
}

/** Enqueues work independently of watch events. */
export interface Wake {
  /** Enqueues all wanted and attached volumes. */
  all(): void;
  /** Resolves the volumes of all Pods again. */
  pods(): void;
}

/** Updates the wanted volumes and enqueues affected volumes and nodes on every change. */
export function wakeOnChanges(options: WakeOptions): Wake {
  const { informers, wanted, attachments, gates, gone } = options;
  const podsOf = podsByClaim(informers.pods);
  informers.pods.addIndex(nodeIndex, ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  const podsOn = (node: string): Pod[] => informers.pods.lister.byIndex(nodeIndex, node);

  const volumes = (ids: Iterable<VolumeId>): void => {
    for (const id of ids) options.volume(id);
  };
  const pod = (changed: Pod): void => {
    if (!changed.spec.nodeName) return;
    const node = informers.nodes.lister.get(changed.spec.nodeName);
    // Pods of a deleted node keep their wanted volumes until the Pods are deleted.
    const mayHave = node === undefined ? wanted.has(keyOf(changed)) : isManaged(node);
    const isOver = isTerminated(changed) && node?.metadata.annotations?.[keepTerminated] !== "true";
    volumes(wanted.set(changed, mayHave && !isOver));
  };
  const pods = (some: readonly Pod[]): void => {
    for (const one of some) pod(one);
  };
  const attachment = (changed: VolumeAttachment): void => {
    options.node(changed.spec.nodeName);
    const id = attachments.idOf(changed);
    if (id !== undefined) options.volume(id);
  };
  const volume = (changed: PersistentVolume): void => {
    const id = idOfSpec(csiFormOf(changed, gates)?.spec);
    if (id !== undefined) {
      options.volume(id);
      for (const { node } of attachments.of(id, [])) options.node(node);
    }
    const { claimRef } = changed.spec;
    if (claimRef !== undefined) pods(podsOf(`${claimRef.namespace}/${claimRef.name}`));
  };
  const node = (changed: Node): void => {
    options.node(keyOf(changed));
    pods(podsOn(keyOf(changed)));
    volumes(namesAttached(changed));
  };
  const nodeUpdated = (old: Node, now: Node): void => {
    if (isManaged(old) !== isManaged(now)) node(now);
    const listed = usedOrAttached(old, now);
    if (old.metadata.resourceVersion === now.metadata.resourceVersion || listed.size === 0) return;
    options.node(keyOf(now));
    volumes(listed);
  };
  const everyPod = (): void => pods(informers.pods.lister.list());

  informers.pods.addHandler({
    added: pod,
    updated: (_, now) => pod(now),
    deleted: (last) => volumes(wanted.forget(keyOf(last))),
  });
  const claim = (changed: PersistentVolumeClaim): void => pods(podsOf(keyOf(changed)));
  informers.claims.addHandler({ added: claim, updated: (_, now) => claim(now) });
  informers.volumes.addHandler({ added: volume, updated: (_, now) => volume(now), deleted: volume });
  informers.attachments.addHandler({
    added: attachment,
    updated: (_, now) => attachment(now),
    deleted(last) {
      const id = attachments.idOf(last);
      if (id !== undefined) gone(id, last.spec.nodeName);
      attachment(last);
    },
  });
  informers.nodes.addHandler({ added: node, updated: nodeUpdated, deleted: (last) => volumes(usedOrAttached(last)) });
  informers.drivers.addHandler({ added: everyPod, updated: everyPod, deleted: everyPod });
  const csiNode = (changed: CSINode): void => pods(podsOn(keyOf(changed)));
  informers.csiNodes.addHandler({ added: csiNode, updated: (_, now) => csiNode(now) });

  return {
    all() {
      volumes(wanted.ids());
      for (const one of informers.attachments.lister.list()) attachment(one);
    },
    pods: everyPod,
  };
}

const nodeIndex = "attachdetach-node";
const keepTerminated = "volumes.kubernetes.io/keep-terminated-pod-volumes";

function usedOrAttached(...nodes: readonly Node[]): Set<VolumeId> {
  return new Set(nodes.flatMap((node) => [...(node.status?.volumesInUse ?? []), ...namesAttached(node)]));
}

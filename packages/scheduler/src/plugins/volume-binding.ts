import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/schema/kinds/resources";
import type { CSIDriver, CSINode, StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { CSIStorageCapacity } from "@coxswain/apimachinery/schema/kinds/storage/v1beta1";
import { bindCompleted, selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { csiNodeAffinity } from "@coxswain/apimachinery/volumes/csi-topology";
import { boundTo, classNameOf, requestedSize, sizeOf, waitsForConsumer } from "@coxswain/apimachinery/volumes/matching";
import { isMigratedOnNode, migratedPluginOf } from "@coxswain/apimachinery/volumes/migration";
import { fitsNode } from "@coxswain/apimachinery/volumes/node-affinity";
import type { PluginArgs, ShapePoint } from "../config/plugin-args.ts";
import { readState } from "../framework/cycle-state.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { failed, unresolvable } from "../framework/status.ts";
import { newAssumeCache, versionOf } from "../volumes/assume-cache.ts";
import { findPodVolumes, type PodVolumes, type StorageView } from "../volumes/pod-volumes.ts";
import type { PluginContext } from "./plugin-context.ts";
import { claimsOf, findClaim } from "./pod-claims.ts";
import { shapeScore } from "./resource-allocation.ts";

const stateKey = "VolumeBinding";
const pollMs = 1_000;

/** Cycle state: the claims of one pod. */
interface BindingState {
  readonly bound: readonly PersistentVolumeClaim[];
  readonly unbound: readonly PersistentVolumeClaim[];
  /** Storage objects; volumes by class are listed once per cycle. */
  readonly view: StorageView;
  readonly byNode: Map<string, PodVolumes>;
  /** Set by reserve: objects that preBind has to write. */
  toWrite?: PodVolumes;
}

/**
 * Restricts pods to nodes where their volumes are reachable or can be provisioned. Before the pod is bound, triggers
 * binding or provisioning of WaitForFirstConsumer claims and waits for the persistent volume controller to bind them.
 * Source: pkg/scheduler/framework/plugins/volumebinding
 */
export function newVolumeBinding(context: PluginContext, { bindTimeoutSeconds, shape }: PluginArgs["VolumeBinding"]): Plugin {
  const { client, informers, gates, clock, metrics } = context;
  const claims = newAssumeCache(informers.for<PersistentVolumeClaim>(persistentVolumeClaims));
  const volumes = newAssumeCache(informers.for<PersistentVolume>(persistentVolumes));
  const classes = informers.for<StorageClass>(storageClasses).lister;
  const checksCapacity = gates.enabled("CSIStorageCapacity");
  const drivers = checksCapacity ? informers.for<CSIDriver>(csiDrivers).lister : undefined;
  const capacities = checksCapacity ? informers.for<CSIStorageCapacity>(csiStorageCapacities).lister : undefined;
  const nodeLister = informers.for<Node>(nodes).lister;
  const podLister = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" }).lister;

  const csiNodeLister = informers.for<CSINode>(csiNodes).lister;
  const asOn = (volume: PersistentVolume, { metadata }: Node): PersistentVolume => {
    const migrated = volume.spec.csi === undefined ? migratedPluginOf(volume.spec, gates) : undefined;
    if (migrated === undefined || !isMigratedOnNode(migrated.plugin, csiNodeLister.get(metadata.name ?? ""))) return volume;
    const { nodeAffinity: _, ...rest } = volume.spec;
    const nodeAffinity = csiNodeAffinity(volume, migrated.plugin);
    return { ...volume, spec: { ...rest, ...(nodeAffinity && { nodeAffinity }) } };
  };

  const newView = (): StorageView => {
    let byClass: Map<string, PersistentVolume[]> | undefined;
    return {
      volume: (name) => volumes.get(name),
      asOn,
      volumesOf(className) {
        byClass ??= Map.groupBy(volumes.list(), classNameOf);
        return byClass.get(className) ?? [];
      },
      storageClass: (name) => classes.get(name),
      driver: (name) => drivers?.get(name),
      capacities: () => capacities?.list() ?? [],
      checksCapacity,
    };
  };

  /** @throws Error for a missing, lost or terminating claim, which makes the pod unschedulable on all nodes */
  const claimsFor = (pod: Pod): PersistentVolumeClaim[] =>
    claimsOf(pod).map((use) => {
      const claim = findClaim(claims, pod, use);
      if (claim === undefined) {
        throw new Error(
          use.ephemeral
            ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${use.name}"`
            : `persistentvolumeclaim "${use.name}" not found`,
        );
      }
      const { metadata, spec, status } = claim;
      if (status?.phase === "Lost")
        throw new Error(
          `persistentvolumeclaim "${metadata.name}" bound to non-existent persistentvolume "${spec.volumeName ?? ""}"`,
        );
      if (metadata.deletionTimestamp) throw new Error(`persistentvolumeclaim "${metadata.name}" is being deleted`);
      return claim;
    });

  const write = async ({ bindings, provisions }: PodVolumes): Promise<PodVolumes> => {
    const written: { volume: PersistentVolume; claim: PersistentVolumeClaim }[] = [];
    for (const { volume, claim } of bindings) written.push({ volume: await client.update(persistentVolumes, volume), claim });
    const asked: PersistentVolumeClaim[] = [];
    for (const claim of provisions) asked.push(await client.update(persistentVolumeClaims, claim));
    return { bindings: written, provisions: asked };
  };

  /** @returns whether the controller has bound all claims. @throws Error when binding cannot succeed any more */
  const areBound = (pod: Pod, nodeName: string, { bindings, provisions }: PodVolumes): boolean => {
    const node = nodeLister.get(nodeName);
    if (node === undefined) throw new Error(`failed to get node ${JSON.stringify(nodeName)}: node "${nodeName}" not found`);
    if (podLister.get(keyOf(pod)) === undefined)
      throw new Error(`pod does not exist any more: pod "${pod.metadata.name}" not found`);
    for (const { volume: sent, claim: of } of bindings) {
      const name = sent.metadata.name ?? "";
      const volume = volumes.stored(name);
      const claim = claims.stored(keyOf(of));
      if (volume === undefined) throw new Error(`failed to check binding: could not find v1.PersistentVolume "${name}"`);
      if (claim === undefined) throw new Error(`failed to check binding: could not find v1.PersistentVolumeClaim "${keyOf(of)}"`);
      if (versionOf(sent) > versionOf(volume)) return false;
      checkAffinity(asOn(volume, node), node);
      if (!volume.spec.claimRef?.uid) throw new Error(`ClaimRef got reset for pv ${JSON.stringify(name)}`);
      if (!isFullyBound(claim)) return false;
    }
    for (const sent of provisions) {
      const claim = claims.stored(keyOf(sent));
      const key = JSON.stringify(sent.metadata.name ?? "");
      if (claim === undefined)
        throw new Error(`failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "${keyOf(sent)}"`);
      if (versionOf(sent) > versionOf(claim)) return false;
      if (claim.metadata.annotations === undefined) throw new Error(`selectedNode annotation reset for PVC ${key}`);
      // A provisioner removes the annotation when it fails, so that the pod is rescheduled to another node.
      if (claim.metadata.annotations[selectedNode] !== nodeName) throw new Error(`provisioning failed for PVC ${key}`);
      const { volumeName } = claim.spec;
      if (volumeName) {
        const volume = volumes.stored(volumeName);
        if (volume === undefined) return false;
        checkAffinity(asOn(volume, node), node);
      }
      if (!isFullyBound(claim)) return false;
    }
    return true;
  };

  return {
    name: "VolumeBinding",
    // Scores only with the feature gate VolumeCapacityPriority, but may always be enabled for scoring.
    idleAt: ["score"],
    ...(shape !== undefined && {
      score(state, _, { name }) {
        if (!state.has(stateKey)) return 0;
        return capacityScore(readState<BindingState>(state, stateKey).byNode.get(name)?.bindings ?? [], shape);
      },
    }),
    wakeUpOn: [
      "StorageClass/Add",
      "StorageClass/Update",
      "PersistentVolumeClaim/Add",
      "PersistentVolumeClaim/Update",
      "PersistentVolume/Add",
      "PersistentVolume/Update",
      "Node/Add",
      "Node/UpdateLabel",
      "CSINode/Add",
      "CSINode/Update",
      ...(checksCapacity
        ? (["CSIDriver/Add", "CSIDriver/Update", "CSIStorageCapacity/Add", "CSIStorageCapacity/Update"] as const)
        : []),
    ],

    preFilter(state, { pod }) {
      let all: PersistentVolumeClaim[];
      try {
        all = claimsFor(pod);
      } catch (err) {
        return unresolvable((err as Error).message);
      }
      if (all.length === 0) return undefined;
      try {
        const bound = all.filter(isFullyBound);
        const open = all.filter((claim) => !isFullyBound(claim));
        const unbound = open.filter((claim) => !claim.spec.volumeName && waitsForConsumer(classes.get(classNameOf(claim))));
        if (unbound.length < open.length) return unresolvable("pod has unbound immediate PersistentVolumeClaims");
        state.set(stateKey, { bound, unbound, view: newView(), byNode: new Map() } satisfies BindingState);
        return undefined;
      } catch (err) {
        return failed(err);
      }
    },
    filter(state, _, { node, name }) {
      if (!state.has(stateKey)) return undefined;
      const { bound, unbound, view, byNode } = readState<BindingState>(state, stateKey);
      try {
        const found = findPodVolumes(bound, unbound, node, view);
        if (Array.isArray(found)) return unresolvable(...found);
        byNode.set(name, found as PodVolumes);
        return undefined;
      } catch (err) {
        metrics.volumeStageFailed("predicate");
        return failed(err);
      }
    },
    reserve(state, _, nodeName) {
      if (!state.has(stateKey)) return undefined;
      const own = readState<BindingState>(state, stateKey);
      const found = own.byNode.get(nodeName);
      if (found === undefined || own.unbound.length === 0) return undefined;
      const bindings = found.bindings.map(({ volume, claim }) => ({ volume: boundTo(volume, claim) ?? volume, claim }));
      const provisions = found.provisions.map((claim) => selecting(claim, nodeName));
      own.toWrite = { bindings, provisions };
      try {
        for (const { volume } of bindings) volumes.assume(volume);
        for (const claim of provisions) claims.assume(claim);
        return undefined;
      } catch (err) {
        metrics.volumeStageFailed("assume");
        return failed(err);
      }
    },
    unreserve(state) {
      if (!state.has(stateKey)) return;
      const { toWrite } = readState<BindingState>(state, stateKey);
      for (const { volume } of toWrite?.bindings ?? []) volumes.restore(volume.metadata.name ?? "");
      for (const claim of toWrite?.provisions ?? []) claims.restore(keyOf(claim));
    },
    async preBind(state, { pod }, nodeName) {
      if (!state.has(stateKey)) return undefined;
      const { toWrite } = readState<BindingState>(state, stateKey);
      if (toWrite === undefined) return undefined;
      try {
        const written = await write(toWrite);
        for (let waitedMs = 0; waitedMs < bindTimeoutSeconds * 1_000; waitedMs += pollMs) {
          await clock.sleep(pollMs);
          if (areBound(pod, nodeName, written)) return undefined;
        }
        throw new Error("timed out waiting for the condition");
      } catch (err) {
        metrics.volumeStageFailed("bind");
        return failed(new Error(`binding volumes: ${(err as Error).message}`, { cause: err }));
      }
    },
  };
}

/** Score from 0 to 100 by the requested share of the matched volumes' capacity, averaged over classes. Source: scorer.go */
function capacityScore(bindings: PodVolumes["bindings"], shape: readonly ShapePoint[]): number {
  const byClass = [...Map.groupBy(bindings, ({ volume }) => classNameOf(volume)).values()];
  if (byClass.length === 0) return 0;
  const bytes = (amounts: readonly Quantity[]): number => amounts.reduce((sum, amount) => sum + amount.value(), 0);
  const scores = byClass.map((taken) => {
    const requested = bytes(taken.map(({ claim }) => requestedSize(claim)));
    return shapeScore(shape, requested, bytes(taken.map(({ volume }) => sizeOf(volume))));
  });
  return Math.round(scores.reduce((sum, score) => sum + score, 0) / scores.length);
}

const isFullyBound = ({ metadata, spec }: PersistentVolumeClaim): boolean =>
  Boolean(spec.volumeName) && metadata.annotations?.[bindCompleted] !== undefined;

const selecting = (claim: PersistentVolumeClaim, nodeName: string): PersistentVolumeClaim => ({
  ...claim,
  metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, [selectedNode]: nodeName } },
});

function checkAffinity(volume: PersistentVolume, { metadata }: Node): void {
  if (fitsNode(volume, metadata.labels ?? {})) return;
  throw new Error(
    `pv ${JSON.stringify(volume.metadata.name)} node affinity doesn't match node ${JSON.stringify(metadata.name)}: no matching NodeSelectorTerms`,
  );
}

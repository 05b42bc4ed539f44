import type { Client } from "@coxswain/apimachinery/client/client";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSIDriver, CSINode, StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { CSIStorageCapacity } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1beta1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { bindCompleted, selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { csiNodeAffinity } from "@coxswain/apimachinery/volumes/csi-topology";
import { boundTo, classNameOf, requestedSize, sizeOf, waitsForConsumer } from "@coxswain/apimachinery/volumes/matching";
import { isMigratedOnNode, migratedPluginOf } from "@coxswain/apimachinery/volumes/migration";
import { fitsNode } from "@coxswain/apimachinery/volumes/node-affinity";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { PluginArgs, ShapePoint } from "../config/plugin-args.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { readState } from "../framework/cycle-state.ts";
import type { Plugin } from "../framework/extension-points.ts";
import type { Status } from "../framework/status.ts";
import { failed, unresolvable } from "../framework/status.ts";
import type { SchedulerMetrics } from "../metrics.ts";
import type { AssumeCache } from "../volumes/assume-cache.ts";
import { newAssumeCache, versionOf } from "../volumes/assume-cache.ts";
import { type ClassVolumes, classVolumesOf, findPodVolumes, type PodVolumes, type StorageView } from "../volumes/pod-volumes.ts";
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
export function newVolumeBinding(context: PluginContext, options: PluginArgs["VolumeBinding"]): Plugin {
  return new VolumeBindingPlugin(context, options);
}

class VolumeBindingPlugin implements Plugin {
  readonly name = "VolumeBinding";
  // Scores only with the feature gate VolumeCapacityPriority, but may always be enabled for scoring.
  readonly idleAt = ["score"] as const;
  readonly score?: NonNullable<Plugin["score"]>;
  readonly wakeUpOn: Plugin["wakeUpOn"];
  readonly #options: PluginArgs["VolumeBinding"];
  readonly #client: Client;
  readonly #gates: Pick<FeatureGates, "enabled">;
  readonly #clock: Clock;
  readonly #metrics: SchedulerMetrics;
  readonly #claims: AssumeCache<PersistentVolumeClaim>;
  readonly #volumes: AssumeCache<PersistentVolume>;
  readonly #classes: Lister<StorageClass>;
  readonly #checksCapacity: boolean;
  readonly #drivers: Lister<CSIDriver> | undefined;
  readonly #capacities: Lister<CSIStorageCapacity> | undefined;
  readonly #nodeLister: Lister<Node>;
  readonly #podLister: Lister<Pod>;
  readonly #csiNodeLister: Lister<CSINode>;

  constructor(context: PluginContext, options: PluginArgs["VolumeBinding"]) {
    this.#options = options;
    const { client, informers, gates, clock, metrics } = context;
    this.#client = client;
    this.#gates = gates;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#claims = newAssumeCache(informers.for<PersistentVolumeClaim>(persistentVolumeClaims));
    this.#volumes = newAssumeCache(informers.for<PersistentVolume>(persistentVolumes));
    this.#classes = informers.for<StorageClass>(storageClasses).lister;
    this.#checksCapacity = this.#gates.enabled("CSIStorageCapacity");
    this.#drivers = this.#checksCapacity ? informers.for<CSIDriver>(csiDrivers).lister : undefined;
    this.#capacities = this.#checksCapacity ? informers.for<CSIStorageCapacity>(csiStorageCapacities).lister : undefined;
    this.#nodeLister = informers.for<Node>(nodes).lister;
    this.#podLister = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" }).lister;
    this.#csiNodeLister = informers.for<CSINode>(csiNodes).lister;
    const { shape } = options;
    if (shape !== undefined) {
      this.score = (state, _, { name }) => {
        if (!state.has(stateKey)) return 0;
        return capacityScore(readState<BindingState>(state, stateKey).byNode.get(name)?.bindings ?? [], shape);
      };
    }
    this.wakeUpOn = [
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
      ...(this.#checksCapacity
        ? (["CSIDriver/Add", "CSIDriver/Update", "CSIStorageCapacity/Add", "CSIStorageCapacity/Update"] as const)
        : []),
    ];
  }

  preFilter(state: CycleState, { pod }: PodInfo): Status | undefined {
    let all: PersistentVolumeClaim[];
    try {
      all = this.#claimsFor(pod);
    } catch (err) {
      return unresolvable(messageOf(err));
    }
    if (all.length === 0) return undefined;
    try {
      const bound = all.filter(isFullyBound);
      const open = all.filter((claim) => !isFullyBound(claim));
      const unbound = open.filter((claim) => !claim.spec.volumeName && waitsForConsumer(this.#classes.get(classNameOf(claim))));
      if (unbound.length < open.length) return unresolvable("pod has unbound immediate PersistentVolumeClaims");
      state.set(stateKey, { bound, unbound, view: this.#newView(), byNode: new Map() } satisfies BindingState);
      return undefined;
    } catch (err) {
      return failed(err);
    }
  }

  mayRefuse(state: CycleState): boolean {
    return state.has(stateKey);
  }

  filter(state: CycleState, _: PodInfo, { node, name }: NodeInfo): Status | undefined {
    if (!state.has(stateKey)) return undefined;
    const { bound, unbound, view, byNode } = readState<BindingState>(state, stateKey);
    try {
      const found = findPodVolumes(bound, unbound, node, view);
      if (Array.isArray(found)) return unresolvable(...found);
      byNode.set(name, found);
      return undefined;
    } catch (err) {
      this.#metrics.volumeStageFailed("predicate");
      return failed(err);
    }
  }

  reserve(state: CycleState, _: PodInfo, nodeName: string): Status | undefined {
    if (!state.has(stateKey)) return undefined;
    const own = readState<BindingState>(state, stateKey);
    const found = own.byNode.get(nodeName);
    if (found === undefined || own.unbound.length === 0) return undefined;
    const bindings = found.bindings.map(({ volume, claim }) => ({ volume: boundTo(volume, claim) ?? volume, claim }));
    const provisions = found.provisions.map((claim) => selecting(claim, nodeName));
    own.toWrite = { bindings, provisions };
    try {
      for (const { volume } of bindings) this.#volumes.assume(volume);
      for (const claim of provisions) this.#claims.assume(claim);
      return undefined;
    } catch (err) {
      this.#metrics.volumeStageFailed("assume");
      return failed(err);
    }
  }

  unreserve(state: CycleState): void {
    if (!state.has(stateKey)) return;
    const { toWrite } = readState<BindingState>(state, stateKey);
    for (const { volume } of toWrite?.bindings ?? []) this.#volumes.restore(volume.metadata.name ?? "");
    for (const claim of toWrite?.provisions ?? []) this.#claims.restore(keyOf(claim));
  }

  async preBind(state: CycleState, { pod }: PodInfo, nodeName: string): Promise<Status | undefined> {
    const { bindTimeoutSeconds } = this.#options;
    if (!state.has(stateKey)) return undefined;
    const { toWrite } = readState<BindingState>(state, stateKey);
    if (toWrite === undefined) return undefined;
    try {
      const written = await this.#write(toWrite);
      for (let waitedMs = 0; waitedMs < bindTimeoutSeconds * 1_000; waitedMs += pollMs) {
        await this.#clock.sleep(pollMs);
        if (this.#areBound(pod, nodeName, written)) return undefined;
      }
      throw new Error("timed out waiting for the condition");
    } catch (err) {
      this.#metrics.volumeStageFailed("bind");
      return failed(new Error(`binding volumes: ${messageOf(err)}`, { cause: err }));
    }
  }

  #asOn(volume: PersistentVolume, { metadata }: Node): PersistentVolume {
    const migrated = volume.spec.csi === undefined ? migratedPluginOf(volume.spec, this.#gates) : undefined;
    if (migrated === undefined || !isMigratedOnNode(migrated.plugin, this.#csiNodeLister.get(metadata.name ?? ""))) return volume;
    const { nodeAffinity: _, ...rest } = volume.spec;
    const nodeAffinity = csiNodeAffinity(volume, migrated.plugin);
    return { ...volume, spec: { ...rest, ...(nodeAffinity && { nodeAffinity }) } };
  }

  #newView(): StorageView {
    let byClass: Map<string, PersistentVolume[]> | undefined;
    const inOrder = new Map<string, ClassVolumes>();
    return {
      volume: (name) => this.#volumes.get(name),
      asOn: (volume, node) => this.#asOn(volume, node),
      volumesOf: (className) => {
        byClass ??= Map.groupBy(this.#volumes.list(), classNameOf);
        const own = byClass.get(className) ?? [];
        return inOrder.getOrInsertComputed(className, () => classVolumesOf(own));
      },
      storageClass: (name) => this.#classes.get(name),
      driver: (name) => this.#drivers?.get(name),
      capacities: () => this.#capacities?.list() ?? [],
      checksCapacity: this.#checksCapacity,
    };
  }

  /** @throws Error for a missing, lost or terminating claim, which makes the pod unschedulable on all nodes */
  #claimsFor(pod: Pod): PersistentVolumeClaim[] {
    const found = claimsOf(pod).map((use) => {
      const claim = findClaim(this.#claims, pod, use);
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
    return [...new Set(found)]; // volumes of a pod may share a claim, tens of thousands of them
  }

  async #write({ bindings, provisions }: PodVolumes): Promise<PodVolumes> {
    const written: { volume: PersistentVolume; claim: PersistentVolumeClaim }[] = [];
    for (const { volume, claim } of bindings)
      written.push({ volume: await this.#client.update(persistentVolumes, volume), claim });
    const requests: PersistentVolumeClaim[] = [];
    for (const claim of provisions) requests.push(await this.#client.update(persistentVolumeClaims, claim));
    return { bindings: written, provisions: requests };
  }

  /** @returns whether the controller has bound all claims. @throws Error when binding cannot succeed any more */
  #areBound(pod: Pod, nodeName: string, { bindings, provisions }: PodVolumes): boolean {
    const node = this.#nodeLister.get(nodeName);
    if (node === undefined) throw new Error(`failed to get node ${JSON.stringify(nodeName)}: node "${nodeName}" not found`);
    if (this.#podLister.get(keyOf(pod)) === undefined)
      throw new Error(`pod does not exist any more: pod "${pod.metadata.name}" not found`);
    for (const { volume: sent, claim: of } of bindings) {
      const name = sent.metadata.name ?? "";
      const volume = this.#volumes.stored(name);
      const claim = this.#claims.stored(keyOf(of));
      if (volume === undefined) throw new Error(`failed to check binding: could not find v1.PersistentVolume "${name}"`);
      if (claim === undefined) throw new Error(`failed to check binding: could not find v1.PersistentVolumeClaim "${keyOf(of)}"`);
      if (versionOf(sent) > versionOf(volume)) return false;
      checkAffinity(this.#asOn(volume, node), node);
      if (!volume.spec.claimRef?.uid) throw new Error(`ClaimRef got reset for pv ${JSON.stringify(name)}`);
      if (!isFullyBound(claim)) return false;
    }
    for (const sent of provisions) {
      const claim = this.#claims.stored(keyOf(sent));
      const key = JSON.stringify(sent.metadata.name ?? "");
      if (claim === undefined)
        throw new Error(`failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "${keyOf(sent)}"`);
      if (versionOf(sent) > versionOf(claim)) return false;
      if (claim.metadata.annotations === undefined) throw new Error(`selectedNode annotation reset for PVC ${key}`);
      // A provisioner removes the annotation when it fails, so that the pod is rescheduled to another node.
      if (claim.metadata.annotations[selectedNode] !== nodeName) throw new Error(`provisioning failed for PVC ${key}`);
      const { volumeName } = claim.spec;
      if (volumeName) {
        const volume = this.#volumes.stored(volumeName);
        if (volume === undefined) return false;
        checkAffinity(this.#asOn(volume, node), node);
      }
      if (!isFullyBound(claim)) return false;
    }
    return true;
  }
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

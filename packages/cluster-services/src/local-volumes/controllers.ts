import type { Client } from "@coxswain/apimachinery/client/client";
import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { enqueueMapped, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import { isServerAway, retryOnReturn } from "../server-away.ts";
import { hostnameOf, newStorageClass, newVolume, planClaim, planVolume } from "./decisions.ts";
import type { Folders } from "./folders.ts";
import { className } from "./names.ts";

export interface LocalVolumesOptions {
  readonly nodeName: string;
  readonly folders: Pick<Folders, "root" | "create" | "remove" | "space">;
  readonly client: Client;
  readonly reconnection: Reconnection;
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
}

const workers = 2;

/** Makes volumes for claims whose pods were scheduled to this node. */
export function newProvisioner(options: LocalVolumesOptions): Controller {
  const { nodeName, folders, client, reconnection, informers, recorder, log, clock } = options;
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const classes = informers.for<StorageClass>(storageClasses);
  const nodeInformer = informers.for<Node>(nodes);

  const provision = async (claim: PersistentVolumeClaim, of: StorageClass, name: string, signal: AbortSignal): Promise<void> => {
    const node = nodeInformer.lister.get(nodeName);
    if (node === undefined) throw new Error(`there is no Node ${nodeName}`);
    const path = await folders.create(name);
    try {
      await client.create<PersistentVolume>(persistentVolumes, newVolume(claim, of, { node, name, path }), { signal });
    } catch (err) {
      if (!isAlreadyExists(err)) throw err; // made by an earlier attempt: its name contains the claim's uid
    }
  };
  const reconcile = async (key: string, signal: AbortSignal): Promise<Result> => {
    const claim = claims.lister.get(key);
    if (claim === undefined) return done;
    const storageClass = classes.lister.get(classNameOf(claim));
    const plan = planClaim(claim, storageClass, nodeName);
    if (plan.action === "none" || storageClass === undefined) return done;
    const failed = (reason: string): void =>
      recorder.event(
        claim,
        "Warning",
        "ProvisioningFailed",
        `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${reason}`,
      );
    if (plan.action === "refuse") {
      failed(plan.reason);
      return done;
    }
    try {
      await provision(claim, storageClass, plan.volumeName, signal);
    } catch (err) {
      if (!signal.aborted && !isServerAway(err)) failed(causesOf(err));
      throw err;
    }
    recorder.event(claim, "Normal", "ProvisioningSucceeded", `Successfully provisioned volume ${plan.volumeName}`);
    const space = await folders.space();
    const requested = Quantity.tryParse(claim.spec?.resources?.requests?.["storage"] ?? "0")?.value() ?? 0;
    if (requested > space.freeBytes)
      recorder.event(claim, "Warning", "LittleSpace", littleSpace(nodeName, requested, space.freeBytes));
    return done;
  };
  // The cache may show a claim before its class.
  const claimsOf = ({ metadata }: StorageClass): string[] =>
    claims.lister.list().flatMap((claim) => (classNameOf(claim) === metadata.name ? [keyOf(claim)] : []));
  return newController({
    name: "local-volumes-provisioner",
    sources: [enqueueSelf(claims), enqueueMapped(classes, claimsOf), needsSynced(nodeInformer)],
    reconcile: retryOnReturn(reconnection, reconcile),
    ...{ workers, log, clock },
  });
}

function littleSpace(nodeName: string, requested: number, free: number): string {
  return `the claim asks for ${inGi(requested)}, and the disk of node ${nodeName} has ${inGi(free)} free; a local volume has no separate size limit`;
}

export const inGi = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)}Gi`;

/** Deletes volumes of this node whose claims are gone. */
export function newDeleter(options: LocalVolumesOptions): Controller {
  const { nodeName, folders, client, reconnection, informers, recorder, log, clock } = options;
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const volumes = informers.for<PersistentVolume>(persistentVolumes);
  const nodeInformer = informers.for<Node>(nodes);
  const reconcile = async (key: string, signal: AbortSignal): Promise<Result> => {
    const volume = volumes.lister.get(key);
    const node = nodeInformer.lister.get(nodeName);
    if (volume === undefined || node === undefined) return done;
    const { namespace, name } = volume.spec?.claimRef ?? {};
    const claimUid = claims.lister.get(`${namespace}/${name}`)?.metadata.uid;
    const plan = planVolume(volume, { hostname: hostnameOf(node), root: folders.root, claimUid });
    if (plan.action === "none") return done;
    if (plan.action === "refuse") {
      recorder.event(volume, "Warning", "VolumeFailedDelete", plan.reason);
      return done;
    }
    try {
      await folders.remove(plan.name);
    } catch (err) {
      recorder.event(volume, "Warning", "VolumeFailedDelete", causesOf(err));
      throw err;
    }
    const preconditions = { uid: volume.metadata.uid ?? "" };
    await client.delete(persistentVolumes, { name: plan.name }, { preconditions, signal }).catch((err: unknown) => {
      if (!isNotFound(err)) throw err;
    });
    log.info("deleted a volume", { volume: plan.name, claim: `${namespace}/${name}` });
    return done;
  };
  const byClaim = (claim: PersistentVolumeClaim): string[] => (claim.spec?.volumeName ? [claim.spec.volumeName] : []);
  return newController({
    name: "local-volumes-deleter",
    sources: [enqueueSelf(volumes), enqueueMapped(claims, byClaim), needsSynced(nodeInformer)],
    reconcile: retryOnReturn(reconnection, reconcile),
    ...{ workers, log, clock },
  });
}

/** Makes the StorageClass `local` when there is none of that name. */
export function newClassKeeper({
  client,
  reconnection,
  informers,
  log,
  clock,
}: Omit<LocalVolumesOptions, "folders" | "nodeName" | "recorder">): Controller {
  const classes = informers.for<StorageClass>(storageClasses);
  const controller = newController({
    name: "local-volumes-class",
    sources: [enqueueMapped(classes, ({ metadata }) => (metadata.name === className ? [className] : []))],
    reconcile: retryOnReturn(reconnection, async (_, signal) => {
      if (classes.lister.get(className) !== undefined) return done;
      await client
        .create<StorageClass>(storageClasses, newStorageClass(classes.lister.list()), { signal })
        .catch((err: unknown) => {
          if (!isAlreadyExists(err)) throw err; // another node was faster
        });
      return done;
    }),
    log,
    clock,
  });
  controller.enqueue(className);
  return controller;
}

import { referenceTo } from "@coxswain/apimachinery/controller/event-recorder";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, persistentVolumes, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import {
  betaStorageProvisioner,
  boundByController,
  provisionedBy,
  selectedNode,
  storageProvisioner,
} from "@coxswain/apimachinery/volumes/annotations";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import { driverOf } from "@coxswain/apimachinery/volumes/migration";
import { newOperations, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { operationMetrics } from "../../volumes/operation-metrics.ts";
import { type BinderContext, recordEvent } from "./context.ts";
import { withDeletionFinalizers } from "./finalizers.ts";
import { createFolder, deleteFolder } from "./host-path.ts";
import { withMigration } from "./migration.ts";
import { hostPathPlugin, type Plugin, provisionerNamed } from "./plugins.ts";

/**
 * Starts provisioning a volume for a claim: sets the annotations that request it from the external provisioner of the
 * storage class, or creates a local hostPath volume.
 * Source: pv_controller.go provisionClaim
 */
export function provision(ctx: BinderContext, claim: PersistentVolumeClaim): void {
  const { lifecycles, operations } = ctx;
  if (!ctx.config.volumes.dynamicProvisioning) return;
  let storageClass: StorageClass;
  let plugin: Plugin | undefined;
  try {
    storageClass = classOf(ctx, claim);
    plugin = driverOf(storageClass.provisioner, ctx.featureGates) ? undefined : provisionerNamed(storageClass.provisioner);
  } catch (err) {
    fail(ctx, claim, messageOf(err));
    return;
  }
  operations.start(`provision-${keyOf(claim)}[${claim.metadata.uid}]`, async (signal) => {
    const provisioner = driverOf(storageClass.provisioner, ctx.featureGates) ?? storageClass.provisioner;
    lifecycles.begin(keyOf(claim), plugin?.name ?? provisioner, "provision");
    try {
      if (plugin === undefined) await requestProvisioning(ctx, claim, provisioner, signal);
      else await provisionHostPath(ctx, claim, storageClass, signal);
    } catch (err) {
      lifecycles.fail(keyOf(claim));
      throw err;
    }
  });
}

function classOf(ctx: BinderContext, claim: PersistentVolumeClaim): StorageClass {
  const { classes } = ctx;
  const storageClass = classes.lister.get(classNameOf(claim));
  // The resource name that client-go's listers use in this error.
  if (storageClass === undefined) throw notFound({ ...storageClasses, resource: "storageclass" }, classNameOf(claim));
  return storageClass;
}

function fail(ctx: BinderContext, claim: PersistentVolumeClaim, message: string): void {
  recordEvent(ctx, claim, { type: "Warning", reason: "ProvisioningFailed", message });
}

async function requestProvisioning(
  ctx: BinderContext,
  claim: PersistentVolumeClaim,
  provisioner: string,
  signal: AbortSignal,
): Promise<void> {
  const updated = await annotateProvisioner(ctx, claim, provisioner, signal);
  const message = `waiting for a volume to be created, either by external provisioner ${goQuote(provisioner)} or manually created by system administrator`;
  recordEvent(ctx, updated, { type: "Normal", reason: "ExternalProvisioning", message });
}

async function annotateProvisioner(
  ctx: BinderContext,
  claim: PersistentVolumeClaim,
  provisioner: string,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const { write } = ctx;
  if (claim.metadata.annotations?.[storageProvisioner] === provisioner) return claim;
  const annotations = {
    ...claim.metadata.annotations,
    [betaStorageProvisioner]: provisioner,
    [storageProvisioner]: provisioner,
  };
  const named = { ...claim, metadata: { ...claim.metadata, annotations } };
  return write.updateClaim(withMigration(named, "claim", ctx.featureGates) ?? named, signal);
}

async function provisionHostPath(
  ctx: BinderContext,
  unnamed: PersistentVolumeClaim,
  storageClass: StorageClass,
  signal: AbortSignal,
): Promise<void> {
  const claim = await annotateProvisioner(ctx, unnamed, storageClass.provisioner, signal);
  const name = `pvc-${claim.metadata.uid}`;
  if (await exists(ctx, name, signal)) return;
  const { mountOptions = [] } = storageClass;
  const className = goQuote(storageClass.metadata.name ?? "");
  if (mountOptions.length > 0) {
    const options = `[${mountOptions.join(" ")}]`;
    fail(
      ctx,
      claim,
      `Mount options are not supported by the provisioner but StorageClass ${className} has mount options ${options}`,
    );
    throw new Error(`provisioner ${goQuote(hostPathPlugin)} doesn't support mount options`);
  }
  if (!ctx.config.volumes.hostPathProvisioner) {
    const disabled = `provisioning in volume plugin ${goQuote(hostPathPlugin)} is disabled`;
    fail(ctx, claim, `Failed to create provisioner: ${disabled}`);
    throw new Error(disabled);
  }
  await checkSelectedNode(ctx, claim, signal);
  let path: string;
  try {
    path = await observed(
      newOperations(operationMetrics(ctx.registry).duration, ctx.clock)(hostPathPlugin, "volume_provision"),
      () => {
        if (claim.spec.volumeMode === "Block") throw new Error(`${hostPathPlugin} does not support block volume provisioning`);
        return createFolder();
      },
    );
  } catch (err) {
    await clearSelectedNode(ctx, claim, signal);
    fail(ctx, claim, `Failed to provision volume with StorageClass ${className}: ${messageOf(err)}`);
    throw err;
  }
  const unfinalized = hostPathVolume(name, path, claim, storageClass);
  const volume = withDeletionFinalizers(unfinalized, ctx.featureGates) ?? unfinalized;
  try {
    await save(ctx, volume, signal);
  } catch (err) {
    fail(ctx, claim, `Error creating provisioned PV object for claim ${keyOf(claim)}: ${messageOf(err)}. Deleting the volume.`);
    try {
      await deleteFolder(path);
    } catch (cause) {
      const message = `Error cleaning provisioned volume for claim ${keyOf(claim)}: ${messageOf(cause)}. Please delete manually.`;
      recordEvent(ctx, claim, { type: "Warning", reason: "ProvisioningCleanupFailed", message });
    }
    return;
  }
  const message = `Successfully provisioned volume ${name} using ${hostPathPlugin}`;
  recordEvent(ctx, claim, { type: "Normal", reason: "ProvisioningSucceeded", message });
}

async function exists(ctx: BinderContext, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await ctx.client.get(persistentVolumes, { name }, { signal });
    return true;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

async function checkSelectedNode(ctx: BinderContext, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const name = claim.metadata.annotations?.[selectedNode];
  if (name === undefined) return;
  try {
    await ctx.client.get(nodes, { name }, { signal });
  } catch (err) {
    fail(ctx, claim, `Failed to get target node: ${messageOf(err)}`);
    throw err;
  }
}

/** Removes the selected-node annotation so that the scheduler selects a node again. */
async function clearSelectedNode(ctx: BinderContext, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { write } = ctx;
  const { [selectedNode]: chosen, ...annotations } = claim.metadata.annotations ?? {};
  if (chosen === undefined) return;
  try {
    await write.updateClaim({ ...claim, metadata: { ...claim.metadata, annotations } }, signal);
  } catch (err) {
    ctx.log.error("cannot remove the selected-node annotation", err, { claim: keyOf(claim) });
  }
}

function hostPathVolume(name: string, path: string, claim: PersistentVolumeClaim, storageClass: StorageClass): PersistentVolume {
  const { accessModes = [], resources } = claim.spec;
  return {
    metadata: {
      name,
      annotations: {
        "kubernetes.io/createdby": "hostpath-dynamic-provisioner",
        [boundByController]: "yes",
        [provisionedBy]: hostPathPlugin,
      },
    },
    spec: {
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? "Delete",
      accessModes: accessModes.length > 0 ? accessModes : ["ReadWriteOnce"],
      capacity: { storage: resources?.requests?.["storage"] ?? "0" },
      hostPath: { path },
      claimRef: referenceTo(claim),
      storageClassName: classNameOf(claim),
    },
  };
}

const tries = 5;
const betweenTriesMs = 10_000;

/**
 * Creates the PersistentVolume, with retries.
 * @throws the last failure
 */
async function save(ctx: BinderContext, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  for (let left = tries; ; left--) {
    try {
      await ctx.client.create(persistentVolumes, volume, { signal });
      return;
    } catch (err) {
      if (isAlreadyExists(err)) return;
      if (left === 1) throw err;
    }
    await ctx.clock.sleep(betweenTriesMs, signal);
  }
}

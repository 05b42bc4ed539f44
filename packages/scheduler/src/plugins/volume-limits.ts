import { createHash } from "node:crypto";
import { generateName } from "@coxswain/apimachinery/objects/meta/names";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiNodes,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSINode, StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { translated } from "@coxswain/apimachinery/volumes/csi-translation";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import type { NodeInfo } from "../cache/node-info.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { failed, unschedulable } from "../framework/status.ts";
import { type InTreeDisk, inTreeDisks, isMigrated } from "./csi-migration.ts";
import type { PluginContext } from "./plugin-context.ts";
import { claimsOf, findClaim } from "./pod-claims.ts";

const exceeded = (): ReturnType<typeof unschedulable> => unschedulable("node(s) exceed max volume count");
const limitPrefix = "attachable-volumes-";
type Context = Pick<PluginContext, "informers" | "gates">;
const hasVolumes = ({ spec }: Pod): boolean => (spec.volumes ?? []).length > 0;

interface Listers {
  claims(pod: Pod, isNew: boolean): PersistentVolumeClaim[];
  volume(name: string | undefined): PersistentVolume | undefined;
  storageClass(claim: PersistentVolumeClaim): StorageClass | undefined;
  csiNode(name: string): CSINode | undefined;
}

function listersOf({ informers }: Context): Listers {
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims).lister;
  const volumes = informers.for<PersistentVolume>(persistentVolumes).lister;
  const classes = informers.for<StorageClass>(storageClasses).lister;
  const nodes = informers.for<CSINode>(csiNodes).lister;
  return {
    claims(pod, isNew) {
      return claimsOf(pod).flatMap((use) => {
        if (use.name === "") throw new Error("PersistentVolumeClaim had no name");
        const claim = findClaim(claims, pod, use);
        if (claim !== undefined) return [claim];
        // The claim of an existing pod may have been deleted; for the incoming pod a missing claim is an error.
        if (!isNew) return [];
        const { namespace } = pod.metadata;
        throw new Error(`looking up PVC ${namespace}/${use.name}: persistentvolumeclaim "${use.name}" not found`);
      });
    },
    volume: (name) => (name ? volumes.get(name) : undefined),
    storageClass: (claim) => classes.get(classNameOf(claim)),
    csiNode: (name) => nodes.get(name),
  };
}

/** Attach limits that the kubelet reports in the node's allocatable, by resource name. */
const limitsIn = ({ allocatable }: NodeInfo): Map<string, number> =>
  new Map([...allocatable.scalars].filter(([name]) => name.startsWith(limitPrefix)));

/** @returns the placeholder ID of a claim's disk that is not provisioned yet; the random prefix avoids collisions with real disks */
const newPlaceholderIds = (): ((claim: PersistentVolumeClaim) => string) => {
  const prefix = generateName("claim-");
  return ({ metadata }) => `${prefix}-${metadata.namespace}/${metadata.name}`;
};

/**
 * Enforces the attach limits that CSI drivers report for a node.
 * Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go
 */
export function newNodeVolumeLimits(context: Context): Plugin {
  const listers = listersOf(context);
  const nameOf = newPlaceholderIds();

  /** Driver and volume handle; undefined for volumes that no CSI driver attaches. */
  const volumeOf = (claim: PersistentVolumeClaim, node: CSINode | undefined): readonly [string, string] | undefined => {
    const volume = listers.volume(claim.spec.volumeName);
    if (volume?.spec.csi !== undefined) return [volume.spec.csi.driver, volume.spec.csi.volumeHandle];
    const disks: readonly InTreeDisk[] = Object.values(inTreeDisks);
    if (volume !== undefined) {
      const disk = disks.find(({ idOf }) => idOf(volume.spec) !== undefined);
      if (disk === undefined || !isMigrated(disk, node, context.gates)) return undefined;
      // Translate the handle: another claim may use the same disk through the CSI driver directly.
      return [disk.driver, translated(volume, disk.plugin)?.spec.csi?.volumeHandle ?? ""];
    }
    const provisioner = listers.storageClass(claim)?.provisioner;
    if (provisioner === undefined) return undefined;
    const disk = disks.find(({ plugin }) => plugin === provisioner);
    if (disk === undefined) return [provisioner, nameOf(claim)];
    return isMigrated(disk, node, context.gates) ? [disk.driver, nameOf(claim)] : undefined;
  };
  /** Pairs of unique volume name and the key of the limit it counts towards. */
  const volumesOf = (pod: Pod, isNew: boolean, node: CSINode | undefined): [string, string][] =>
    listers.claims(pod, isNew).flatMap((claim): [string, string][] => {
      const volume = volumeOf(claim, node);
      return volume === undefined ? [] : [[volume.join("/"), csiLimitKey(volume[0])]];
    });

  return {
    name: "NodeVolumeLimits",
    wakeUpOn: ["CSINode/Add", "Pod/Delete"],
    mayRefuse: (_, { pod }) => hasVolumes(pod),
    filter(_, { pod }, info) {
      if (!hasVolumes(pod)) return undefined;
      try {
        const csiNode = listers.csiNode(info.name);
        const wanted = new Map(volumesOf(pod, true, csiNode));
        if (wanted.size === 0) return undefined;
        const limits = limitsIn(info);
        for (const { name, allocatable } of csiNode?.spec.drivers ?? [])
          if (allocatable?.count !== undefined) limits.set(csiLimitKey(name), allocatable.count);
        if (limits.size === 0) return undefined;
        const attached = new Map([...info.pods.values()].flatMap(({ pod: other }) => volumesOf(other, false, csiNode)));
        const counts = new Map<string, number>();
        for (const key of new Map([...attached, ...wanted]).values()) counts.set(key, (counts.get(key) ?? 0) + 1);
        // Volumes that are already attached to the node do not add to the count.
        for (const [volume, key] of wanted)
          if (!attached.has(volume) && (counts.get(key) ?? 0) > (limits.get(key) ?? Number.POSITIVE_INFINITY)) return exceeded();
        return undefined;
      } catch (err) {
        return failed(err);
      }
    },
  };
}

/** `attachable-volumes-csi-<driver>`; hashed from 63 characters on. Source: pkg/volume/util GetCSIAttachLimitKey */
export function csiLimitKey(driver: string): string {
  const prefix = `${limitPrefix}csi-`;
  if (prefix.length + driver.length < 63) return `${prefix}${driver}`;
  return `${prefix}${driver.slice(0, 23)}${createHash("sha1").update(driver).digest("hex").slice(0, 16)}`;
}

interface DiskLimit {
  readonly name: string;
  readonly disk: InTreeDisk;
  readonly key: string;
  readonly most: (node: Node) => number;
}

/** Nitro instances have a lower limit. Source: pkg/volume/util EBSNitroLimitRegex, DefaultMaxEBSVolumes */
function mostEbsVolumes({ metadata: { labels = {} } }: Node): number {
  const type = labels["node.kubernetes.io/instance-type"] ?? labels["beta.kubernetes.io/instance-type"] ?? "";
  return /^[cmr]5|t3|z1d/.test(type) ? 25 : 39;
}

const diskLimits: Readonly<Record<string, DiskLimit>> = {
  EBSLimits: { name: "EBSLimits", disk: inTreeDisks.EBS, key: "aws-ebs", most: mostEbsVolumes },
  GCEPDLimits: { name: "GCEPDLimits", disk: inTreeDisks.GCE, key: "gce-pd", most: () => 16 },
  AzureDiskLimits: { name: "AzureDiskLimits", disk: inTreeDisks.AzureDisk, key: "azure-disk", most: () => 16 },
  CinderLimits: { name: "CinderLimits", disk: inTreeDisks.Cinder, key: "cinder", most: () => 256 },
};

/**
 * Enforces the attach limit of one in-tree volume plugin. The limit is the node's allocatable, else the environment
 * variable KUBE_MAX_PD_VOLS, else the plugin's default.
 * Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go
 */
export function newDiskLimits(context: Context, name: "EBSLimits" | "GCEPDLimits" | "AzureDiskLimits" | "CinderLimits"): Plugin {
  const { disk, key, most } = diskLimits[name]!;
  const listers = listersOf(context);
  const nameOf = newPlaceholderIds();
  const configured = Number.parseInt(process.env["KUBE_MAX_PD_VOLS"] ?? "", 10);

  const disksOf = (pod: Pod, isNew: boolean): string[] => {
    const inline = (pod.spec.volumes ?? []).flatMap((volume) => disk.idOf(volume) ?? []);
    const claimed = listers.claims(pod, isNew).flatMap((claim) => {
      const volume = listers.volume(claim.spec.volumeName);
      if (volume !== undefined) return disk.idOf(volume.spec) ?? [];
      // Unbound, or the volume is missing: counts towards the limit when the class provisions such disks.
      return listers.storageClass(claim)?.provisioner === disk.plugin ? [nameOf(claim)] : [];
    });
    return [...inline, ...claimed];
  };

  return {
    name,
    wakeUpOn: ["Node/Add", "Pod/Delete"],
    mayRefuse: (_, { pod }) => hasVolumes(pod),
    filter(_, { pod }, info) {
      if (!hasVolumes(pod)) return undefined;
      try {
        const wanted = disksOf(pod, true);
        if (wanted.length === 0 || isMigrated(disk, listers.csiNode(info.name), context.gates)) return undefined;
        const all = new Set([...info.pods.values()].flatMap(({ pod: other }) => disksOf(other, false)));
        for (const id of wanted) all.add(id);
        const limit = limitsIn(info).get(`${limitPrefix}${key}`) ?? (configured > 0 ? configured : most(info.node));
        return all.size > limit ? exceeded() : undefined;
      } catch (err) {
        return failed(err);
      }
    },
  };
}

import { createHash } from "node:crypto";
import type { PersistentVolume, PersistentVolumeSpec, SecretReference, Volume } from "../objects/schema/kinds/core/v1.ts";
import { type MigratedPlugin, migratedPlugins } from "./migration.ts";

/** Translated parts of a CSI volume source. */
interface CsiForm {
  readonly handle: string;
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
  readonly attributes?: Readonly<Record<string, string | undefined>>;
  readonly stageSecret?: SecretReference | undefined;
  readonly expandSecret?: SecretReference | undefined;
  /** Replaces the volume's access modes. */
  readonly accessMode?: string;
}

type Texts = Readonly<Record<string, string>>;

/** Metadata that affects the translation. */
interface Surroundings {
  readonly labels: Texts;
  readonly annotations: Texts;
  /** Namespace of the Pod for an inline volume; absent for a persistent volume. */
  readonly namespace?: string | undefined;
}

/** @returns undefined when the volume cannot be translated */
type Translate = (spec: PersistentVolumeSpec, around: Surroundings) => CsiForm | undefined;

const unspecified = "UNSPECIFIED";

/** Source: staging/src/k8s.io/csi-translation-lib/plugins */
const translations: Readonly<Record<string, Translate>> = {
  "kubernetes.io/aws-ebs"({ awsElasticBlockStore: source }) {
    if (source === undefined) return undefined;
    const { volumeID, fsType, readOnly, partition = 0 } = source;
    // `aws://<zone>/<id>`, or the id alone.
    const handle = volumeID.startsWith("aws://") ? (volumeID.split("/").at(-1) ?? "") : volumeID;
    return { handle, readOnly, fsType, attributes: { partition: String(partition) } };
  },
  "kubernetes.io/gce-pd"({ gcePersistentDisk: source, accessModes = [] }, { labels, namespace }) {
    if (source === undefined) return undefined;
    const { pdName, fsType, readOnly, partition = 0 } = source;
    const zones = (labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"])?.split("__") ?? [];
    const [zone = unspecified] = zones;
    const place = zones.length > 1 ? `regions/${zone.slice(0, zone.lastIndexOf("-"))}` : `zones/${zone}`;
    const attributes = { partition: partition > 0 ? String(partition) : "" };
    const handle = `projects/${unspecified}/${place}/disks/${pdName}`;
    // The in-tree plugin ignores access modes; the CSI driver rejects several modes and multiple writers.
    const isRead = namespace === undefined ? accessModes.every((mode) => mode === "ReadOnlyMany") : readOnly;
    return { handle, readOnly, fsType, attributes, ...(accessModes.length > 0 && { accessMode: oneWriterUnless(isRead) }) };
  },
  "kubernetes.io/cinder"({ cinder: source }) {
    if (source === undefined) return undefined;
    return { handle: source.volumeID, readOnly: source.readOnly, fsType: source.fsType };
  },
  "kubernetes.io/azure-disk"({ azureDisk: source }) {
    if (source === undefined) return undefined;
    const { diskURI, cachingMode, fsType, readOnly } = source;
    return { handle: diskURI, readOnly, fsType, attributes: { cachingMode, fsType, kind: "Managed" } };
  },
  "kubernetes.io/azure-file"({ azureFile: source }, { annotations, namespace }) {
    if (source === undefined) return undefined;
    const { secretName, shareName, readOnly, secretNamespace } = source;
    const resourceGroup = annotations["kubernetes.io/azure-file-resource-group"] ?? "";
    return {
      handle: `${resourceGroup}#${storageAccountOf(secretName)}#${shareName}#`,
      readOnly,
      attributes: { sharename: shareName },
      stageSecret: { name: secretName, namespace: namespace || secretNamespace || "default" },
      ...(namespace !== undefined && { accessMode: "ReadWriteMany" }),
    };
  },
  "kubernetes.io/vsphere-volume"({ vsphereVolume: source }) {
    if (source === undefined) return undefined;
    const { volumePath, fsType, storagePolicyName } = source;
    return { handle: volumePath, fsType, attributes: { storagepolicyname: storagePolicyName || undefined } };
  },
  "kubernetes.io/portworx-volume"({ portworxVolume: source }, { namespace }) {
    if (source === undefined) return undefined;
    const { volumeID, fsType, readOnly } = source;
    // The driver takes read-only from the access mode, not from the source.
    return { handle: volumeID, fsType, ...(namespace !== undefined && { accessMode: oneWriterUnless(readOnly) }) };
  },
  "kubernetes.io/rbd"({ rbd: source }, { annotations, namespace }) {
    if (source === undefined) return undefined;
    const { image, fsType, readOnly, monitors, pool = "rbd", secretRef } = source;
    const cluster = createHash("md5").update(monitors.join(",")).digest("hex");
    const secret = secretRef && (namespace === undefined ? secretRef : { ...secretRef, namespace });
    const common = { fsType, accessMode: oneWriterUnless(readOnly), stageSecret: secret, expandSecret: secret };
    if (namespace !== undefined) {
      const attributes = { clusterID: cluster, pool: pool || "rbd", staticVolume: "true", imageFeatures: "layering" };
      return { ...common, handle: image, attributes };
    }
    const { [rbdHandle]: made, clusterID = "", imageFeatures, imageFormat = "", journalPool = "" } = annotations;
    const attributes = {
      ...(made ? { clusterID } : { clusterID: cluster, staticVolume: "true" }),
      imageName: image,
      pool,
      imageFeatures: imageFeatures || "layering",
      imageFormat,
      journalPool,
      migration: "true",
      tryOtherMounters: "true",
    };
    return { ...common, handle: made || migratedImage(cluster, pool, image), attributes };
  },
};

/** Annotation on migrated volumes that the CSI driver provisioned. */
const rbdHandle = "rbd.csi.ceph.com/volume-handle";

const oneWriterUnless = (readOnly: boolean | undefined): string => (readOnly === true ? "ReadOnlyMany" : "ReadWriteOnce");

/** Volume handle format of RBD images that the CSI driver did not provision. */
function migratedImage(cluster: string, pool: string, image: string): string {
  const [, name = image] = image.split("kubernetes-dynamic-pvc-");
  return `mig_mons-${cluster}_image-${name}_${Buffer.from(pool).toString("hex")}`;
}

/** The account in `azure-storage-account-<account>-secret`; other names are returned unchanged. */
function storageAccountOf(secretName: string): string {
  const [prefix, suffix] = ["azure-storage-account-", "-secret"];
  const start = secretName.indexOf(prefix) + prefix.length;
  const end = secretName.lastIndexOf(suffix);
  return secretName.includes(prefix) && end > start ? secretName.slice(start, end) : secretName;
}

/**
 * Translates an in-tree persistent volume to its CSI equivalent.
 * @returns undefined when it cannot be translated
 */
export function translated(volume: PersistentVolume, plugin: string): PersistentVolume | undefined {
  const { labels = {}, annotations = {} } = volume.metadata;
  return withForm(volume, plugin, { labels, annotations });
}

/**
 * Translates an inline volume of a Pod to a CSI persistent volume. It is named after the disk, so that Pods with the same
 * disk share its staging directory.
 * @param namespace namespace of the Pod, which is also that of its secrets
 */
export function translatedInline({ name, ...source }: Volume, plugin: string, namespace: string): PersistentVolume | undefined {
  // Cast: only what the translation reads is filled in.
  const spec = { ...source, accessModes: ["ReadWriteOnce"] } as PersistentVolumeSpec;
  const volume = withForm({ metadata: { name }, spec }, plugin, { labels: {}, annotations: {}, namespace });
  const { driver, volumeHandle } = volume?.spec.csi ?? {};
  return volume && { ...volume, metadata: { name: `${driver}-${volumeHandle}` } };
}

function withForm(volume: PersistentVolume, plugin: string, around: Surroundings): PersistentVolume | undefined {
  const row = migratedPlugins.find((known) => known.plugin === plugin);
  const form = translations[plugin]?.(volume.spec, around);
  if (row === undefined || form === undefined) return undefined;
  const { [row.source]: _, ...rest } = volume.spec;
  const { accessMode } = form;
  return { ...volume, spec: { ...rest, ...(accessMode && { accessModes: [accessMode] }), csi: csiSource(row, form) } };
}

function csiSource({ driver }: MigratedPlugin, form: CsiForm): NonNullable<PersistentVolumeSpec["csi"]> {
  const attributes = Object.entries(form.attributes ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    driver,
    volumeHandle: form.handle,
    ...(form.readOnly === undefined ? {} : { readOnly: form.readOnly }),
    ...(form.fsType === undefined ? {} : { fsType: form.fsType }),
    ...(attributes.length === 0 ? {} : { volumeAttributes: Object.fromEntries(attributes) }),
    ...(form.stageSecret && { nodeStageSecretRef: form.stageSecret }),
    ...(form.expandSecret && { controllerExpandSecretRef: form.expandSecret }),
  };
}

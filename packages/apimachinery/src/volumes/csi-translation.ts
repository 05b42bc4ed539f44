import type { PersistentVolume, PersistentVolumeSpec } from "../schema/kinds/core/v1.ts";
import { migratedPlugins } from "./migration.ts";

/** The CSI form of a source: its handle and what else the driver needs to know. */
interface CsiForm {
  readonly handle: string;
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
  readonly attributes?: Readonly<Record<string, string | undefined>>;
}

/** @returns undefined when the volume lacks what the driver needs */
type Translate = (spec: PersistentVolumeSpec, labels: Readonly<Record<string, string>>) => CsiForm | undefined;

const unspecified = "UNSPECIFIED";

/** The cloud disks whose migration is on in 1.23. Source: staging/src/k8s.io/csi-translation-lib/plugins */
const translations: Readonly<Record<string, Translate>> = {
  "kubernetes.io/aws-ebs"({ awsElasticBlockStore: source }) {
    if (source === undefined) return undefined;
    const { volumeID, fsType, readOnly, partition = 0 } = source;
    // `aws://<zone>/<id>`, or the id alone.
    const handle = volumeID.startsWith("aws://") ? (volumeID.split("/").at(-1) ?? "") : volumeID;
    return { handle, readOnly, fsType, attributes: { partition: String(partition) } };
  },
  "kubernetes.io/gce-pd"({ gcePersistentDisk: source }, labels) {
    if (source === undefined) return undefined;
    const { pdName, fsType, readOnly, partition = 0 } = source;
    const zones = (labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"])?.split("__") ?? [];
    const [zone = unspecified] = zones;
    const place = zones.length > 1 ? `regions/${zone.slice(0, zone.lastIndexOf("-"))}` : `zones/${zone}`;
    const attributes = { partition: partition > 0 ? String(partition) : "" };
    return { handle: `projects/${unspecified}/${place}/disks/${pdName}`, readOnly, fsType, attributes };
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
};

/**
 * The volume of an in-tree plugin as its CSI driver sees it.
 * @param volume a persistent volume; or one with only a name and a source, for what stands in a Pod
 * @returns undefined when there is no such form
 */
export function translated(volume: PersistentVolume, plugin: string): PersistentVolume | undefined {
  const row = migratedPlugins.find((known) => known.plugin === plugin);
  const form = translations[plugin]?.(volume.spec, volume.metadata.labels ?? {});
  if (row === undefined || form === undefined) return undefined;
  const { [row.source]: _, ...rest } = volume.spec;
  const attributes = Object.entries(form.attributes ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const spec: PersistentVolumeSpec = {
    ...rest,
    csi: {
      driver: row.driver,
      volumeHandle: form.handle,
      ...(form.readOnly === undefined ? {} : { readOnly: form.readOnly }),
      ...(form.fsType === undefined ? {} : { fsType: form.fsType }),
      ...(attributes.length === 0 ? {} : { volumeAttributes: Object.fromEntries(attributes) }),
    },
  };
  return { ...volume, spec };
}

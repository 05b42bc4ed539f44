import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goFieldName } from "@coxswain/apimachinery/objects/schema/go/go-names";
import type {
  AWSElasticBlockStoreVolumeSource,
  AzureDiskVolumeSource,
  FCVolumeSource,
  FlexVolumeSource,
  FlockerVolumeSource,
  GCEPersistentDiskVolumeSource,
  HostPathVolumeSource,
  ISCSIVolumeSource,
  NFSVolumeSource,
  QuobyteVolumeSource,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dns1123Label, dns1123SubdomainProblems } from "../../../field-checks.ts";
import { need, optionalOneOf, saying, within } from "../../../rules.ts";
import { withoutBacksteps } from "./paths.ts";

/**
 * Validation of volume sources shared by pods and persistent volumes.
 * Source: pkg/apis/core/validation validateHostPathVolumeSource and the functions after it
 */
const hostPathTypes = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

export function checkHostPath(source: HostPathVolumeSource, path: string): FieldError[] {
  if (!source.path) return [required(child(path, "path"))];
  return [
    ...withoutBacksteps(source.path, child(path, "path")),
    ...optionalOneOf(source.type, hostPathTypes, child(path, "type")),
  ];
}

export const checkGcePersistentDisk = (source: GCEPersistentDiskVolumeSource, path: string): FieldError[] => [
  ...need(source.pdName, child(path, "pdName")),
  ...partition(source.partition, child(path, "partition")),
];

export const checkAwsElasticBlockStore = (source: AWSElasticBlockStoreVolumeSource, path: string): FieldError[] => [
  ...need(source.volumeID, child(path, "volumeID")),
  ...partition(source.partition, child(path, "partition")),
];

/** 0 means no partition and is valid, although upstream's error text excludes it. */
function partition(value: number | undefined, path: string): FieldError[] {
  return value !== undefined && (value < 0 || value > 255)
    ? [invalidValue(path, value, "must be between 1 and 255, inclusive")]
    : [];
}

export const checkNfs = (source: NFSVolumeSource, path: string): FieldError[] => [
  ...need(source.server, child(path, "server")),
  ...need(source.path, child(path, "path")),
  ...(source.path?.startsWith("/") ? [] : [invalidValue(child(path, "path"), source.path ?? "", "must be an absolute path")]),
];

const initiatorForms: readonly [prefix: string, form: RegExp][] = [
  ["iqn", /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$/],
  ["eui", /^eui.[A-Za-z0-9]{16}$/],
  ["naa", /^naa.[A-Za-z0-9]{32}$/],
];
const longestInitiator = 1024;

/** @param unknownText error for an initiator name of unknown format; differs between pods and persistent volumes */
export function checkIscsi(
  source: Omit<ISCSIVolumeSource, "secretRef"> & { secretRef?: object },
  path: string,
  unknownText: string,
): FieldError[] {
  const errors = need(source.iqn, child(path, "iqn"));
  if (source.iqn) errors.push(...initiator(source.iqn, child(path, "iqn"), unknownText));
  errors.push(...within(source.lun, 0, 255, child(path, "lun")));
  if ((source.chapAuthDiscovery || source.chapAuthSession) && !source.secretRef) errors.push(required(child(path, "secretRef")));
  return errors;
}

/** The name of an iSCSI initiator in the format iqn, eui or naa. @param unknownText error for another format */
export function initiator(name: string, path: string, unknownText: string): FieldError[] {
  const known = initiatorForms.find(([prefix]) => name.startsWith(prefix));
  if (!known) return [invalidValue(path, name, unknownText)];
  // The iqn pattern is not anchored; limiting the length bounds the cost of the search.
  return name.length <= longestInitiator && known[1].test(name) ? [] : [invalidValue(path, name, "must be valid format")];
}

export function checkFlocker({ datasetName, datasetUUID }: FlockerVolumeSource, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!datasetName && !datasetUUID) errors.push(required(path, "one of datasetName and datasetUUID is required"));
  if (datasetName && datasetUUID)
    errors.push(invalidValue(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
  if (datasetName?.includes("/")) errors.push(invalidValue(child(path, "datasetName"), datasetName, "must not contain '/'"));
  return errors;
}

export const checkRbd = (source: { monitors?: readonly string[]; image?: string }, path: string): FieldError[] => [
  ...need(source.monitors, child(path, "monitors")),
  ...need(source.image, child(path, "image")),
];

export const checkCephfs = (source: { monitors?: readonly string[] }, path: string): FieldError[] =>
  need(source.monitors, child(path, "monitors"));

const quobyteText = "must be a host:port pair or multiple pairs separated by commas";

export function checkQuobyte(source: QuobyteVolumeSource, path: string): FieldError[] {
  const { registry, tenant, volume } = source;
  const errors: FieldError[] = [];
  if (!registry) errors.push(required(child(path, "registry"), quobyteText));
  else if (tenant && tenant.length >= 65)
    errors.push(required(child(path, "tenant"), "must be a UUID and may not exceed a length of 64 characters"));
  else {
    for (const pair of registry.split(","))
      if (!/^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(pair))
        errors.push(invalidValue(child(path, "registry"), registry, quobyteText));
  }
  return [...errors, ...need(volume, child(path, "volume"))];
}

export function checkFc(source: FCVolumeSource, path: string): FieldError[] {
  const { targetWWNs = [], lun, wwids = [] } = source;
  const errors: FieldError[] = [];
  if (targetWWNs.length === 0 && wwids.length === 0)
    errors.push(required(child(path, "targetWWNs"), "must specify either targetWWNs or wwids, but not both"));
  if (targetWWNs.length > 0 && wwids.length > 0)
    errors.push(invalidValue(child(path, "targetWWNs"), targetWWNs, "targetWWNs and wwids can not be specified simultaneously"));
  if (targetWWNs.length > 0) {
    if (lun === undefined || lun === null)
      errors.push(required(child(path, "lun"), "lun is required if targetWWNs is specified"));
    else errors.push(...within(lun, 0, 255, child(path, "lun")));
  }
  return errors;
}

export function checkFlexVolume(source: Pick<FlexVolumeSource, "driver" | "options">, path: string): FieldError[] {
  const errors = need(source.driver, child(path, "driver"));
  for (const key of Object.keys(source.options ?? {})) {
    const slash = key.indexOf("/");
    const domain = `.${(slash < 0 ? key : key.slice(0, slash)).toLowerCase()}`;
    if (domain.endsWith(".kubernetes.io") || domain.endsWith(".k8s.io"))
      errors.push(invalidValue(mapKey(child(path, "options"), key), key, "kubernetes.io and k8s.io namespaces are reserved"));
  }
  return errors;
}

export const checkAzureFile = (source: { secretName?: string; shareName?: string }, path: string): FieldError[] => [
  ...need(source.secretName, child(path, "secretName")),
  ...need(source.shareName, child(path, "shareName")),
];

const managedDiskForm = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const blobDiskForm = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

export function checkAzureDisk(source: AzureDiskVolumeSource, path: string): FieldError[] {
  const { diskURI = "", kind } = source;
  const errors = [
    ...need(source.diskName, child(path, "diskName")),
    ...need(diskURI, child(path, "diskURI")),
    ...optionalOneOf(source.cachingMode, ["None", "ReadOnly", "ReadWrite"], child(path, "cachingMode")),
    ...optionalOneOf(kind, ["Dedicated", "Managed", "Shared"], child(path, "kind")),
  ];
  if (kind === "Managed" && !diskURI.startsWith("/subscriptions/"))
    errors.push(notSupported(child(path, "diskURI"), diskURI, [managedDiskForm]));
  if (kind !== undefined && kind !== "Managed" && !diskURI.startsWith("https://"))
    errors.push(notSupported(child(path, "diskURI"), diskURI, [blobDiskForm]));
  return errors;
}

export const checkGlusterfs = (source: { endpoints?: string; path?: string }, path: string): FieldError[] => [
  ...need(source.endpoints, child(path, "endpoints")),
  ...need(source.path, child(path, "path")),
];

export const checkScaleIo = (source: { gateway?: string; system?: string; volumeName?: string }, path: string): FieldError[] => [
  ...need(source.gateway, child(path, "gateway")),
  ...need(source.system, child(path, "system")),
  ...need(source.volumeName, child(path, "volumeName")),
];

export function checkStorageOs(
  source: { volumeName?: string; volumeNamespace?: string; secretRef?: { name?: string } },
  path: string,
): FieldError[] {
  const { volumeName, volumeNamespace, secretRef } = source;
  const at = child(path, "volumeName");
  return [
    ...(volumeName ? dns1123Label(volumeName, at) : [required(at)]),
    ...(volumeNamespace ? dns1123Label(volumeNamespace, child(path, "volumeNamespace")) : []),
    ...(secretRef ? need(secretRef.name, child(path, "secretRef", "name")) : []),
  ];
}

/**
 * The name of a CSI driver: a DNS subdomain in any case, of at most 63 characters.
 * Source: pkg/apis/core/validation ValidateCSIDriverName
 */
export function checkDriverName(name: string, path: string): FieldError[] {
  const errors = need(name, path);
  if (name.length > 63)
    errors.push({ type: "FieldValueTooLong", field: path, badValue: name, detail: "must have at most 63 bytes" });
  return [...errors, ...saying(dns1123SubdomainProblems(name.toLowerCase()), name, path)];
}

const fileModeText = "must be a number between 0 and 0777 (octal), both inclusive";

/** Undefined and null are valid; the default applies. */
export function fileMode(mode: number | undefined | null, path: string): FieldError[] {
  return mode !== undefined && mode !== null && (mode > 0o777 || mode < 0) ? [invalidValue(path, mode, fileModeText)] : [];
}

export const moreThanOneText = "may not specify more than 1 volume type";

/** The metadata of a claim template may only have labels and annotations. */
export function onlyLabelsAndAnnotations(metadata: object | undefined, path: string): FieldError[] {
  return Object.entries(metadata ?? {}).flatMap(([field, value]) =>
    field === "labels" || field === "annotations" || value === undefined || value === null || value === ""
      ? []
      : [forbiddenField(child(path, internalName(field)), "cannot be set for an ephemeral volume")],
  );
}

/** The Go field name with a lower-case first letter: `uID`. */
function internalName(field: string): string {
  const name = goFieldName("ObjectMeta", field);
  return name.charAt(0).toLowerCase() + name.slice(1);
}

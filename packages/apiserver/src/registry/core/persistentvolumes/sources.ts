import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { PersistentVolumeSpec, SecretReference } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dns1123Label } from "../../field-checks.ts";
import { emptyStruct, type Member, need } from "../../rules.ts";
import { withoutBacksteps } from "../pods/validation/paths.ts";
import {
  checkAwsElasticBlockStore,
  checkAzureDisk,
  checkAzureFile,
  checkCephfs,
  checkDriverName,
  checkFc,
  checkFlexVolume,
  checkFlocker,
  checkGcePersistentDisk,
  checkGlusterfs,
  checkHostPath,
  checkIscsi,
  checkNfs,
  checkQuobyte,
  checkRbd,
  checkScaleIo,
  checkStorageOs,
  initiator,
} from "../pods/validation/volume-sources.ts";
import { initiatorLengthText } from "../pods/validation/volumes.ts";

const initiatorText = "must be valid format";

/**
 * Volume sources of persistent volumes, in upstream's order. Unlike in pods, secret references have a namespace.
 * Source: pkg/apis/core/validation ValidatePersistentVolumeSpec
 */
export const sources = (volumeName: string): readonly Member<PersistentVolumeSpec>[] => [
  { field: "hostPath", check: ({ hostPath }, at) => checkHostPath(hostPath ?? { path: "" }, at) },
  {
    field: "gcePersistentDisk",
    at: "persistentDisk",
    check: ({ gcePersistentDisk }, at) => checkGcePersistentDisk(gcePersistentDisk ?? { pdName: "" }, at),
  },
  {
    field: "awsElasticBlockStore",
    check: ({ awsElasticBlockStore }, at) => checkAwsElasticBlockStore(awsElasticBlockStore ?? { volumeID: "" }, at),
  },
  {
    field: "glusterfs",
    check({ glusterfs }, at) {
      const errors = checkGlusterfs(glusterfs ?? {}, at);
      const namespace = glusterfs?.endpointsNamespace;
      if (namespace === undefined || namespace === null) return errors;
      const path = child(at, "endpointsNamespace");
      const text = "if the endpointnamespace is set, it must be a valid namespace name";
      return [...errors, ...(namespace === "" ? [invalidValue(path, "", text)] : dns1123Label(namespace, path))];
    },
  },
  { field: "flocker", check: ({ flocker }, at) => checkFlocker(flocker ?? {}, at) },
  { field: "nfs", check: ({ nfs }, at) => checkNfs(nfs ?? { server: "", path: "" }, at) },
  { field: "rbd", check: ({ rbd }, at) => checkRbd(rbd ?? {}, at) },
  { field: "quobyte", check: ({ quobyte }, at) => checkQuobyte(quobyte ?? { registry: "", volume: "" }, at) },
  { field: "cephfs", clash: "cephFS", check: ({ cephfs }, at) => checkCephfs(cephfs ?? {}, at) },
  {
    field: "iscsi",
    check({ iscsi }, at) {
      const { targetPortal = "", initiatorName, secretRef } = iscsi ?? {};
      const errors = need(targetPortal, child(at, "targetPortal"));
      if (initiatorName !== undefined && Buffer.byteLength(`${volumeName}:${targetPortal}`) > 64)
        errors.push(invalidValue(child(at, "targetportal"), targetPortal, initiatorLengthText));
      errors.push(...checkIscsi(iscsi ?? emptyStruct(), at, initiatorText));
      if (secretRef) errors.push(...need(secretRef.name, child(at, "secretRef", "name")));
      if (initiatorName !== undefined) errors.push(...initiator(initiatorName, child(at, "initiatorname"), initiatorText));
      return errors;
    },
  },
  {
    field: "cinder",
    check: ({ cinder }, at) => [
      ...need(cinder?.volumeID, child(at, "volumeID")),
      ...secretNames(cinder?.secretRef, child(at, "secretRef")),
    ],
  },
  { field: "fc", check: ({ fc }, at) => checkFc(fc ?? {}, at) },
  { field: "flexVolume", tolerated: true, check: ({ flexVolume }, at) => checkFlexVolume(flexVolume ?? { driver: "" }, at) },
  {
    field: "azureFile",
    check: ({ azureFile }, at) => [
      ...checkAzureFile(azureFile ?? {}, at),
      ...(azureFile?.secretNamespace === "" ? [required(child(at, "secretNamespace"))] : []),
    ],
  },
  { field: "vsphereVolume", check: ({ vsphereVolume }, at) => need(vsphereVolume?.volumePath, child(at, "volumePath")) },
  {
    field: "photonPersistentDisk",
    check: ({ photonPersistentDisk }, at) => need(photonPersistentDisk?.pdID, child(at, "pdID")),
  },
  { field: "portworxVolume", check: ({ portworxVolume }, at) => need(portworxVolume?.volumeID, child(at, "volumeID")) },
  { field: "azureDisk", check: ({ azureDisk }, at) => checkAzureDisk(azureDisk ?? { diskName: "", diskURI: "" }, at) },
  { field: "scaleIO", check: ({ scaleIO }, at) => checkScaleIo(scaleIO ?? {}, at) },
  {
    field: "local",
    check: ({ local }, at) => (local?.path ? withoutBacksteps(local.path, child(at, "path")) : [required(child(at, "path"))]),
  },
  {
    field: "storageos",
    check: ({ storageos }, at) => [
      ...checkStorageOs(storageos ?? {}, at),
      ...(storageos?.secretRef ? need(storageos.secretRef.namespace, child(at, "secretRef", "namespace")) : []),
    ],
  },
  {
    field: "csi",
    check: ({ csi }, at) => [
      ...checkDriverName(csi?.driver ?? "", child(at, "driver")),
      ...need(csi?.volumeHandle, child(at, "volumeHandle")),
      ...csiSecret(csi?.controllerPublishSecretRef, "controllerPublishSecretRef", at),
      ...csiSecret(csi?.controllerExpandSecretRef, "controllerExpandSecretRef", at),
      // The trailing blank in this path is upstream's.
      ...csiSecret(csi?.nodePublishSecretRef, "nodePublishSecretRef ", at),
    ],
  },
];

function secretNames(secret: SecretReference | undefined, path: string): FieldError[] {
  if (!secret) return [];
  return [...need(secret.name, child(path, "name")), ...need(secret.namespace, child(path, "namespace"))];
}

/** The error path of a missing part includes the field of the secret, that of an invalid one does not. */
function csiSecret(secret: SecretReference | undefined, field: string, path: string): FieldError[] {
  if (!secret) return [];
  return (["name", "namespace"] as const).flatMap((part) => {
    const value = secret[part];
    return value ? dns1123Label(value, child(path, part)) : [required(child(path, field, part))];
  });
}

const fields = sources("").map(({ field }) => field);

/** The volume source fields of a spec. */
export function sourceOf(spec: PersistentVolumeSpec): Record<string, unknown> {
  return Object.fromEntries(fields.flatMap((field) => (spec[field] == null ? [] : [[field, spec[field]]])));
}

import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  DownwardAPIVolumeFile,
  EphemeralVolumeSource,
  KeyToPath,
  ProjectedVolumeSource,
  Volume,
  VolumeProjection,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkingAnnotations,
  checkingLabels,
  dns1123Label,
  dns1123SubdomainProblems,
  quantityOf,
} from "../../../field-checks.ts";
import { eachInSteps, eachWithSteps, emptyStruct, type Member, need, oneMember, saying } from "../../../rules.ts";
import { validateClaimSpec } from "../../persistentvolumeclaims/validation.ts";
import { checkFieldRef, checkResourceFieldRef, downwardVolumeFields } from "./field-references.ts";
import type { PodValidationOptions } from "./options.ts";
import { localDescendingPath, localNonReservedPath } from "./paths.ts";
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
  fileMode,
  initiator,
  moreThanOneText,
  onlyLabelsAndAnnotations,
} from "./volume-sources.ts";

/**
 * @returns `names`: the valid volumes by name, for validating mounts
 * Source: pkg/apis/core/validation ValidateVolumes
 */
export function* validateVolumes(
  volumes: readonly Volume[],
  path: string,
  podName: string,
  options: PodValidationOptions,
): Steps<{ names: Map<string, Volume>; errors: FieldError[] }> {
  const names = new Map<string, Volume>();
  const made = new Set(
    podName === "" ? [] : volumes.filter((volume) => volume.ephemeral).map((volume) => `${podName}-${volume.name}`),
  );
  const sources = members(options);
  const errors = yield* eachWithSteps(volumes, path, function* (volume, at) {
    const own = yield* validateSource(volume, at, podName, sources);
    if (!volume.name) own.push(required(child(at, "name")));
    else own.push(...dns1123Label(volume.name, child(at, "name")));
    if (names.has(volume.name)) own.push(duplicate(child(at, "name"), volume.name));
    if (own.length === 0) names.set(volume.name, volume);
    const claim = volume.persistentVolumeClaim?.claimName;
    if (claim !== undefined && made.has(claim)) {
      const text = "must not reference a PVC that gets created for an ephemeral volume";
      own.push(invalidValue(child(at, "persistentVolumeClaim", "claimName"), claim, text));
    }
    return own;
  });
  return { names, errors };
}

function* validateSource(volume: Volume, path: string, podName: string, sources: readonly Member<Volume>[]): Steps<FieldError[]> {
  const { found, errors } = yield* oneMember(volume, sources, path, moreThanOneText);
  const { iscsi, ephemeral, name } = volume;
  if (iscsi?.initiatorName !== undefined && Buffer.byteLength(`${name}:${iscsi.targetPortal ?? ""}`) > 64)
    errors.push(invalidValue(child(path, "name"), name, initiatorLengthText));
  if (ephemeral && found === 1 && podName !== "" && name) {
    const claim = `${podName}-${name}`;
    for (const message of dns1123SubdomainProblems(claim))
      errors.push(invalidValue(child(path, "name"), name, `PVC name ${JSON.stringify(claim)}: ${message}`));
  }
  if (found === 0) errors.push(required(path, "must specify a volume type"));
  return errors;
}

export const initiatorLengthText =
  "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
const podInitiatorText = "must be valid format starting with iqn, eui, or naa";

/** Volume sources in upstream's order. Unusual names in error paths are upstream's, too. */
const members = (options: PodValidationOptions): readonly Member<Volume>[] => [
  {
    field: "emptyDir",
    check: ({ emptyDir }, at) =>
      quantityOf(emptyDir?.sizeLimit).sign < 0
        ? [forbiddenField(child(at, "sizeLimit"), "SizeLimit field must be a valid resource quantity")]
        : [],
  },
  { field: "hostPath", check: ({ hostPath }, at) => checkHostPath(hostPath ?? { path: "" }, at) },
  {
    field: "gitRepo",
    check: ({ gitRepo }, at) => [
      ...need(gitRepo?.repository, child(at, "repository")),
      ...localDescendingPath(gitRepo?.directory ?? "", child(at, "directory")),
    ],
  },
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
    field: "secret",
    *check({ secret }, at) {
      return [
        ...need(secret?.secretName, child(at, "secretName")),
        ...fileMode(secret?.defaultMode, child(at, "defaultMode")),
        ...(yield* eachInSteps(secret?.items, child(at, "items"), keyToPath)),
      ];
    },
  },
  { field: "nfs", check: ({ nfs }, at) => checkNfs(nfs ?? { server: "", path: "" }, at) },
  {
    field: "iscsi",
    check: ({ iscsi }, at) => [
      ...need(iscsi?.targetPortal, child(at, "targetPortal")),
      ...checkIscsi(iscsi ?? emptyStruct(), at, podInitiatorText),
      ...(iscsi?.initiatorName === undefined ? [] : initiator(iscsi.initiatorName, child(at, "initiatorname"), podInitiatorText)),
    ],
  },
  { field: "glusterfs", check: ({ glusterfs }, at) => checkGlusterfs(glusterfs ?? {}, at) },
  { field: "flocker", check: ({ flocker }, at) => checkFlocker(flocker ?? {}, at) },
  {
    field: "persistentVolumeClaim",
    check: ({ persistentVolumeClaim }, at) => need(persistentVolumeClaim?.claimName, child(at, "claimName")),
  },
  { field: "rbd", check: ({ rbd }, at) => checkRbd(rbd ?? {}, at) },
  {
    field: "cinder",
    check: ({ cinder }, at) => [
      ...need(cinder?.volumeID, child(at, "volumeID")),
      ...(cinder?.secretRef ? need(cinder.secretRef.name, child(at, "secretRef", "name")) : []),
    ],
  },
  { field: "cephfs", clash: "cephFS", check: ({ cephfs }, at) => checkCephfs(cephfs ?? {}, at) },
  { field: "quobyte", check: ({ quobyte }, at) => checkQuobyte(quobyte ?? { registry: "", volume: "" }, at) },
  {
    field: "downwardAPI",
    clash: "downwarAPI",
    *check({ downwardAPI }, at) {
      return [
        ...fileMode(downwardAPI?.defaultMode, child(at, "defaultMode")),
        ...(yield* eachInSteps(downwardAPI?.items, at, (file) => downwardFile(file, at, options))), // without the index, like upstream's
      ];
    },
  },
  { field: "fc", check: ({ fc }, at) => checkFc(fc ?? {}, at) },
  { field: "flexVolume", check: ({ flexVolume }, at) => checkFlexVolume(flexVolume ?? { driver: "" }, at) },
  {
    field: "configMap",
    *check({ configMap }, at) {
      return [
        ...need(configMap?.name, child(at, "name")),
        ...fileMode(configMap?.defaultMode, child(at, "defaultMode")),
        ...(yield* eachInSteps(configMap?.items, child(at, "items"), keyToPath)),
      ];
    },
  },
  { field: "azureFile", check: ({ azureFile }, at) => checkAzureFile(azureFile ?? {}, at) },
  { field: "vsphereVolume", check: ({ vsphereVolume }, at) => need(vsphereVolume?.volumePath, child(at, "volumePath")) },
  {
    field: "photonPersistentDisk",
    check: ({ photonPersistentDisk }, at) => need(photonPersistentDisk?.pdID, child(at, "pdID")),
  },
  { field: "portworxVolume", check: ({ portworxVolume }, at) => need(portworxVolume?.volumeID, child(at, "volumeID")) },
  { field: "azureDisk", check: ({ azureDisk }, at) => checkAzureDisk(azureDisk ?? { diskName: "", diskURI: "" }, at) },
  { field: "storageos", check: ({ storageos }, at) => checkStorageOs(storageos ?? {}, at) },
  { field: "projected", check: ({ projected }, at) => checkProjected(projected ?? { sources: [] }, at, options) },
  { field: "scaleIO", check: ({ scaleIO }, at) => checkScaleIo(scaleIO ?? {}, at) },
  {
    field: "csi",
    check({ csi }, at) {
      const secret = csi?.nodePublishSecretRef;
      const errors = checkDriverName(csi?.driver ?? "", child(at, "driver"));
      if (!secret) return errors;
      // The trailing blank in this path is upstream's.
      if (!secret.name) return [...errors, required(child(at, "nodePublishSecretRef ", "name"))];
      return [...errors, ...saying(dns1123SubdomainProblems(secret.name), secret.name, child(at, "name"))];
    },
  },
  { field: "ephemeral", check: ({ ephemeral }, at) => checkEphemeral(ephemeral ?? {}, at, options) },
];

function keyToPath(item: KeyToPath, path: string): FieldError[] {
  return [
    ...need(item.key, child(path, "key")),
    ...need(item.path, child(path, "path")),
    ...localNonReservedPath(item.path ?? "", child(path, "path")),
    ...fileMode(item.mode, child(path, "mode")),
  ];
}

function downwardFile(file: DownwardAPIVolumeFile, path: string, options: PodValidationOptions): FieldError[] {
  const errors = [...need(file.path, child(path, "path")), ...localNonReservedPath(file.path ?? "", child(path, "path"))];
  if (file.fieldRef) {
    errors.push(...checkFieldRef(file.fieldRef, downwardVolumeFields, child(path, "fieldRef")));
    if (file.resourceFieldRef)
      errors.push(invalidValue(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
  } else if (file.resourceFieldRef) {
    const at = child(path, "resourceFieldRef");
    errors.push(...checkResourceFieldRef(file.resourceFieldRef, at, { volume: true, hugePages: options.hugePagesInDownwardApi }));
  } else {
    errors.push(required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  return [...errors, ...fileMode(file.mode, child(path, "mode"))];
}

/** All sources are projected into one directory, so their paths must be distinct. */
function* checkProjected(projected: ProjectedVolumeSource, path: string, options: PodValidationOptions): Steps<FieldError[]> {
  const taken = new Set<string>();
  const claimPath = (target: string | undefined, shown: string): FieldError[] => {
    if (!target) return [];
    if (taken.has(target)) return [invalidValue(path, shown, "conflicting duplicate paths")];
    taken.add(target);
    return [];
  };
  return [
    ...fileMode(projected.defaultMode, child(path, "defaultMode")),
    ...(yield* eachWithSteps(projected.sources, child(path, "sources"), (source, at) =>
      projection(source, at, path, claimPath, options),
    )),
  ];
}

function* projection(
  source: VolumeProjection,
  at: string,
  volumePath: string,
  claimPath: (target: string | undefined, shown: string) => FieldError[],
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const { downwardAPI, serviceAccountToken } = source;
  for (const field of ["secret", "configMap"] as const) {
    const part = source[field];
    if (!part) continue;
    errors.push(...need(part.name, child(at, field, "name")));
    const items = yield* eachInSteps(part.items, child(at, field, "items"), (item, path) => [
      ...keyToPath(item, path),
      ...claimPath(item.path, part.name ?? ""),
    ]);
    addErrors(errors, items);
  }
  const files = yield* eachInSteps(downwardAPI?.items, at, (file) => [
    ...downwardFile(file, child(at, "downwardAPI"), options),
    ...claimPath(file.path, file.path ?? ""),
  ]);
  addErrors(errors, files);
  if (serviceAccountToken) {
    const path = child(at, "serviceAccountToken", "expirationSeconds");
    const seconds = serviceAccountToken.expirationSeconds ?? 0;
    if (seconds < 600) errors.push(invalidValue(path, seconds, "may not specify a duration less than 10 minutes"));
    if (seconds > 2 ** 32) errors.push(invalidValue(path, seconds, "may not specify a duration larger than 2^32 seconds"));
    errors.push(...need(serviceAccountToken.path, child(volumePath, "path")));
  }
  const kinds = [source.secret, source.configMap, downwardAPI, serviceAccountToken].filter(Boolean).length;
  if (kinds > 1) errors.push(forbiddenField(at, moreThanOneText));
  return errors;
}

function* checkEphemeral(source: EphemeralVolumeSource, path: string, options: PodValidationOptions): Steps<FieldError[]> {
  const at = child(path, "volumeClaimTemplate");
  const template = source.volumeClaimTemplate;
  if (!template) return [required(at)];
  const metadata = child(at, "metadata");
  return [
    ...(yield* checkingAnnotations(template.metadata?.annotations, child(metadata, "annotations"))),
    ...(yield* checkingLabels(template.metadata?.labels, child(metadata, "labels"))),
    ...onlyLabelsAndAnnotations(template.metadata, metadata),
    ...(yield* validateClaimSpec(template.spec ?? {}, child(at, "spec"), options.featureEnabled("ReadWriteOncePod"))),
  ];
}

import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  DownwardAPIVolumeFile,
  KeyToPath,
  ObjectFieldSelector,
  ProjectedVolumeSource,
  ResourceFieldSelector,
  Volume,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import { dns1123Label, isQualifiedName, quantityOf } from "../../../field-checks.ts";
import { checkDriverName } from "../../../storage/csidrivers/strategy.ts";
import { validateClaimSpec } from "../../persistentvolumeclaims/validation.ts";

/**
 * @returns the names of the volumes, for the mounts that refer to them.
 * Source: pkg/apis/core/validation ValidateVolumes
 */
export function validateVolumes(
  volumes: readonly Volume[],
  path: string,
  podName: string,
): { names: Map<string, Volume>; errors: FieldError[] } {
  const errors: FieldError[] = [];
  const names = new Map<string, Volume>();
  for (const [i, volume] of volumes.entries()) {
    const at = index(path, i);
    const own = validateSource(volume, at, podName);
    if (!volume.name) own.push(required(child(at, "name"), ""));
    else {
      own.push(...dns1123Label(volume.name, child(at, "name")));
      if (names.has(volume.name)) own.push(duplicate(child(at, "name"), volume.name));
    }
    if (own.length === 0) names.set(volume.name, volume);
    errors.push(...own);
  }
  return { names, errors };
}

type Source = Exclude<keyof Volume, "name">;

/** One check for each kind of volume; kinds that are not here need nothing but to be alone. */
const checks: Partial<Record<Source, (volume: Volume, path: string, podName: string) => FieldError[]>> = {
  emptyDir(volume, path) {
    const limit = volume.emptyDir?.sizeLimit;
    if (limit !== undefined && limit !== null && quantityOf(limit).sign < 0) {
      return [forbiddenField(child(path, "sizeLimit"), "SizeLimit field must be a valid resource quantity")];
    }
    return [];
  },
  hostPath(volume, path) {
    const hostPath = volume.hostPath;
    if (!hostPath?.path) return [required(child(path, "path"))];
    const errors = withoutBacksteps(hostPath.path, child(path, "path"));
    const types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if (hostPath.type !== undefined && !types.includes(hostPath.type))
      errors.push(notSupported(child(path, "type"), hostPath.type, types));
    return errors;
  },
  gitRepo: (volume, path) => [
    ...need(volume.gitRepo?.repository, child(path, "repository")),
    ...localDescendingPath(volume.gitRepo?.directory ?? "", child(path, "directory")),
  ],
  gcePersistentDisk(volume, path) {
    const errors = need(volume.gcePersistentDisk?.pdName, child(path, "pdName"));
    return [...errors, ...partition(volume.gcePersistentDisk?.partition, child(path, "partition"))];
  },
  awsElasticBlockStore: (volume, path) => [
    ...need(volume.awsElasticBlockStore?.volumeID, child(path, "volumeID")),
    ...partition(volume.awsElasticBlockStore?.partition, child(path, "partition")),
  ],
  secret: (volume, path) => [
    ...need(volume.secret?.secretName, child(path, "secretName")),
    ...fileMode(volume.secret?.defaultMode, child(path, "defaultMode")),
    ...keysToPaths(volume.secret?.items, child(path, "items")),
  ],
  configMap: (volume, path) => [
    ...need(volume.configMap?.name, child(path, "name")),
    ...fileMode(volume.configMap?.defaultMode, child(path, "defaultMode")),
    ...keysToPaths(volume.configMap?.items, child(path, "items")),
  ],
  nfs(volume, path) {
    const errors = [...need(volume.nfs?.server, child(path, "server")), ...need(volume.nfs?.path, child(path, "path"))];
    if (volume.nfs?.path && !volume.nfs.path.startsWith("/"))
      errors.push(invalidValue(child(path, "path"), volume.nfs.path, "must be an absolute path"));
    return errors;
  },
  iscsi(volume, path) {
    const { targetPortal, iqn = "", lun = 0, chapAuthDiscovery, chapAuthSession, secretRef } = volume.iscsi ?? {};
    const errors = [...need(targetPortal, child(path, "targetPortal")), ...need(iqn, child(path, "iqn"))];
    if (iqn !== "" && !/^(iqn|eui|naa)\./.test(iqn))
      errors.push(invalidValue(child(path, "iqn"), iqn, "must be valid format starting with iqn, eui, or naa"));
    if (lun < 0 || lun > 255) errors.push(invalidValue(child(path, "lun"), lun, "must be between 0 and 255, inclusive"));
    if ((chapAuthDiscovery || chapAuthSession) && !secretRef) errors.push(required(child(path, "secretRef")));
    return errors;
  },
  glusterfs: (volume, path) => [
    ...need(volume.glusterfs?.endpoints, child(path, "endpoints")),
    ...need(volume.glusterfs?.path, child(path, "path")),
  ],
  rbd(volume, path) {
    const errors: FieldError[] = [];
    if (!volume.rbd?.monitors?.length) errors.push(required(child(path, "monitors")));
    return [...errors, ...need(volume.rbd?.image, child(path, "image"))];
  },
  cinder: (volume, path) => need(volume.cinder?.volumeID, child(path, "volumeID")),
  cephfs: (volume, path) => (volume.cephfs?.monitors?.length ? [] : [required(child(path, "monitors"))]),
  flocker(volume, path) {
    const { datasetName, datasetUUID } = volume.flocker ?? {};
    if (!datasetName && !datasetUUID)
      return [required(child(path, "datasetName"), "one of datasetName and datasetUUID is required")];
    if (datasetName && datasetUUID)
      return [invalidValue(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")];
    return datasetName?.includes("/") ? [invalidValue(child(path, "datasetName"), datasetName, "must not contain '/'")] : [];
  },
  downwardAPI(volume, path) {
    const errors = fileMode(volume.downwardAPI?.defaultMode, child(path, "defaultMode"));
    for (const item of volume.downwardAPI?.items ?? []) errors.push(...downwardFile(item, path));
    return errors;
  },
  fc(volume, path) {
    const { targetWWNs, lun, wwids } = volume.fc ?? {};
    if (!targetWWNs?.length && !wwids?.length)
      return [required(child(path, "targetWWNs"), "must specify either targetWWNs or wwids, but not both")];
    if (targetWWNs?.length && wwids?.length)
      return [invalidValue(child(path, "targetWWNs"), targetWWNs, "targetWWNs and wwids can not be specified simultaneously")];
    if (targetWWNs?.length && lun === undefined)
      return [required(child(path, "lun"), "lun is required if targetWWNs is specified")];
    if (targetWWNs?.length && lun !== undefined && (lun < 0 || lun > 255))
      return [invalidValue(child(path, "lun"), lun, "must be between 0 and 255, inclusive")];
    return [];
  },
  persistentVolumeClaim: (volume, path) => need(volume.persistentVolumeClaim?.claimName, child(path, "claimName")),
  flexVolume: (volume, path) => need(volume.flexVolume?.driver, child(path, "driver")),
  azureFile: (volume, path) => [
    ...need(volume.azureFile?.secretName, child(path, "secretName")),
    ...need(volume.azureFile?.shareName, child(path, "shareName")),
  ],
  azureDisk: (volume, path) => [
    ...need(volume.azureDisk?.diskName, child(path, "diskName")),
    ...need(volume.azureDisk?.diskURI, child(path, "diskURI")),
  ],
  vsphereVolume: (volume, path) => need(volume.vsphereVolume?.volumePath, child(path, "volumePath")),
  photonPersistentDisk: (volume, path) => need(volume.photonPersistentDisk?.pdID, child(path, "pdID")),
  portworxVolume: (volume, path) => need(volume.portworxVolume?.volumeID, child(path, "volumeID")),
  quobyte(volume, path) {
    const { registry, volume: name, tenant = "" } = volume.quobyte ?? {};
    const errors: FieldError[] = [];
    if (!registry)
      errors.push(required(child(path, "registry"), "must be a host:port pair or multiple pairs separated by commas"));
    if (tenant.length >= 65)
      errors.push(required(child(path, "tenant"), "must be a UUID and may not exceed a length of 64 characters"));
    return [...errors, ...need(name, child(path, "volume"))];
  },
  scaleIO: (volume, path) => [
    ...need(volume.scaleIO?.gateway, child(path, "gateway")),
    ...need(volume.scaleIO?.system, child(path, "system")),
    ...need(volume.scaleIO?.volumeName, child(path, "volumeName")),
  ],
  storageos: (volume, path) => need(volume.storageos?.volumeName, child(path, "volumeName")),
  csi(volume, path) {
    const errors = checkDriverName(volume.csi?.driver ?? "", child(path, "driver"));
    const secret = volume.csi?.nodePublishSecretRef;
    if (secret && !secret.name) errors.push(required(child(path, "nodePublishSecretRef", "name"), ""));
    return errors;
  },
  projected: (volume, path) => [
    ...fileMode(volume.projected?.defaultMode, child(path, "defaultMode")),
    ...projectedSources(volume.projected, path),
  ],
  ephemeral(volume, path, podName) {
    const template = volume.ephemeral?.volumeClaimTemplate;
    const at = child(path, "volumeClaimTemplate");
    if (!template) return [required(at)];
    const errors = validateClaimSpec(template.spec ?? {}, child(at, "spec"));
    const claimName = `${podName}-${volume.name}`;
    if (podName !== "" && claimName.length > 253) {
      errors.push(invalidValue(path, volume.name, `PVC name "${claimName}": must be no more than 253 characters`));
    }
    return errors;
  },
};

function validateSource(volume: Volume, path: string, podName: string): FieldError[] {
  const errors: FieldError[] = [];
  let found = 0;
  for (const [source, value] of Object.entries(volume)) {
    if (source === "name" || value === undefined || value === null) continue;
    const at = child(path, source);
    found++;
    if (found > 1) {
      errors.push(forbiddenField(at, "may not specify more than 1 volume type"));
      continue;
    }
    if (Object.hasOwn(checks, source)) errors.push(...(checks[source as Source]?.(volume, at, podName) ?? []));
  }
  if (found === 0) errors.push(required(path, "must specify a volume type"));
  return errors;
}

function need(value: string | undefined, path: string): FieldError[] {
  return value ? [] : [required(path)];
}

function partition(value: number | undefined, path: string): FieldError[] {
  return value !== undefined && (value < 0 || value > 255)
    ? [invalidValue(path, value, "must be between 0 and 255, inclusive")]
    : [];
}

function fileMode(mode: number | undefined | null, path: string): FieldError[] {
  return mode !== undefined && mode !== null && (mode > 0o777 || mode < 0)
    ? [invalidValue(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
    : [];
}

/** Source: pkg/apis/core/validation validateLocalNonReservedPath, validateLocalDescendingPath */
function localNonReservedPath(target: string, path: string): FieldError[] {
  const errors = localDescendingPath(target, path);
  if (target.startsWith("..") && !target.startsWith("../") && target !== "..")
    errors.push(invalidValue(path, target, "must not start with '..'"));
  return errors;
}

export function localDescendingPath(target: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (target.startsWith("/")) errors.push(invalidValue(path, target, "must be a relative path"));
  return [...errors, ...withoutBacksteps(target, path)];
}

export function withoutBacksteps(target: string, path: string): FieldError[] {
  return target.split("/").includes("..") ? [invalidValue(path, target, "must not contain '..'")] : [];
}

function keysToPaths(items: readonly KeyToPath[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, item] of (items ?? []).entries()) {
    const at = index(path, i);
    errors.push(...need(item.key, child(at, "key")));
    if (!item.path) errors.push(required(child(at, "path")));
    else errors.push(...localNonReservedPath(item.path, child(at, "path")));
    errors.push(...fileMode(item.mode, child(at, "mode")));
  }
  return errors;
}

const downwardVolumeFields = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

function downwardFile(file: DownwardAPIVolumeFile, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!file.path) errors.push(required(child(path, "path")));
  else errors.push(...localNonReservedPath(file.path, child(path, "path")));
  if (file.fieldRef) {
    errors.push(...checkFieldRef(file.fieldRef, downwardVolumeFields, child(path, "fieldRef")));
    if (file.resourceFieldRef)
      errors.push(invalidValue(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
  } else if (file.resourceFieldRef) {
    errors.push(...checkResourceFieldRef(file.resourceFieldRef, child(path, "resourceFieldRef"), true));
  } else {
    errors.push(required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  return [...errors, ...fileMode(file.mode, child(path, "mode"))];
}

/** `metadata.labels['key']` or one of the known paths. Source: pkg/apis/core/validation validateObjectFieldSelector */
export function checkFieldRef(reference: ObjectFieldSelector, known: readonly string[], path: string): FieldError[] {
  if (!reference.apiVersion) return [required(child(path, "apiVersion"))];
  if (!reference.fieldPath) return [required(child(path, "fieldPath"))];
  const at = child(path, "fieldPath");
  if (reference.apiVersion !== "v1") {
    return [
      invalidValue(at, reference.fieldPath, `error converting fieldPath: unsupported pod version: ${reference.apiVersion}`),
    ];
  }
  const subscript = /^(.*)\['(.*)'\]$/.exec(reference.fieldPath);
  if (subscript) {
    const [, base = "", key = ""] = subscript;
    if (base === "metadata.annotations")
      return isQualifiedName(key.toLowerCase()).map((message) => invalidValue(path, key, message));
    if (base === "metadata.labels") return isQualifiedName(key).map((message) => invalidValue(path, key, message));
    return [invalidValue(path, base, "does not support subscript")];
  }
  if (!convertibleFields.includes(reference.fieldPath)) {
    return [
      invalidValue(at, reference.fieldPath, `error converting fieldPath: field label not supported: ${reference.fieldPath}`),
    ];
  }
  return known.includes(reference.fieldPath) ? [] : [notSupported(at, reference.fieldPath, [...known].sort())];
}

const convertibleFields = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.schedulerName",
  "status.phase",
  "status.hostIP",
  "status.podIP",
  "status.podIPs",
];

const downwardResources = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const divisors: Readonly<Record<string, readonly string[]>> = {
  cpu: ["1m", "1"],
  memory: ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"],
};

/** Source: pkg/apis/core/validation validateContainerResourceFieldSelector */
export function checkResourceFieldRef(reference: ResourceFieldSelector, path: string, volume: boolean): FieldError[] {
  if (volume && !reference.containerName) return [required(child(path, "containerName"))];
  if (!reference.resource) return [required(child(path, "resource"))];
  const { resource } = reference;
  const hugePages = /^(limits|requests)\.hugepages-/.test(resource);
  if (!downwardResources.includes(resource) && !hugePages) {
    return [notSupported(child(path, "resource"), resource, downwardResources)];
  }
  const divisor = reference.divisor === undefined ? "0" : quantityOf(reference.divisor).toString();
  if (divisor === "0") return [];
  const valid = resource.endsWith(".cpu") ? divisors.cpu : divisors.memory;
  if (valid?.includes(divisor)) return [];
  if (resource.endsWith(".cpu"))
    return [invalidValue(child(path, "divisor"), resource, "only divisor's values 1m and 1 are supported with the cpu resource")];
  const what = resource.endsWith(".ephemeral-storage") ? "local ephemeral storage" : "memory";
  return [
    invalidValue(
      child(path, "divisor"),
      resource,
      `only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the ${what} resource`,
    ),
  ];
}

function projectedSources(projected: ProjectedVolumeSource | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  const unique = (target: string, at: string): void => {
    if (!target) return;
    if (paths.has(target)) errors.push(invalidValue(at, target, "conflicting duplicate paths"));
    paths.add(target);
  };
  for (const [i, source] of (projected?.sources ?? []).entries()) {
    const at = index(child(path, "sources"), i);
    let found = 0;
    const only = (field: string): boolean => {
      found++;
      if (found > 1) errors.push(forbiddenField(child(at, field), "may not specify more than 1 volume type per source"));
      return found === 1;
    };
    for (const field of ["secret", "configMap"] as const) {
      const part = source[field];
      if (!part || !only(field)) continue;
      errors.push(...need(part.name, child(at, field, "name")), ...keysToPaths(part.items, child(at, field, "items")));
      for (const item of part.items ?? []) unique(item.path, path);
    }
    if (source.downwardAPI && only("downwardAPI")) {
      for (const [j, item] of (source.downwardAPI.items ?? []).entries()) {
        errors.push(...downwardFile(item, index(child(at, "downwardAPI"), j)));
        unique(item.path, path);
      }
    }
    if (source.serviceAccountToken && only("serviceAccountToken")) {
      const token = source.serviceAccountToken;
      const tokenPath = child(at, "serviceAccountToken");
      const seconds = token.expirationSeconds;
      if (seconds !== undefined && seconds < 600) {
        errors.push(
          invalidValue(child(tokenPath, "expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"),
        );
      }
      if (seconds !== undefined && seconds > 2 ** 32) {
        errors.push(
          invalidValue(child(tokenPath, "expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"),
        );
      }
      if (!token.path) errors.push(required(child(tokenPath, "path")));
      else {
        errors.push(...localNonReservedPath(token.path, child(tokenPath, "path")));
        unique(token.path, path);
      }
    }
  }
  return errors;
}

import {
  child,
  type FieldError,
  fieldNotFound,
  forbiddenField,
  invalidValue,
  notSupported,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { Container, Volume, VolumeMount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { eachInSteps, need } from "../../../rules.ts";
import { localDescendingPath } from "./paths.ts";

type Volumes = ReadonlyMap<string, Volume>;

/**
 * Validates the volume mounts of a container.
 * @param path of volumeMounts; some error paths below it lack the index, like upstream's
 * Source: pkg/apis/core/validation ValidateVolumeMounts
 */
export function validateMounts(container: Container, volumes: Volumes, path: string): Steps<FieldError[]> {
  const points = new Set<string>();
  const devices = setsOf(container.volumeDevices, ({ devicePath }) => devicePath);
  return eachInSteps(container.volumeMounts, path, (mount, at) => {
    const { name = "", mountPath = "" } = mount;
    const errors = need(name, child(at, "name"));
    if (!volumes.has(name)) errors.push(fieldNotFound(child(at, "name"), name));
    errors.push(...need(mountPath, child(at, "mountPath")));
    if (points.has(mountPath)) errors.push(invalidValue(child(at, "mountPath"), mountPath, "must be unique"));
    points.add(mountPath);
    if (devices.names.has(name)) errors.push(invalidValue(child(at, "name"), name, "must not already exist in volumeDevices"));
    if (devices.paths.has(mountPath))
      errors.push(invalidValue(child(at, "mountPath"), mountPath, "must not already exist as a path in volumeDevices"));
    return [...errors, ...subPaths(mount, at, path), ...propagation(mount, container, path)];
  });
}

/** The names and paths of mounts or devices, for lookups: a container may have thousands of both. */
function setsOf<T extends { readonly name?: string }>(list: readonly T[] | undefined, pathOf: (one: T) => string | undefined) {
  return { names: new Set(list?.map(({ name }) => name)), paths: new Set(list?.map(pathOf)) };
}

function subPaths({ subPath, subPathExpr }: VolumeMount, at: string, path: string): FieldError[] {
  const errors = subPath ? localDescendingPath(subPath, child(path, "subPath")) : [];
  if (!subPathExpr) return errors;
  if (subPath) errors.push(invalidValue(child(at, "subPathExpr"), subPathExpr, "subPathExpr and subPath are mutually exclusive"));
  return [...errors, ...localDescendingPath(subPathExpr, child(path, "subPathExpr"))];
}

const propagations = ["Bidirectional", "HostToContainer", "None"];

function propagation(mount: VolumeMount, container: Container, path: string): FieldError[] {
  const mode: string | undefined = mount.mountPropagation;
  if (mode === undefined || mode === null) return [];
  const at = child(path, "mountPropagation");
  const errors = propagations.includes(mode) ? [] : [notSupported(at, mode, propagations)];
  if (mode === "Bidirectional" && !container.securityContext?.privileged)
    errors.push(forbiddenField(at, "Bidirectional mount propagation is available only to privileged containers"));
  return errors;
}

const blockText = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";

/**
 * Only claims and ephemeral volumes can be devices; a volume or path is either a device or a mount, and only once.
 * Source: pkg/apis/core/validation ValidateVolumeDevices
 */
export function validateDevices(container: Container, volumes: Volumes, path: string): Steps<FieldError[]> {
  const names = new Set<string>();
  const paths = new Set<string>();
  const mounts = setsOf(container.volumeMounts, ({ mountPath }) => mountPath);
  return eachInSteps(container.volumeDevices, path, (device, at) => {
    const { name = "", devicePath = "" } = device;
    const volume = volumes.get(name);
    const errors = need(name, child(at, "name"));
    if (names.has(name)) errors.push(invalidValue(child(at, "name"), name, "must be unique"));
    if (volume && !volume.persistentVolumeClaim && !volume.ephemeral)
      errors.push(invalidValue(child(at, "name"), name, blockText));
    if (!volume) errors.push(fieldNotFound(child(at, "name"), name));
    errors.push(...need(devicePath, child(at, "devicePath")));
    if (paths.has(devicePath)) errors.push(invalidValue(child(at, "devicePath"), devicePath, "must be unique"));
    if (devicePath.split("/").includes(".."))
      errors.push(invalidValue(child(at, "devicePath"), devicePath, "can not contain backsteps ('..')"));
    else paths.add(devicePath);
    if (mounts.names.has(name)) errors.push(invalidValue(child(at, "name"), name, "must not already exist in volumeMounts"));
    if (mounts.paths.has(devicePath))
      errors.push(invalidValue(child(at, "devicePath"), devicePath, "must not already exist as a path in volumeMounts"));
    if (name) names.add(name);
    return errors;
  });
}

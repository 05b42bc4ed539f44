/**
 * Validates the volumes of a pod against a policy.
 * Source: pkg/security/podsecuritypolicy/provider.go validatePodVolumes, util/util.go
 */
import { child, type FieldError, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import type { ProjectedVolumeSource, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { allContainers } from "../plugins/pod-containers.ts";
import type { PodObject } from "../plugins/pod-of.ts";
import type { Policy } from "./mutate.ts";

export function volumeErrors(policy: Policy, pod: PodObject): FieldError[] {
  const allowed = new Set<string>(policy.spec.volumes);
  return (pod.spec.volumes ?? []).flatMap((volume, i) => {
    const path = index("spec.volumes", i);
    const type = typeOf(volume);
    if (!allowed.has("*") && !allowed.has(type) && !isTokenVolume(volume, allowed)) {
      return [invalidValue(path, type, `${type} volumes are not allowed to be used`)];
    }
    if (volume.hostPath !== undefined) return hostPathErrors(policy, pod, volume, path);
    if (volume.flexVolume !== undefined) {
      const drivers = policy.spec.allowedFlexVolumes?.map(({ driver }) => driver) ?? [];
      const text = "Flexvolume driver is not allowed to be used";
      return driverErrors(drivers, volume.flexVolume.driver, child(path, "driver"), text);
    }
    if (volume.csi !== undefined) {
      const drivers = policy.spec.allowedCSIDrivers?.map(({ name }) => name) ?? [];
      return driverErrors(drivers, volume.csi.driver, child(path, "csi.driver"), "Inline CSI driver is not allowed to be used");
    }
    return [];
  });
}

/** The volume type as named in policies. */
function typeOf(volume: Volume): string {
  const field = Object.entries(volume).find(([key, value]) => key !== "name" && value !== undefined && value !== null)?.[0] ?? "";
  return field === "cephfs" ? "cephFS" : field;
}

/** A policy that allows secrets also allows the projected token volume, which replaced the token secret. */
function isTokenVolume({ projected }: Volume, allowed: ReadonlySet<string>): boolean {
  return projected !== undefined && allowed.has("secret") && hasOnlyTokenSources(projected);
}

function hasOnlyTokenSources({ sources = [] }: ProjectedVolumeSource): boolean {
  return sources.every(({ serviceAccountToken, configMap, downwardAPI }) => {
    if (serviceAccountToken !== undefined) return serviceAccountToken.path === "token" && !serviceAccountToken.audience;
    if (configMap !== undefined) return configMap.name === "kube-root-ca.crt";
    if (downwardAPI === undefined) return false;
    return (downwardAPI.items ?? []).every(
      ({ path, fieldRef }) =>
        path === "namespace" && fieldRef?.apiVersion === "v1" && fieldRef.fieldPath === "metadata.namespace",
    );
  });
}

/** An empty list allows all drivers. */
function driverErrors(allowed: readonly string[], driver: string, path: string, text: string): FieldError[] {
  return allowed.length === 0 || allowed.includes(driver) ? [] : [invalidValue(path, driver, text)];
}

function hostPathErrors(policy: Policy, pod: PodObject, { name, hostPath }: Volume, path: string): FieldError[] {
  const { allowedHostPaths = [] } = policy.spec;
  if (allowedHostPaths.length === 0) return [];
  const place = hostPath?.path ?? "";
  const covering = allowedHostPaths.filter(({ pathPrefix }) => isBelow(place, pathPrefix ?? ""));
  if (covering.length === 0) return [invalidValue(child(path, "hostPath.pathPrefix"), place, "is not allowed to be used")];
  if (covering.some(({ readOnly }) => readOnly !== true)) return [];
  return allContainers(pod).flatMap(({ container, path: at }) =>
    (container.volumeMounts ?? []).flatMap((mount, i) =>
      mount.name === name && mount.readOnly !== true
        ? [invalidValue(child(index(child(at, "volumeMounts"), i), "readOnly"), false, "must be read-only")]
        : [],
    ),
  );
}

/** Compares whole path elements: `/foo` covers `/foo/bar`, not `/foobar`. */
function isBelow(path: string, prefix: string): boolean {
  const withoutSlash = (text: string): string => text.replace(/\/$/, "");
  const [place, top] = [withoutSlash(path), withoutSlash(prefix)];
  return place === top || place.startsWith(`${top}/`);
}

import { parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  mapKey,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { appArmorContainer, seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { Pod, PodSpec, SeccompProfile, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { validateTolerations } from "./affinity.ts";
import { deletionCost, podDeletionCostFault } from "./deletion-cost.ts";
import { containerLists, type PodValidationOptions } from "./options.ts";
import { localDescendingPath } from "./paths.ts";

type Annotations = Readonly<Record<string, string>> | undefined | null;

const mirror = "kubernetes.io/config.mirror";
const tolerationsKey = "scheduler.alpha.kubernetes.io/tolerations";

/**
 * Validates well-known pod annotations.
 * @param path `metadata.annotations`
 * Source: pkg/apis/core/validation ValidatePodSpecificAnnotations
 */
export function* validatePodAnnotations(
  annotations: Annotations,
  spec: PodSpec,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const all = annotations ?? {};
  if (Object.hasOwn(all, mirror) && !spec.nodeName)
    errors.push(invalidValue(mapKey(path, mirror), all[mirror], "must set spec.nodeName if mirror pod annotation is set"));
  if (Object.hasOwn(all, tolerationsKey) && all[tolerationsKey])
    addErrors(errors, yield* serializedTolerations(all[tolerationsKey], path));
  if (!options.anyPodDeletionCost && podDeletionCostFault(all) !== undefined)
    errors.push(invalidValue(mapKey(path, deletionCost), all[deletionCost], "must be a 32bit integer"));
  yield;
  // Object.entries of many takes several times as long as their keys.
  const keys = Object.keys(all);
  addErrors(errors, validateSeccompAnnotations(all, keys, path));
  yield;
  const containers = new Set(containerNames(spec));
  for (const key of keys) {
    if (!key.startsWith(appArmorContainer)) continue;
    const container = key.slice(appArmorContainer.length);
    const profile = all[key]!;
    if (!containers.has(container)) errors.push(invalidValue(mapKey(path, key), container, "container not found"));
    if (!isAppArmorProfile(profile))
      errors.push(invalidValue(mapKey(path, key), profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`));
  }
  return errors;
}

/** Immutable annotations. Source: pkg/apis/core/validation ValidatePodSpecificAnnotationUpdates */
export function* validatePodAnnotationsUpdate(
  next: Pod,
  current: Pod,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const [now, old] = [next.metadata.annotations ?? {}, current.metadata.annotations ?? {}];
  for (const key of Object.keys(old)) {
    if (Object.hasOwn(now, key) && now[key] === old[key]) continue;
    const what = guarded(key);
    if (what) errors.push(forbiddenField(mapKey(path, key), `may not remove or update ${what}`));
  }
  yield;
  for (const key of Object.keys(now)) {
    const what = Object.hasOwn(old, key) ? undefined : guarded(key);
    if (what) errors.push(forbiddenField(mapKey(path, key), `may not add ${what}`));
  }
  yield;
  addErrors(errors, yield* validatePodAnnotations(now, next.spec, path, options));
  return errors;
}

function guarded(key: string): string | undefined {
  if (key.startsWith(appArmorContainer)) return "AppArmor annotations";
  return key === mirror ? "mirror pod annotation" : undefined;
}

/** Whether a pod represents a static pod of a kubelet. */
export const isMirrorPod = (pod: Pod): boolean => Object.hasOwn(pod.metadata.annotations ?? {}, mirror);

function* serializedTolerations(text: string, path: string): Steps<FieldError[]> {
  try {
    // Cast: a value of another form makes the check throw, which is caught.
    return yield* validateTolerations(parseJsonText(text) as Toleration[], child(path, tolerationsKey));
  } catch (err) {
    return [invalidValue(path, tolerationsKey, messageOf(err))];
  }
}

/** Whether an annotation may have this value: `runtime/default`, `unconfined`, `localhost/<profile>` or nothing. */
export function isAppArmorProfile(profile: string): boolean {
  return profile === "" || profile === "runtime/default" || profile === "unconfined" || profile.startsWith("localhost/");
}

function containerNames(spec: PodSpec): string[] {
  return containerLists.flatMap((list) => (spec[list] ?? []).map((container) => container.name));
}

/** Source: pkg/apis/core/validation ValidateSeccompPodAnnotations; pod security policies use the same profile names */
function validateSeccompAnnotations(
  annotations: Readonly<Record<string, string>>,
  keys: readonly string[],
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (Object.hasOwn(annotations, seccompPod)) errors.push(...checkSeccompName(annotations[seccompPod]!, child(path, seccompPod)));
  for (const key of keys)
    if (key.startsWith(seccompContainer)) errors.push(...checkSeccompName(annotations[key]!, child(path, key)));
  return errors;
}

/**
 * A profile in an annotation: `runtime/default`, `docker/default`, `unconfined` or `localhost/<path below the kubelet's
 * folder>`.
 */
export function checkSeccompName(profile: string, path: string): FieldError[] {
  if (profile === "runtime/default" || profile === "docker/default" || profile === "unconfined") return [];
  if (profile.startsWith("localhost/")) return localDescendingPath(profile.slice("localhost/".length), path);
  return [invalidValue(path, profile, "must be a valid seccomp profile")];
}

/** Seccomp annotations and fields must agree when both are set. Source: validateSeccompAnnotationsAndFields */
export function seccompFieldsMatchAnnotations(annotations: Annotations, spec: PodSpec, path: string): FieldError[] {
  const all = annotations ?? {};
  const errors: FieldError[] = [];
  const compare = (key: string, profile: SeccompProfile | undefined, at: string): void => {
    if (!profile || !Object.hasOwn(all, key)) return;
    errors.push(...seccompMatches(all[key]!, profile, child(at, "securityContext", "seccompProfile")));
  };
  compare(seccompPod, spec.securityContext?.seccompProfile, path);
  for (const list of containerLists) {
    for (const [i, container] of (spec[list] ?? []).entries())
      compare(`${seccompContainer}${container.name}`, container.securityContext?.seccompProfile, index(child(path, list), i));
  }
  return errors;
}

function seccompMatches(annotation: string, profile: SeccompProfile, path: string): FieldError[] {
  const differ = [forbiddenField(child(path, "type"), "seccomp type in annotation and field must match")];
  switch (profile.type) {
    case "Unconfined":
      return annotation === "unconfined" ? [] : differ;
    case "RuntimeDefault":
      return annotation === "runtime/default" || annotation === "docker/default" ? [] : differ;
    case "Localhost":
      if (!annotation.startsWith("localhost/")) return differ;
      if (annotation.slice("localhost/".length) === profile.localhostProfile) return [];
      return [forbiddenField(child(path, "localhostProfile"), "seccomp profile in annotation and field must match")];
    default:
      return [];
  }
}

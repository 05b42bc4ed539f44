/**
 * Seccomp and AppArmor profiles, which policies specify in annotations.
 * Source: pkg/security/podsecuritypolicy/{seccomp,apparmor}/strategy.go
 */
import { type FieldError, forbiddenField, mapKey } from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { appArmorContainer, seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { SeccompProfile } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodObject } from "../plugins/pod-of.ts";
import type { AnyContainer } from "./effective.ts";

const seccompDefault = "seccomp.security.alpha.kubernetes.io/defaultProfileName";
const seccompAllowed = "seccomp.security.alpha.kubernetes.io/allowedProfileNames";
const appArmorDefault = "apparmor.security.beta.kubernetes.io/defaultProfileName";
const appArmorAllowed = "apparmor.security.beta.kubernetes.io/allowedProfileNames";
/** Aliases of one profile: allowing either allows both. */
const runtimeDefault = ["runtime/default", "docker/default"];

function annotationOf({ metadata }: KubeObject, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

function annotate({ metadata }: KubeObject, key: string, value: string): void {
  metadata.annotations = { ...metadata.annotations, [key]: value };
}

/** The profile field in the format of the annotation. */
function seccompText(profile: SeccompProfile | undefined): string {
  switch (profile?.type) {
    case "Unconfined":
      return "unconfined";
    case "RuntimeDefault":
      return "runtime/default";
    case "Localhost":
      return profile.localhostProfile ? `localhost/${profile.localhostProfile}` : "";
    default:
      return "";
  }
}

function seccompField(text: string): SeccompProfile | undefined {
  if (text === "unconfined") return { type: "Unconfined" };
  if (runtimeDefault.includes(text)) return { type: "RuntimeDefault" };
  if (text.startsWith("localhost/")) return { type: "Localhost", localhostProfile: text.slice("localhost/".length) };
  return undefined;
}

/** Sets the policy's default profile, as annotation and as field, when the pod has none. */
export function setSeccomp(policy: KubeObject, pod: PodObject): void {
  const had = annotationOf(pod, seccompPod) || seccompText(pod.spec.securityContext?.seccompProfile);
  const profile = had || annotationOf(policy, seccompDefault);
  if (!profile) return;
  annotate(pod, seccompPod, profile);
  const field = seccompField(profile);
  if (field !== undefined) pod.spec.securityContext = { ...pod.spec.securityContext, seccompProfile: field };
}

/** Sets the policy's default profile as annotation when the container has none. */
export function setAppArmor(policy: KubeObject, pod: PodObject, { name }: AnyContainer): void {
  const profile = annotationOf(policy, appArmorDefault);
  if (!profile || annotationOf(pod, appArmorContainer + name)) return;
  annotate(pod, appArmorContainer + name, profile);
}

/** Errors when the policy does not allow the pod's seccomp profile. */
export function seccompErrorsOfPod(policy: KubeObject, pod: PodObject): FieldError[] {
  const profile = annotationOf(pod, seccompPod) || seccompText(pod.spec.securityContext?.seccompProfile);
  return seccompErrors(policy, mapKey("pod.metadata.annotations", seccompPod), profile);
}

/** Like `seccompErrorsOfPod`, for the container's profile, which defaults to the pod's. */
export function seccompErrorsOfContainer(policy: KubeObject, pod: PodObject, container: AnyContainer): FieldError[] {
  const key = seccompContainer + container.name;
  const profile =
    annotationOf(pod, key) ||
    seccompText(container.securityContext?.seccompProfile) ||
    annotationOf(pod, seccompPod) ||
    seccompText(pod.spec.securityContext?.seccompProfile);
  return seccompErrors(policy, mapKey("pod.metadata.annotations", key), profile);
}

function seccompErrors(policy: KubeObject, path: string, profile: string): FieldError[] {
  const shown = annotationOf(policy, seccompAllowed);
  const allowed = new Set(shown?.split(","));
  if (allowed.has("*")) return [];
  if (runtimeDefault.some((name) => allowed.has(name))) for (const name of runtimeDefault) allowed.add(name);
  if (allowed.size === 0) return profile === "" ? [] : [forbiddenField(path, "seccomp may not be set")];
  if (allowed.has(profile)) return [];
  return [forbiddenField(path, `${profile} is not an allowed seccomp profile. Valid values are ${shown}`)];
}

/** Errors when the policy restricts AppArmor and the container has no or another profile. */
export function appArmorErrors(policy: KubeObject, pod: PodObject, { name }: AnyContainer): FieldError[] {
  const shown = annotationOf(policy, appArmorAllowed);
  if (shown === undefined) return [];
  const path = mapKey("pod.metadata.annotations", appArmorContainer + name);
  const profile = annotationOf(pod, appArmorContainer + name);
  if (!profile) return [forbiddenField(path, "AppArmor profile must be set")];
  if (shown.split(",").includes(profile)) return [];
  return [forbiddenField(path, `${profile} is not an allowed profile. Allowed values: ${goQuote(shown)}`)];
}

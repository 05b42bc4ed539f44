import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { deepClone, semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { Container, ContainerStatus, Pod, Toleration } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isDns1123Subdomain, isQualifiedName } from "../../../field-checks.ts";
import type { PodValidationOptions } from "./options.ts";
import { validatePodCommon } from "./pod.ts";
import { specDifference } from "./spec-difference.ts";

const updatableText =
  "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/**
 * What may change in a pod that exists: images, an earlier deadline, more tolerations.
 * Source: pkg/apis/core/validation ValidatePodUpdate
 */
export function validatePodUpdate(next: Pod, current: Pod, options: PodValidationOptions): FieldError[] {
  const errors = validatePodCommon(next, options);
  errors.push(...sameNumber(next.spec.containers, current.spec.containers, "containers"));
  errors.push(...sameNumber(next.spec.initContainers, current.spec.initContainers, "initContainers"));
  if ((next.spec.containers ?? []).length !== (current.spec.containers ?? []).length) return errors;
  if ((next.spec.initContainers ?? []).length !== (current.spec.initContainers ?? []).length) return errors;
  for (const field of ["containers", "initContainers"] as const) {
    for (const [i, container] of (next.spec[field] ?? []).entries()) {
      const image = container.image ?? "";
      if (image !== "" && image.trim() !== image) {
        errors.push(
          invalidValue(child(index(child("spec", field), i), "image"), image, "must not have leading or trailing whitespace"),
        );
      }
    }
  }
  errors.push(...deadlineShrinks(next.spec.activeDeadlineSeconds, current.spec.activeDeadlineSeconds));
  errors.push(...onlyAdded(next.spec.tolerations ?? [], current.spec.tolerations ?? []));
  const munged = deepClone(next.spec);
  for (const field of ["containers", "initContainers"] as const) {
    for (const [i, container] of (munged[field] ?? []).entries()) takeImage(container, current.spec[field]?.[i]);
  }
  restore(munged, current.spec, "activeDeadlineSeconds");
  restore(munged, current.spec, "tolerations");
  if ((current.spec.terminationGracePeriodSeconds ?? 0) < 0 && next.spec.terminationGracePeriodSeconds === 1) {
    restore(munged, current.spec, "terminationGracePeriodSeconds");
  }
  if (!semanticEqual(munged, current.spec)) {
    errors.push(forbiddenField("spec", `${updatableText}\n${specDifference(munged, current.spec)}`));
  }
  return errors;
}

function sameNumber(next: readonly unknown[] | undefined, current: readonly unknown[] | undefined, field: string): FieldError[] {
  if ((next ?? []).length === (current ?? []).length) return [];
  return [forbiddenField(child("spec", field), "pod updates may not add or remove containers")];
}

function takeImage(container: Container, from: Container | undefined): void {
  if (from?.image === undefined) delete container.image;
  else container.image = from.image;
}

function restore<T extends object, K extends keyof T>(next: T, current: T, field: K): void {
  if (current[field] === undefined) delete next[field];
  else next[field] = current[field];
}

function deadlineShrinks(next: number | undefined, current: number | undefined): FieldError[] {
  const path = "spec.activeDeadlineSeconds";
  if (next === undefined || next === null) {
    return current === undefined || current === null
      ? []
      : [invalidValue(path, next ?? null, "must not update from a positive integer to nil value")];
  }
  if (next < 0 || next > 2 ** 31 - 1) return [invalidValue(path, next, "must be between 0 and 2147483647, inclusive")];
  if (current !== undefined && current !== null && current < next) {
    return [invalidValue(path, next, "must be less than or equal to previous value")];
  }
  return [];
}

/** Tolerations may be added, and the time of existing ones changed. */
function onlyAdded(next: readonly Toleration[], current: readonly Toleration[]): FieldError[] {
  for (const old of current) {
    const kept = next.some((toleration) =>
      semanticEqual({ ...toleration, tolerationSeconds: undefined }, { ...old, tolerationSeconds: undefined }),
    );
    if (!kept)
      return [forbiddenField("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")];
  }
  return [];
}

/** Source: pkg/apis/core/validation ValidatePodStatusUpdate */
export function validatePodStatusUpdate(next: Pod, current: Pod, options: PodValidationOptions): FieldError[] {
  void options;
  const errors: FieldError[] = [];
  const nominated = next.status?.nominatedNodeName;
  if (nominated) {
    for (const message of isDns1123Subdomain(nominated))
      errors.push(invalidValue("status.nominatedNodeName", nominated, message));
  }
  if (next.spec.nodeName !== current.spec.nodeName) {
    errors.push(forbiddenField("status.nodeName", "may not be changed directly"));
  }
  for (const [i, condition] of (next.status?.conditions ?? []).entries()) {
    const builtIn = ["PodScheduled", "Initialized", "Ready", "ContainersReady"].includes(condition.type);
    if (builtIn) continue;
    for (const message of isQualifiedName(condition.type ?? ""))
      errors.push(invalidValue(index("status.conditions", i) + ".type", condition.type ?? "", message));
  }
  const policy = current.spec.restartPolicy ?? "Always";
  errors.push(
    ...noRestart(next.status?.containerStatuses, current.status?.containerStatuses, "status.containerStatuses", policy),
  );
  errors.push(
    ...noRestart(
      next.status?.initContainerStatuses,
      current.status?.initContainerStatuses,
      "status.initContainerStatuses",
      policy === "Always" ? "OnFailure" : policy,
    ),
  );
  return errors;
}

/** A container that is over does not come back to life when the restart policy says that it stays over. */
function noRestart(
  next: readonly ContainerStatus[] | undefined,
  current: readonly ContainerStatus[] | undefined,
  path: string,
  restartPolicy: string,
): FieldError[] {
  if (restartPolicy === "Always") return [];
  const errors: FieldError[] = [];
  for (const [i, old] of (current ?? []).entries()) {
    const terminated = old.state?.terminated;
    if (!terminated) continue;
    if ((terminated.exitCode ?? 0) !== 0 && restartPolicy === "OnFailure") continue;
    const now = (next ?? []).find((status) => status.name === old.name);
    if (now && !now.state?.terminated) {
      errors.push(forbiddenField(child(index(path, i), "state"), "may not be transitioned to non-terminated state"));
    }
  }
  return errors;
}

/** Source: pkg/apis/core/validation ValidatePodEphemeralContainersUpdate */
export function validateEphemeralContainersUpdate(next: Pod, current: Pod, options: PodValidationOptions): FieldError[] {
  const errors = validatePodCommon(next, options);
  const added = next.spec.ephemeralContainers ?? [];
  for (const old of current.spec.ephemeralContainers ?? []) {
    const found = added.findIndex((container) => container.name === old.name);
    if (found < 0) {
      errors.push(forbiddenField("spec.ephemeralContainers", `existing ephemeral containers "${old.name}" may not be removed\n`));
    } else if (!semanticEqual(added[found], old)) {
      errors.push(
        forbiddenField(
          "spec.ephemeralContainers",
          `existing ephemeral containers "${old.name}" may not be changed\n${specDifference(added[found], old)}`,
        ),
      );
    }
  }
  if (current.metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined) {
    errors.push(forbiddenField("", "static pods do not support ephemeral containers"));
  }
  return errors;
}

import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText, goSyntax } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type { LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodTemplateSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkingAnnotations, checkingLabels } from "../../../field-checks.ts";
import { eachInSteps } from "../../../rules.ts";
import { seccompFieldsMatchAnnotations, validatePodAnnotations } from "./annotations.ts";
import type { PodValidationOptions } from "./options.ts";
import { validatePodSpec } from "./pod.ts";

/**
 * A missing template is validated as one without containers, which is an error.
 * @param path of the template
 * Source: pkg/apis/core/validation ValidatePodTemplateSpec
 */
export function* validatePodTemplate(
  template: PodTemplateSpec | undefined,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const spec = template?.spec ?? { containers: [] };
  const annotations = template?.metadata?.annotations;
  const errors = yield* checkingLabels(template?.metadata?.labels, child(path, "labels"));
  addErrors(errors, yield* checkingAnnotations(annotations, child(path, "annotations")));
  addErrors(errors, yield* validatePodAnnotations(annotations, spec, child(path, "annotations"), options));
  addErrors(errors, yield* validatePodSpec(spec, child(path, "spec"), options));
  yield;
  addErrors(errors, seccompFieldsMatchAnnotations(annotations, spec, child(path, "spec")));
  if (spec.ephemeralContainers?.length)
    errors.push(forbiddenField(child(path, "spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"));
  return errors;
}

/** GCE disks must be mounted read-only by replicated pods. Source: ValidateReadOnlyPersistentDisks */
export function validateReadOnlyDisks(volumes: readonly Volume[] | undefined, path: string): Steps<FieldError[]> {
  const text = "must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only";
  return eachInSteps(volumes, path, ({ gcePersistentDisk }, at) =>
    gcePersistentDisk && !gcePersistentDisk.readOnly
      ? [invalidValue(child(at, "gcePersistentDisk", "readOnly"), false, text)]
      : [],
  );
}

interface SelectedTemplate {
  readonly template: PodTemplateSpec | undefined;
  readonly selector: Pick<LabelSelector, "matches">;
  /** More than one replica: GCE disks must be read-only. */
  readonly replicated?: boolean;
  /** Kind named in the error about activeDeadlineSeconds. */
  readonly kind: string;
}

/**
 * Validates a template whose labels must match the selector of the workload.
 * Source: pkg/apis/apps/validation ValidatePodTemplateSpecForReplicaSet
 */
export function* validateSelectedTemplate(
  { template, selector, replicated = false, kind }: SelectedTemplate,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  if (!template) return [required(path)];
  const errors = findsTemplate(selector, template, path);
  yield;
  addErrors(errors, yield* validatePodTemplate(template, path, options));
  if (replicated) addErrors(errors, yield* validateReadOnlyDisks(template.spec?.volumes, child(path, "spec", "volumes")));
  addErrors(errors, runsForEver(template, kind, path));
  return errors;
}

/** No error for an invalid selector, which is reported separately. Source: the selector checks in pkg/apis/apps/validation */
export function matchesTemplate(
  selector: LabelSelectorObject | undefined,
  template: PodTemplateSpec | undefined,
  path: string,
): FieldError[] {
  const read = readSelector(selector);
  return read ? findsTemplate(read, template, path) : [];
}

function findsTemplate(
  selector: Pick<LabelSelector, "matches">,
  template: PodTemplateSpec | undefined,
  path: string,
): FieldError[] {
  const labels = template?.metadata?.labels;
  if (selector.matches(labels)) return [];
  return [invalidValue(child(path, "metadata", "labels"), goStringMap(labels), "`selector` does not match template `labels`")];
}

/** Templates of workloads that keep their pods running: restartPolicy Always and no activeDeadlineSeconds. */
export function runsForEver(template: PodTemplateSpec | undefined, kind: string, path: string): FieldError[] {
  const policy: string = template?.spec?.restartPolicy ?? "";
  const deadline = template?.spec?.activeDeadlineSeconds;
  const at = child(path, "spec", "activeDeadlineSeconds");
  return [
    ...(policy === "Always" ? [] : [notSupported(child(path, "spec", "restartPolicy"), policy, ["Always"])]),
    ...(deadline === undefined || deadline === null
      ? []
      : [forbiddenField(at, `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ];
}

/** Formats labels like Go's `%#v`: `map[string]string{"app":"x"}`. */
export function goStringMap(map: Readonly<Record<string, string>> | undefined): GoText {
  return new GoText(map === undefined || map === null ? "map[string]string(nil)" : goSyntax(map));
}

/** @returns undefined for an invalid selector; a missing one matches nothing */
export function readSelector(selector: LabelSelectorObject | undefined): LabelSelector | undefined {
  try {
    return LabelSelector.fromObject(selector);
  } catch {
    return undefined;
  }
}

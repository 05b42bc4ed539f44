import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { GoText, goSyntax } from "@coxswain/apimachinery/errors/go-syntax";
import type { LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/meta/types";
import type { PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import { checkAnnotations, checkLabels } from "../../../field-checks.ts";
import type { PodValidationOptions } from "./options.ts";
import { validatePodSpec } from "./pod.ts";

/** For templates, which are the same for every user. */
export const templateOptions = (featureEnabled: (gate: string) => boolean): PodValidationOptions => ({
  allowPrivileged: true,
  featureEnabled,
});

/** Source: pkg/apis/core/validation ValidatePodTemplateSpec */
export function validatePodTemplate(
  template: PodTemplateSpec | undefined,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  errors.push(...checkLabels(template?.metadata?.labels, child(path, "labels")));
  errors.push(...checkAnnotations(template?.metadata?.annotations, child(path, "annotations")));
  errors.push(...validatePodSpec(template?.spec ?? { containers: [] }, child(path, "spec"), options));
  if (template?.spec?.ephemeralContainers?.length) {
    errors.push(forbiddenField(child(path, "spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"));
  }
  return errors;
}

/** A workload's selector must find the pods of its own template. Source: pkg/apis/apps/validation */
export function validateSelectedTemplate(
  template: PodTemplateSpec | undefined,
  selector: LabelSelectorObject | undefined,
  path: string,
  options: PodValidationOptions,
  restartPolicies: readonly string[] = ["Always"],
): FieldError[] {
  if (!template) return [required(path, "")];
  const errors: FieldError[] = [];
  const labels = template.metadata?.labels;
  if (selector && !isEmpty(selector) && !matchesSafely(selector, labels)) {
    errors.push(
      invalidValue(child(path, "metadata", "labels"), goStringMap(labels), "`selector` does not match template `labels`"),
    );
  }
  errors.push(...validatePodTemplate(template, path, options));
  const policy: string = template.spec?.restartPolicy ?? "";
  if (!restartPolicies.includes(policy)) {
    errors.push(notSupported(child(path, "spec", "restartPolicy"), policy, restartPolicies));
  }
  if (template.spec?.activeDeadlineSeconds !== undefined) {
    errors.push(
      forbiddenField(child(path, "spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"),
    );
  }
  return errors;
}

/** `map[string]string{"app":"x"}` as Go prints it. */
export function goStringMap(map: Readonly<Record<string, string>> | undefined): GoText {
  return new GoText(map === undefined || map === null ? "map[string]string(nil)" : goSyntax(map));
}

function isEmpty(selector: LabelSelectorObject): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
}

/** A selector that is no selector has its own error already. */
function matchesSafely(selector: LabelSelectorObject, labels: Readonly<Record<string, string>> | undefined): boolean {
  try {
    return LabelSelector.fromObject(selector).matches(labels);
  } catch {
    return true;
  }
}

/**
 * Accessors for CustomResourceDefinitions and their conditions.
 * Source: apiextensions-apiserver pkg/apihelpers/helpers.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  CustomResourceDefinitionCondition,
  CustomResourceDefinition as DefinitionFields,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { ConditionState } from "../registry/apiextensions/customresourcedefinitions/conditions.ts";

export type CustomResourceDefinition = DefinitionFields & KubeObject;
export type DefinitionStatus = NonNullable<CustomResourceDefinition["status"]>;

export function nameOf({ metadata }: CustomResourceDefinition): string {
  return metadata.name ?? "";
}

export function isNamespaced({ spec }: CustomResourceDefinition): boolean {
  return spec.scope === "Namespaced";
}

/** The status with empty lists and names where they are missing. */
export function statusOf({ status }: CustomResourceDefinition): DefinitionStatus {
  return {
    ...status,
    conditions: status?.conditions ?? [],
    acceptedNames: status?.acceptedNames ?? { plural: "", kind: "" },
    storedVersions: status?.storedVersions ?? [],
  };
}

export function conditionOf(
  definition: CustomResourceDefinition,
  type: ConditionState["type"],
): CustomResourceDefinitionCondition | undefined {
  return definition.status?.conditions?.find((condition) => condition.type === type);
}

/** Whether the condition has the status True; false without the condition. */
export function isTrue(definition: CustomResourceDefinition, type: ConditionState["type"]): boolean {
  return conditionOf(definition, type)?.status === "True";
}

/** Compares status, reason and message of two conditions. */
export function isSameState(a: ConditionState | undefined, b: ConditionState | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.status === b.status && (a.reason ?? "") === (b.reason ?? "") && (a.message ?? "") === (b.message ?? "");
}

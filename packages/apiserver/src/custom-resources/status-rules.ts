/**
 * Informational conditions of a definition: non-structural schema, and missing approval of a protected API group.
 * Source: apiextensions-apiserver pkg/controller/nonstructuralschema, pkg/controller/apiapproval
 */
import { addErrors, child, formatFieldErrors, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { ConditionState } from "../registry/apiextensions/customresourcedefinitions/conditions.ts";
import {
  approvalKey,
  approvalOf,
  isProtectedGroup,
  seeApprovalPolicy,
} from "../registry/apiextensions/customresourcedefinitions/names.ts";
import { schemaIn } from "../structural-schema/schema.ts";
import { hasStructureThroughout, validatingStructural } from "../structural-schema/structural.ts";
import type { CustomResourceDefinition } from "./definitions.ts";

/** @returns undefined when all schemas are structural: the condition is absent */
export function* nonStructuralSchema({ spec }: CustomResourceDefinition): Steps<ConditionState | undefined> {
  const errors = spec.preserveUnknownFields ? [invalidValue("spec.preserveUnknownFields", true, "must be false")] : [];
  for (const [i, { name, schema }] of spec.versions.entries()) {
    const own = schemaIn(schema);
    if (!own) continue;
    if (!hasStructureThroughout(own)) {
      const message = `failed to check validation schema for version ${name}: OpenAPIV3Schema is not supported`;
      return { type: "NonStructuralSchema", status: "True", reason: "StructuralError", message };
    }
    yield;
    addErrors(errors, yield* validatingStructural(own, child(index("spec.versions", i), "schema", "openAPIV3Schema")));
  }
  if (errors.length === 0) return undefined;
  return { type: "NonStructuralSchema", status: "True", reason: "Violations", message: formatFieldErrors(errors) };
}

/** @returns undefined for groups that need no approval */
export function apiApproval(definition: CustomResourceDefinition): ConditionState | undefined {
  if (!isProtectedGroup(definition.spec.group)) return undefined;
  const value = definition.metadata.annotations?.[approvalKey] ?? "";
  const must = `protected groups must have approval annotation "${approvalKey}"`;
  const either = `${must} with either a URL or a reason starting with "unapproved", ${seeApprovalPolicy}`;
  const states = {
    missing: { status: "False", reason: "MissingAnnotation", message: `${must}, ${seeApprovalPolicy}` },
    bypassed: { status: "False", reason: "UnapprovedAnnotation", message: `not approved: ${JSON.stringify(value)}` },
    invalid: { status: "False", reason: "InvalidAnnotation", message: either },
    approved: { status: "True", reason: "ApprovedAnnotation", message: `approved in ${value}` },
  } as const;
  return { type: "KubernetesAPIApprovalPolicyConformant", ...states[approvalOf(definition)] };
}

import type { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/schema/go/go-print";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionSpec,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
  CustomResourceValidation,
} from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";

/**
 * A definition as upstream's internal version has it, which is what its refusals speak of: a schema, subresources or
 * columns that all versions share stand beside the versions (`spec.validation.openAPIV3Schema`), not in each of them.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/v1/conversion.go
 */
export interface InternalSpec {
  readonly versions: readonly CustomResourceDefinitionVersion[];
  readonly validation: CustomResourceValidation | undefined;
  readonly subresources: CustomResourceSubresources | undefined;
  readonly additionalPrinterColumns: readonly CustomResourceColumnDefinition[];
}

export function internalSpecOf(spec: CustomResourceDefinitionSpec): InternalSpec {
  const versions = (spec.versions ?? []).map((version) => ({ ...version }));
  const shared = <Field extends "schema" | "subresources" | "additionalPrinterColumns">(
    field: Field,
  ): CustomResourceDefinitionVersion[Field] => {
    const first = versions[0]?.[field];
    if (!versions.every((version) => semanticEqual(version[field], first))) return undefined;
    for (const version of versions) delete version[field];
    return first;
  };
  return {
    validation: shared("schema"),
    subresources: shared("subresources"),
    additionalPrinterColumns: shared("additionalPrinterColumns") ?? [],
    versions,
  };
}

/** Where its schemas stand. */
export function schemasOf({ versions, validation }: InternalSpec): CustomResourceValidation[] {
  return [validation, ...versions.map((version) => version.schema)].filter((schema) => schema !== undefined && schema !== null);
}

/** A version in Go's syntax; its schemas are behind pointers. */
export const goVersion = (version: CustomResourceDefinitionVersion): GoText =>
  goStruct("apiextensions/v1.CustomResourceDefinitionVersion", version);

export const goVersions = (versions: readonly CustomResourceDefinitionVersion[]): GoText =>
  goStruct("[]apiextensions/v1.CustomResourceDefinitionVersion", versions.length === 0 ? undefined : versions);

import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionSpec,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
  CustomResourceValidation,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";

/**
 * The spec in upstream's internal version, whose field paths appear in error texts: a schema, subresources or columns shared
 * by all versions are fields of the spec (`spec.validation.openAPIV3Schema`) instead of each version.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/v1/conversion.go
 */
export interface InternalSpec {
  readonly versions: readonly CustomResourceDefinitionVersion[];
  readonly validation: CustomResourceValidation | undefined;
  readonly subresources: CustomResourceSubresources | undefined;
  readonly additionalPrinterColumns: readonly CustomResourceColumnDefinition[];
}

/** Moves what all versions share to the spec. The argument is not modified. */
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

/** All schemas of a definition. */
export function schemasOf({ versions, validation }: InternalSpec): CustomResourceValidation[] {
  return [validation, ...versions.map((version) => version.schema)].filter((schema) => schema !== undefined && schema !== null);
}

/** A version in Go syntax, for error texts. */
export const goVersion = (version: CustomResourceDefinitionVersion): GoText =>
  goStruct("apiextensions/v1.CustomResourceDefinitionVersion", version);

/** Versions in Go syntax, for error texts: an empty list and a missing one differ. */
export const goVersions = (versions: readonly CustomResourceDefinitionVersion[] | undefined): GoText =>
  versions === undefined
    ? new GoText("[]apiextensions.CustomResourceDefinitionVersion(nil)")
    : goStruct("[]apiextensions/v1.CustomResourceDefinitionVersion", versions);

import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
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

/** A version in Go's syntax. What is behind a pointer shows an address there, which nobody can know: `0x0` stands for it. */
export function goVersion(version: CustomResourceDefinitionVersion): GoText {
  const pointer = (type: string, value: unknown): string =>
    value === undefined || value === null ? `(*${type})(nil)` : `(*${type})(0x0)`;
  const columns = version.additionalPrinterColumns?.length ? "{…}" : "(nil)";
  const fields = [
    `Name:${goQuote(version.name ?? "")}`,
    `Served:${version.served ?? false}`,
    `Storage:${version.storage ?? false}`,
    `Deprecated:${version.deprecated ?? false}`,
    `DeprecationWarning:${pointer("string", version.deprecationWarning)}`,
    `Schema:${pointer("apiextensions.CustomResourceValidation", version.schema)}`,
    `Subresources:${pointer("apiextensions.CustomResourceSubresources", version.subresources)}`,
    `AdditionalPrinterColumns:[]apiextensions.CustomResourceColumnDefinition${columns}`,
  ];
  return new GoText(`apiextensions.CustomResourceDefinitionVersion{${fields.join(", ")}}`);
}

export function goVersions(versions: readonly CustomResourceDefinitionVersion[]): GoText {
  const type = "[]apiextensions.CustomResourceDefinitionVersion";
  const item = (version: CustomResourceDefinitionVersion): string =>
    goVersion(version).text.slice("apiextensions.CustomResourceDefinitionVersion".length);
  return new GoText(versions.length === 0 ? `${type}(nil)` : `${type}{${versions.map(item).join(", ")}}`);
}

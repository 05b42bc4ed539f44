/**
 * CustomResourceDefinitions in v1beta1, which is no longer served but still the storage version, as upstream. Schema,
 * subresources and columns that are the same in all versions appear once in its spec.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/{v1,v1beta1}/{conversion,defaults}.go;
 * kubernetes cmd/kube-apiserver/app/apiextensions.go
 */
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  CustomResourceColumnDefinition,
  CustomResourceConversion,
  CustomResourceDefinition,
  CustomResourceDefinitionSpec,
  CustomResourceDefinitionVersion,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";

interface OldColumn extends Omit<CustomResourceColumnDefinition, "jsonPath"> {
  JSONPath: string;
}

/** Fields of a version, or of the spec when they apply to all versions. */
interface OldParts {
  subresources?: CustomResourceDefinitionVersion["subresources"];
  additionalPrinterColumns?: OldColumn[];
}

interface OldVersion extends OldParts, Omit<CustomResourceDefinitionVersion, keyof OldParts> {}

interface OldConversion {
  strategy: string;
  webhookClientConfig?: NonNullable<CustomResourceConversion["webhook"]>["clientConfig"];
  conversionReviewVersions?: string[];
}

interface OldSpec extends OldParts, Omit<CustomResourceDefinitionSpec, "versions" | "conversion" | "preserveUnknownFields"> {
  version?: string;
  versions?: OldVersion[];
  validation?: CustomResourceDefinitionVersion["schema"];
  conversion?: OldConversion;
  preserveUnknownFields?: boolean;
}

interface OldDefinition extends KubeObject {
  spec: OldSpec;
}

/** Converts a stored definition to v1. */
export function definitionFromV1beta1({ spec, ...rest }: OldDefinition): CustomResourceDefinition {
  const { version, versions = [], validation, subresources, additionalPrinterColumns, conversion, ...others } = spec;
  const named: OldVersion[] = versions.length > 0 || !version ? versions : [{ name: version, served: true, storage: true }];
  return {
    ...rest,
    spec: {
      // v1beta1 defaults it to true.
      preserveUnknownFields: true,
      ...others,
      ...(conversion && { conversion: conversionFromV1beta1(conversion) }),
      versions: named.map(({ additionalPrinterColumns: columns, ...one }) => ({
        ...one,
        ...defined("schema", validation ?? one.schema),
        ...defined("subresources", subresources ?? one.subresources),
        ...defined("additionalPrinterColumns", (additionalPrinterColumns ?? columns)?.map(columnFromV1beta1)),
      })),
    },
  };
}

/** Converts a definition to the storage version; schema, subresources and columns shared by all versions move to the spec. */
export function definitionToV1beta1({ spec, ...rest }: CustomResourceDefinition): OldDefinition {
  const { versions, conversion, preserveUnknownFields = false, ...others } = spec;
  const converted = versions.map(({ additionalPrinterColumns, ...one }): OldVersion => {
    return { ...one, ...defined("additionalPrinterColumns", additionalPrinterColumns?.map(columnToV1beta1)) };
  });
  const common = <Part extends "schema" | keyof OldParts>(part: Part): OldVersion[Part] | undefined => {
    const [first, ...more] = converted;
    if (first === undefined || !more.every((one) => semanticEqual(one[part], first[part]))) return undefined;
    const value = first[part];
    for (const one of converted) delete one[part];
    return value;
  };
  return {
    ...rest,
    apiVersion: "apiextensions.k8s.io/v1beta1",
    spec: {
      ...others,
      ...defined("version", versions[0]?.name),
      ...defined("validation", common("schema")),
      ...defined("subresources", common("subresources")),
      ...defined("additionalPrinterColumns", common("additionalPrinterColumns")),
      versions: converted,
      ...(conversion && { conversion: conversionToV1beta1(conversion) }),
      preserveUnknownFields,
    },
  };
}

function conversionFromV1beta1({
  strategy,
  webhookClientConfig,
  conversionReviewVersions,
}: OldConversion): CustomResourceConversion {
  if (webhookClientConfig === undefined && conversionReviewVersions === undefined) return { strategy };
  return {
    strategy,
    webhook: { ...defined("clientConfig", webhookClientConfig), conversionReviewVersions: conversionReviewVersions ?? [] },
  };
}

function conversionToV1beta1({ strategy, webhook }: CustomResourceConversion): OldConversion {
  return {
    strategy,
    ...defined("webhookClientConfig", webhook?.clientConfig),
    ...defined("conversionReviewVersions", webhook?.conversionReviewVersions),
  };
}

function columnFromV1beta1({ JSONPath, ...rest }: OldColumn): CustomResourceColumnDefinition {
  return { ...rest, jsonPath: JSONPath };
}

function columnToV1beta1({ jsonPath, ...rest }: CustomResourceColumnDefinition): OldColumn {
  return { ...rest, JSONPath: jsonPath };
}

function defined<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  const set: { [key in K]?: V } = {};
  if (value !== undefined) set[key] = value;
  return set;
}

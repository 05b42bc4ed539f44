/** The subset of OpenAPI v2 used here. Source: https://swagger.io/specification/v2/ */
import type { GroupVersionKind } from "../../meta/group-version.ts";

export interface OpenApiDocument {
  swagger: "2.0";
  info: OpenApiInfo;
  paths: Record<string, PathItem>;
  definitions: Record<string, Schema>;
  securityDefinitions: Record<string, SecurityScheme>;
  security: Record<string, string[]>[];
}

export interface OpenApiInfo {
  title: string;
  version: string;
}

export interface SecurityScheme {
  description: string;
  type: string;
  name: string;
  in: string;
}

export interface Schema {
  $ref?: string;
  description?: string;
  type?: string;
  format?: string;
  default?: unknown;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  required?: string[];
  uniqueItems?: boolean;
  [extension: `x-${string}`]: unknown;
}

export const methods = ["get", "put", "post", "delete", "options", "head", "patch"] as const;
export type Method = (typeof methods)[number];

export type PathItem = Partial<Record<Method, Operation>> & {
  /** Parameters common to all operations of the path. */
  parameters?: Parameter[];
};

export interface Operation {
  description?: string;
  consumes?: string[];
  produces?: string[];
  schemes: string[];
  tags: string[];
  operationId: string;
  parameters?: Parameter[];
  responses: Record<string, Response>;
  [extension: `x-${string}`]: unknown;
}

export interface Response {
  description: string;
  schema?: Schema;
}

export interface Parameter {
  name: string;
  in: "query" | "path" | "body";
  description?: string;
  required?: boolean;
  uniqueItems?: boolean;
  type?: string;
  schema?: Schema;
}

/** A served resource as input of the OpenAPI documents. */
export interface OpenApiResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** DELETE returns the deleted object instead of a Status. */
  readonly returnsDeleted?: boolean;
  readonly subresources: readonly OpenApiSubresource[];
  /** Set for a custom resource. */
  readonly custom?: CustomKind;
}

export interface OpenApiSubresource {
  readonly name: string;
  readonly kind: GroupVersionKind;
  readonly verbs: readonly string[];
  /** Transfers bytes instead of objects: log, exec, proxy and the like. */
  readonly connect: boolean;
}

export interface OpenApiOptions {
  /** Include `enum` for enumerated types (feature gate OpenAPIEnums). */
  readonly enums?: boolean;
}

export interface CustomKind {
  /** The schema of the CustomResourceDefinition as JSON; undefined when it has none or when it is not structural. */
  readonly schema: CustomSchema | undefined;
  /** `spec.preserveUnknownFields` is set. */
  readonly preserving: boolean;
}

export type CustomSchema = Readonly<Record<string, unknown>>;

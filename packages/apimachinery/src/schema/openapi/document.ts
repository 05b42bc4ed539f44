/** What an OpenAPI v2 document consists of, as far as it is used here. Source: https://swagger.io/specification/v2/ */
import type { GroupVersionKind } from "../../meta/group-version.ts";
import type { CustomKind } from "./custom-kinds.ts";

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
  /** Those that all operations of the path have. */
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

/** One served resource, as far as OpenAPI is concerned. */
export interface OpenApiResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** A deletion answers with the last state instead of a Status. */
  readonly returnsDeleted?: boolean;
  readonly subresources: readonly OpenApiSubresource[];
  /** Of a custom resource: neither a built-in kind nor anything else describes it. */
  readonly custom?: CustomKind;
}

export interface OpenApiSubresource {
  readonly name: string;
  readonly kind: GroupVersionKind;
  readonly verbs: readonly string[];
  /** log, exec, proxy and their like: bytes instead of objects. */
  readonly connect: boolean;
}

export interface OpenApiOptions {
  /** Fields of enumerated types list their values: the gate OpenAPIEnums. */
  readonly enums?: boolean;
}

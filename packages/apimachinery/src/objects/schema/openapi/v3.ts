/**
 * OpenAPI v3 documents of the served resources, one for each root (`apis/apps/v1`, `version`).
 * Source: k8s.io/kube-openapi pkg/builder3, pkg/spec3
 */
import type { Steps } from "../../../process/event-loop/steps.ts";
import { Definitions, sortedByName } from "./definitions.ts";
import {
  methods,
  type OpenApiInfo,
  type OpenApiOptions,
  type OpenApiResource,
  type Operation,
  type Parameter,
  type PathItem,
  type Response,
  type Schema,
  type SecurityScheme,
} from "./document.ts";
import { rootsOf } from "./roots.ts";
import { bearerToken, info } from "./v2.ts";

export interface OpenApiV3Document {
  openapi: "3.0.0";
  info: OpenApiInfo;
  paths: Record<string, PathItemV3>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, SecurityScheme> };
}

export type PathItemV3 = Partial<Record<(typeof methods)[number], OperationV3>> & { parameters?: ParameterV3[] };

export interface OperationV3 {
  tags: string[];
  description?: string;
  operationId: string;
  parameters?: ParameterV3[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
  [extension: `x-${string}`]: unknown;
}

export interface ParameterV3 {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  schema: Schema;
}

/** Media type → schema. */
export type Content = Record<string, { schema: Schema }>;

/** @returns factories of the documents by root (`apis/apps/v1`), which yield between steps of a few milliseconds */
export function openApiV3(
  resources: readonly OpenApiResource[],
  options: OpenApiOptions = {},
): Map<string, () => Steps<OpenApiV3Document>> {
  const documents = new Map<string, () => Steps<OpenApiV3Document>>();
  for (const [root, parts] of rootsOf(resources)) {
    documents.set(root, function* () {
      const definitions = new Definitions({ ...options, defaults: true, prefix: "#/components/schemas/" });
      const paths: Record<string, PathItemV3> = {};
      for (const part of parts) {
        for (const [path, item] of Object.entries(part(definitions))) paths[path] = toPathItem(item);
        yield;
      }
      return {
        openapi: "3.0.0",
        info,
        paths: sortedByName(paths),
        components: { schemas: definitions.all(), securitySchemes: { BearerToken: bearerToken } },
      };
    });
  }
  return documents;
}

function toPathItem(item: PathItem): PathItemV3 {
  const made: PathItemV3 = {};
  for (const method of methods) {
    const operation = item[method];
    if (operation !== undefined) made[method] = toOperation(operation);
  }
  if (item.parameters !== undefined) made.parameters = item.parameters.map(toParameter);
  return made;
}

function toOperation({ consumes = [], produces = [], schemes: _, parameters = [], responses, ...rest }: Operation): OperationV3 {
  const body = parameters.find((parameter) => parameter.in === "body");
  const others = parameters.filter((parameter) => parameter !== body).map(toParameter);
  return {
    ...rest,
    ...(others.length > 0 && { parameters: others }),
    ...(body !== undefined && { requestBody: toBody(body, consumes) }),
    responses: Object.fromEntries(Object.entries(responses).map(([code, one]) => [code, toResponse(one, produces)])),
  };
}

function toParameter({ name, in: where, description, required, type, uniqueItems }: Parameter): ParameterV3 {
  return {
    name,
    in: where,
    ...(description !== undefined && { description }),
    ...(required && { required }),
    schema: { ...(type !== undefined && { type }), ...(uniqueItems && { uniqueItems }) },
  };
}

function toBody({ required, schema = {} }: Parameter, consumes: readonly string[]): { required?: boolean; content: Content } {
  return { ...(required && { required }), content: contentOf(consumes, schema) };
}

function toResponse({ description, schema }: Response, produces: readonly string[]): { description: string; content?: Content } {
  return { description, ...(schema !== undefined && { content: contentOf(produces, schema) }) };
}

function contentOf(mediaTypes: readonly string[], schema: Schema): Content {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }]));
}

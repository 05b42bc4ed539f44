/**
 * Encodes an OpenAPI v3 document as protobuf, `application/com.github.proto-openapi.spec.v3@v1.0+protobuf`, with field
 * numbers written manually.
 * Source: github.com/google/gnostic openapiv3/OpenAPIv3.proto
 */

import type { Schema } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type {
  Content,
  OpenApiV3Document,
  OperationV3,
  ParameterV3,
  PathItemV3,
} from "@coxswain/apimachinery/objects/schema/openapi/v3";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import protobuf from "protobufjs/minimal.js";
import { any, flag, message, messageOf, named, text, texts, type Writer, writeExtensions } from "./openapi-writer.ts";

/** Yields after each path and before the schemas. */
export function* encodeOpenApiV3(document: OpenApiV3Document): Steps<Buffer> {
  const head = protobuf.Writer.create();
  text(head, 1, document.openapi);
  message(head, 2, (info) => {
    text(info, 1, document.info.title);
    text(info, 6, document.info.version);
  });
  const paths = yield* messageOf(4, Object.entries(document.paths), (writer, [path, item]) =>
    named(writer, 1, path, (value) => writePathItem(value, item)),
  );
  const writer = protobuf.Writer.create();
  message(writer, 5, (components) => {
    message(components, 1, (schemas) => writeSchemas(schemas, document.components.schemas));
    message(components, 7, (schemes) => {
      for (const [name, scheme] of Object.entries(document.components.securitySchemes)) {
        named(schemes, 1, name, (item) =>
          message(item, 1, (value) => {
            text(value, 1, scheme.type);
            text(value, 2, scheme.description);
            text(value, 3, scheme.name);
            text(value, 4, scheme.in);
          }),
        );
      }
    });
  });
  return Buffer.concat([head.finish(), ...paths, writer.finish()]);
}

const operationFields = { get: 4, put: 5, post: 6, delete: 7, options: 8, head: 9, patch: 10 } as const;

function writePathItem(writer: Writer, item: PathItemV3): void {
  for (const [method, field] of Object.entries(operationFields)) {
    const operation = item[method as keyof typeof operationFields]; // cast: the loop is over its keys
    if (operation !== undefined) message(writer, field, (value) => writeOperation(value, operation));
  }
  for (const parameter of item.parameters ?? []) writeParameter(writer, 13, parameter);
}

function writeOperation(writer: Writer, operation: OperationV3): void {
  texts(writer, 1, operation.tags);
  text(writer, 3, operation.description);
  text(writer, 5, operation.operationId);
  for (const parameter of operation.parameters ?? []) writeParameter(writer, 6, parameter);
  const { requestBody } = operation;
  if (requestBody !== undefined) {
    message(writer, 7, (item) =>
      message(item, 1, (body) => {
        message(body, 2, (content) => writeContent(content, requestBody.content));
        flag(body, 3, requestBody.required);
      }),
    );
  }
  message(writer, 8, (responses) => {
    for (const [code, { description, content }] of Object.entries(operation.responses)) {
      named(responses, 2, code, (item) =>
        message(item, 1, (response) => {
          text(response, 1, description);
          if (content !== undefined) message(response, 3, (types) => writeContent(types, content));
        }),
      );
    }
  });
  writeExtensions(writer, 13, operation);
}

function writeParameter(writer: Writer, field: number, parameter: ParameterV3): void {
  message(writer, field, (item) =>
    message(item, 1, (value) => {
      text(value, 1, parameter.name);
      text(value, 2, parameter.in);
      text(value, 3, parameter.description);
      flag(value, 4, parameter.required);
      message(value, 10, (schema) => writeSchemaItem(schema, parameter.schema));
    }),
  );
}

function writeContent(writer: Writer, content: Content): void {
  for (const [mediaType, { schema }] of Object.entries(content)) {
    named(writer, 1, mediaType, (value) => message(value, 1, (item) => writeSchemaItem(item, schema)));
  }
}

function writeSchemas(writer: Writer, schemas: Readonly<Record<string, Schema>>): void {
  for (const [name, schema] of Object.entries(schemas)) named(writer, 1, name, (item) => writeSchemaItem(item, schema));
}

/** Writes a schema, or a reference, which has no other fields than a description. */
function writeSchemaItem(writer: Writer, schema: Schema): void {
  if (schema.$ref === undefined) {
    message(writer, 1, (value) => writeSchema(value, schema));
    return;
  }
  message(writer, 2, (reference) => {
    text(reference, 1, schema.$ref);
    text(reference, 3, schema.description);
  });
}

function writeSchema(writer: Writer, schema: Schema): void {
  flag(writer, 20, schema.uniqueItems);
  texts(writer, 23, schema.required ?? []);
  for (const value of schema.enum ?? []) message(writer, 24, (one) => any(one, value));
  text(writer, 25, schema.type);
  const { additionalProperties, items, properties } = schema;
  if (items !== undefined) message(writer, 30, (list) => message(list, 1, (item) => writeSchemaItem(item, items)));
  if (properties !== undefined) message(writer, 31, (value) => writeSchemas(value, properties));
  if (additionalProperties !== undefined) {
    message(writer, 32, (value) => message(value, 1, (item) => writeSchemaItem(item, additionalProperties)));
  }
  if (schema.default !== undefined) message(writer, 33, (value) => writeDefault(value, schema.default));
  text(writer, 34, schema.description);
  text(writer, 35, schema.format);
  writeExtensions(writer, 36, schema);
}

/** The message supports scalar defaults only. */
function writeDefault(writer: Writer, value: unknown): void {
  if (typeof value === "number") writer.uint32((1 << 3) | 1).double(value);
  if (typeof value === "boolean") writer.uint32(2 << 3).bool(value);
  if (typeof value === "string") writer.uint32((3 << 3) | 2).string(value);
}

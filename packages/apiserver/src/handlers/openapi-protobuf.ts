/**
 * Encodes an OpenAPI v2 document as protobuf, which kubectl requests as
 * `application/com.github.proto-openapi.spec.v2@v1.0+protobuf`, with field numbers written by hand.
 * Source: github.com/google/gnostic openapiv2/OpenAPIv2.proto
 */

import type {
  OpenApiDocument,
  Operation,
  Parameter,
  PathItem,
  Schema,
} from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import protobuf from "protobufjs/minimal.js";
import { any, flag, message, messageOf, named, text, texts, type Writer, writeExtensions } from "./openapi-writer.ts";

/** Yields after each path and each definition. */
export function* encodeOpenApi(document: OpenApiDocument): Steps<Buffer> {
  const head = protobuf.Writer.create();
  text(head, 1, document.swagger);
  message(head, 2, (info) => {
    text(info, 1, document.info.title);
    text(info, 2, document.info.version);
  });
  const paths = yield* messageOf(8, Object.entries(document.paths), (writer, [path, item]) =>
    named(writer, 2, path, (value) => writePathItem(value, item)),
  );
  const definitions = yield* messageOf(9, Object.entries(document.definitions), (writer, [name, schema]) =>
    named(writer, 1, name, (value) => writeSchema(value, schema)),
  );
  const writer = protobuf.Writer.create();
  for (const requirement of document.security) {
    message(writer, 12, (value) => {
      for (const [name, scopes] of Object.entries(requirement)) {
        named(value, 1, name, (array) => texts(array, 1, scopes));
      }
    });
  }
  message(writer, 13, (definitions) => {
    for (const [name, security] of Object.entries(document.securityDefinitions)) {
      named(definitions, 1, name, (item) =>
        message(item, 2, (apiKey) => {
          text(apiKey, 1, security.type);
          text(apiKey, 2, security.name);
          text(apiKey, 3, security.in);
          text(apiKey, 4, security.description);
        }),
      );
    }
  });
  return Buffer.concat([head.finish(), ...paths, ...definitions, writer.finish()]);
}

const operationFields = { get: 2, put: 3, post: 4, delete: 5, options: 6, head: 7, patch: 8 } as const;

function writePathItem(writer: Writer, item: PathItem): void {
  for (const [method, field] of Object.entries(operationFields)) {
    const operation = item[method as keyof typeof operationFields]; // cast: the loop is over its keys
    if (operation !== undefined) message(writer, field, (value) => writeOperation(value, operation));
  }
  for (const parameter of item.parameters ?? []) writeParameterItem(writer, 9, parameter);
}

function writeOperation(writer: Writer, operation: Operation): void {
  // Documents of aggregated servers may omit these fields.
  texts(writer, 1, operation.tags ?? []);
  text(writer, 3, operation.description);
  text(writer, 5, operation.operationId);
  texts(writer, 6, operation.produces ?? []);
  texts(writer, 7, operation.consumes ?? []);
  for (const parameter of operation.parameters ?? []) writeParameterItem(writer, 8, parameter);
  message(writer, 9, (responses) => {
    for (const [code, response] of Object.entries(operation.responses)) {
      if (code.startsWith("x-")) continue;
      named(responses, 1, code, (value) =>
        message(value, 1, (one) => {
          text(one, 1, response.description);
          const { schema } = response;
          if (schema !== undefined) message(one, 2, (item) => message(item, 1, (body) => writeSchema(body, schema)));
        }),
      );
    }
  });
  texts(writer, 10, operation.schemes ?? []);
  writeExtensions(writer, 13, operation);
}

/** By location of a non-body parameter: its field in the message, and the offset of its later field numbers. */
const nonBody = {
  header: { field: 1, shift: 0 },
  formData: { field: 2, shift: 1 },
  query: { field: 3, shift: 1 },
  path: { field: 4, shift: 0 },
} as const;

/** ParametersItem is a reference or a Parameter; a Parameter is a body or non-body: header, form, query or path. */
function writeParameterItem(writer: Writer, field: number, parameter: Parameter & { $ref?: string; format?: string }): void {
  const { $ref: reference } = parameter;
  if (reference !== undefined) {
    message(writer, field, (item) => message(item, 2, (one) => text(one, 1, reference)));
    return;
  }
  message(writer, field, (item) =>
    message(item, 1, (one) => {
      if (parameter.in === "body") {
        message(one, 1, (body) => {
          text(body, 1, parameter.description);
          text(body, 2, parameter.name);
          text(body, 3, "body");
          flag(body, 4, parameter.required);
          const { schema } = parameter;
          if (schema !== undefined) message(body, 5, (value) => writeSchema(value, schema));
        });
        return;
      }
      // Cast: undefined for other places.
      const { field: kind, shift } = nonBody[parameter.in as keyof typeof nonBody] ?? nonBody.query;
      message(one, 2, (other) =>
        message(other, kind, (value) => {
          flag(value, 1, parameter.required);
          text(value, 2, parameter.in);
          text(value, 3, parameter.description);
          text(value, 4, parameter.name);
          text(value, 5 + shift, parameter.type);
          text(value, 6 + shift, parameter.format);
          flag(value, 19 + shift, parameter.uniqueItems);
        }),
      );
    }),
  );
}

/** Schema members that only aggregated servers use, with their field numbers. */
const limits = {
  doubles: { multipleOf: 6, maximum: 7, minimum: 9 },
  integers: { maxLength: 11, minLength: 12, maxItems: 14, minItems: 15, maxProperties: 17, minProperties: 18 },
  flags: { exclusiveMaximum: 8, exclusiveMinimum: 10, uniqueItems: 16, readOnly: 27 },
  texts: { title: 3, pattern: 13, discriminator: 26 },
} as const;

function writeLimits(writer: Writer, schema: Schema): void {
  const members = schema as Readonly<Record<string, unknown>>; // cast: read by keyword
  for (const [name, field] of Object.entries(limits.doubles)) {
    const value = members[name];
    if (value !== undefined) writer.uint32((field << 3) | 1).double(Number(value));
  }
  for (const [name, field] of Object.entries(limits.integers)) {
    const value = members[name];
    if (value !== undefined) writer.uint32(field << 3).int64(Math.trunc(Number(value)));
  }
  for (const [name, field] of Object.entries(limits.flags)) flag(writer, field, members[name] === true);
  // Cast: these keywords hold texts.
  for (const [name, field] of Object.entries(limits.texts)) text(writer, field, members[name] as string | undefined);
}

/** Alternative forms of schema members in documents of aggregated servers. */
type AnySchema = Omit<Schema, "type" | "items" | "additionalProperties"> & {
  type?: string | string[];
  items?: Schema | Schema[];
  additionalProperties?: Schema | boolean;
  allOf?: Schema[];
};

function writeSchema(writer: Writer, schema: Schema): void {
  text(writer, 1, schema.$ref);
  text(writer, 2, schema.format);
  text(writer, 4, schema.description);
  writeLimits(writer, schema);
  if (schema.default !== undefined) message(writer, 5, (value) => any(value, schema.default));
  texts(writer, 19, schema.required ?? []);
  for (const value of schema.enum ?? []) message(writer, 20, (one) => any(one, value));
  const { additionalProperties, allOf = [], items, properties, type }: AnySchema = schema;
  if (additionalProperties !== undefined) {
    message(writer, 21, (item) => {
      if (typeof additionalProperties === "boolean") item.uint32(2 << 3).bool(additionalProperties);
      else message(item, 1, (value) => writeSchema(value, additionalProperties));
    });
  }
  if (type !== undefined) message(writer, 22, (value) => texts(value, 1, [type].flat()));
  if (items !== undefined) {
    message(writer, 23, (item) => {
      for (const one of [items].flat()) message(item, 1, (value) => writeSchema(value, one));
    });
  }
  for (const one of allOf) message(writer, 24, (value) => writeSchema(value, one));
  if (properties !== undefined) {
    message(writer, 25, (value) => {
      for (const [name, property] of Object.entries(properties)) named(value, 1, name, (one) => writeSchema(one, property));
    });
  }
  writeExtensions(writer, 31, schema);
}

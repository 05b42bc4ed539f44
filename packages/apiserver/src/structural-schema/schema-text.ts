import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { type Schema, sizeOf } from "./schema.ts";

/** Limit of schemas printed in an error text; each takes about 1 KB in Go syntax. */
const mostQuoted = 200;

/** A schema in Go syntax for error texts; elided when it contains too many schemas. */
export function goSchema(schema: Schema): GoText {
  return sizeOf(schema) > mostQuoted
    ? new GoText("apiextensions.JSONSchemaProps{…}")
    : goStruct("apiextensions/v1.JSONSchemaProps", schema);
}

/** `items` with a list of schemas, in Go syntax. */
export function goSchemas(schemas: readonly Schema[]): GoText {
  const items = schemas.map((schema) => goSchema(schema).text).join(", ");
  const list = `[]apiextensions.JSONSchemaProps{${items}}`;
  return new GoText(`apiextensions.JSONSchemaPropsOrArray{Schema:(*apiextensions.JSONSchemaProps)(nil), JSONSchemas:${list}}`);
}

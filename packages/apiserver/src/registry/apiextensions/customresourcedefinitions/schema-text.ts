import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { goStruct } from "@coxswain/apimachinery/schema/go/go-print";
import { type Schema, sizeOf } from "./schemas.ts";

/** Each schema takes a kilobyte in Go's syntax: a refusal that quotes more of them is nothing that anybody reads. */
const mostQuoted = 200;

/** A schema as refusals quote it; of a large one only that it is there. */
export function goSchema(schema: Schema): GoText {
  return sizeOf(schema) > mostQuoted
    ? new GoText("apiextensions.JSONSchemaProps{…}")
    : goStruct("apiextensions/v1.JSONSchemaProps", schema);
}

/** The `items` of a list that has a schema for each place. */
export function goSchemas(schemas: readonly Schema[]): GoText {
  const items = schemas.map((schema) => goSchema(schema).text).join(", ");
  const list = `[]apiextensions.JSONSchemaProps{${items}}`;
  return new GoText(`apiextensions.JSONSchemaPropsOrArray{Schema:(*apiextensions.JSONSchemaProps)(nil), JSONSchemas:${list}}`);
}

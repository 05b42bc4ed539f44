import assert from "node:assert/strict";
import { test } from "node:test";
import type { Schema } from "./schema.ts";
import { goSchema, goSchemas } from "./schema-text.ts";

const ofSize = (schemas: number): Schema => ({ allOf: Array.from({ length: schemas - 1 }, () => ({ type: "string" })) });

test("a schema of two hundred is shown as a whole, a larger one is not", () => {
  assert.ok(goSchema(ofSize(200)).text.length > 100_000);
  assert.equal(goSchema(ofSize(201)).text, "apiextensions.JSONSchemaProps{…}");
});

test("several schemas of the items are shown as Go has them", () => {
  assert.equal(
    goSchemas([ofSize(300), ofSize(201)]).text,
    "apiextensions.JSONSchemaPropsOrArray{Schema:(*apiextensions.JSONSchemaProps)(nil), JSONSchemas:[]apiextensions.JSONSchemaProps{apiextensions.JSONSchemaProps{…}, apiextensions.JSONSchemaProps{…}}}",
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { definitionFromV1beta1, definitionToV1beta1 } from "./conversion.ts";

const names = { plural: "widgets", kind: "Widget" };
const schema = { openAPIV3Schema: { type: "object" } };
const other = { openAPIV3Schema: { type: "object", description: "other" } };
const clientConfig = { url: "https://example.com" };
const definition = (version: string, spec: object): KubeObject & { spec: never } =>
  ({ apiVersion: `apiextensions.k8s.io/${version}`, metadata: {}, spec: { group: "e.example.com", names, ...spec } }) as never;
const served = { served: true, storage: true };

for (const { name, old, now } of [
  {
    name: "fields that all versions share are stored once",
    old: {
      version: "v1",
      validation: schema,
      subresources: { status: {} },
      additionalPrinterColumns: [{ name: "x", type: "string", JSONPath: ".x" }],
      versions: [
        { name: "v1", ...served },
        { name: "v2", ...served },
      ],
      preserveUnknownFields: false,
    },
    now: {
      versions: ["v1", "v2"].map((version) => ({
        name: version,
        ...served,
        schema,
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: "x", type: "string", jsonPath: ".x" }],
      })),
      preserveUnknownFields: false,
    },
  },
  {
    name: "fields that differ are stored with their version",
    old: {
      version: "v1",
      versions: [
        { name: "v1", ...served, schema, additionalPrinterColumns: [{ name: "x", type: "string", JSONPath: ".x" }] },
        { name: "v2", ...served, schema: other },
      ],
      preserveUnknownFields: true,
    },
    now: {
      versions: [
        { name: "v1", ...served, schema, additionalPrinterColumns: [{ name: "x", type: "string", jsonPath: ".x" }] },
        { name: "v2", ...served, schema: other },
      ],
      preserveUnknownFields: true,
    },
  },
  {
    name: "fields that all versions but the last one share are stored with their versions",
    old: {
      version: "v1",
      versions: [
        { name: "v1", ...served, schema },
        { name: "v2", ...served, schema },
        { name: "v3", ...served, schema: other },
      ],
      preserveUnknownFields: false,
    },
    now: {
      versions: [
        { name: "v1", ...served, schema },
        { name: "v2", ...served, schema },
        { name: "v3", ...served, schema: other },
      ],
      preserveUnknownFields: false,
    },
  },
  {
    name: "the first version is named in the spec, although a later one is stored",
    old: {
      version: "v1",
      versions: [
        { name: "v1", served: true, storage: false },
        { name: "v2", ...served },
      ],
      preserveUnknownFields: false,
    },
    now: {
      versions: [
        { name: "v1", served: true, storage: false },
        { name: "v2", ...served },
      ],
      preserveUnknownFields: false,
    },
  },
  {
    name: "the webhook of a conversion",
    old: {
      version: "v1",
      versions: [{ name: "v1", ...served }],
      conversion: { strategy: "Webhook", webhookClientConfig: clientConfig, conversionReviewVersions: ["v1"] },
      preserveUnknownFields: false,
    },
    now: {
      versions: [{ name: "v1", ...served }],
      conversion: { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: ["v1"] } },
      preserveUnknownFields: false,
    },
  },
]) {
  test(`${name}, in both directions`, () => {
    const want = definition("v1", now);
    const { apiVersion: _, ...converted } = definitionFromV1beta1(definition("v1beta1", old));
    assert.deepEqual({ apiVersion: want.apiVersion, ...converted }, want);
    assert.deepEqual(definitionToV1beta1(want), definition("v1beta1", old));
  });
}

test("what a definition of v1beta1 says for all versions goes before what it says of one", () => {
  const column = (JSONPath: string) => ({ name: "x", type: "string", JSONPath });
  const { spec } = definitionFromV1beta1(
    definition("v1beta1", {
      validation: schema,
      subresources: { status: {} },
      additionalPrinterColumns: [column(".a")],
      versions: [{ name: "v1", ...served, schema: other, subresources: {}, additionalPrinterColumns: [column(".b")] }],
    }),
  );
  assert.deepEqual(spec.versions, [
    {
      ...{ name: "v1", ...served, schema, subresources: { status: {} } },
      additionalPrinterColumns: [{ name: "x", type: "string", jsonPath: ".a" }],
    },
  ]);
});

test("a definition of one version that v1beta1 names alone has that version, and keeps unknown fields unless it says no", () => {
  const { spec } = definitionFromV1beta1(definition("v1beta1", { version: "v1", validation: schema })) as unknown as {
    spec: object;
  };
  assert.deepEqual(spec, {
    group: "e.example.com",
    names,
    versions: [{ name: "v1", ...served, schema }],
    preserveUnknownFields: true,
  });
});

for (const { name, old, webhook } of [
  {
    name: "a client alone has no review versions",
    old: { webhookClientConfig: clientConfig },
    webhook: { clientConfig, conversionReviewVersions: [] },
  },
  {
    name: "review versions alone have no client",
    old: { conversionReviewVersions: ["v1"] },
    webhook: { conversionReviewVersions: ["v1"] },
  },
  { name: "neither is no webhook", old: {}, webhook: undefined },
])
  test(`of the webhook of a conversion in v1beta1, ${name}`, () => {
    const conversion = { strategy: "Webhook", ...old };
    const converted = definitionFromV1beta1(definition("v1beta1", { versions: [{ name: "v1", ...served }], conversion }));
    const { spec } = converted as unknown as { spec: { conversion: object } };
    assert.deepEqual(spec.conversion, { strategy: "Webhook", ...(webhook && { webhook }) });
  });

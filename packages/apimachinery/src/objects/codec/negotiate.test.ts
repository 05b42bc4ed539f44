import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiateInput, negotiateOutput } from "./negotiate.ts";

const protobuf = "application/vnd.kubernetes.protobuf";
const table = "application/json;as=Table;v=v1;g=meta.k8s.io";

for (const { accept, options, want } of [
  { accept: undefined, want: { mediaType: "application/json" } },
  { accept: "*/*", want: { mediaType: "application/json" } },
  { accept: "application/*", want: { mediaType: "application/json" } },
  { accept: "application/yaml", want: { mediaType: "application/yaml" } },
  { accept: `${protobuf}, application/json`, want: { mediaType: protobuf } },
  { accept: `${protobuf};q=0.5, application/json`, want: { mediaType: "application/json" } },
  { accept: `text/html, ${protobuf}`, want: { mediaType: protobuf } },
  { accept: `*/*, application/yaml`, want: { mediaType: "application/yaml" } },
  { accept: `${protobuf}, application/json`, options: { protobuf: false }, want: { mediaType: "application/json" } },
  { accept: "application/json;pretty=1", want: { mediaType: "application/json", pretty: true } },
  { accept: "application/json;stream=watch", options: { stream: true }, want: { mediaType: "application/json", stream: true } },
  { accept: "application/yaml;stream=watch, application/json", want: { mediaType: "application/json" } },
  {
    accept: `${table}, application/json`,
    options: { transforms: true },
    want: { mediaType: "application/json", as: "Table", group: "meta.k8s.io", version: "v1" },
  },
  { accept: `${table}, application/json`, want: { mediaType: "application/json" } },
  {
    accept: `${protobuf};as=Table;v=v1;g=meta.k8s.io, ${table}`,
    options: { transforms: true },
    want: { mediaType: "application/json", as: "Table", group: "meta.k8s.io", version: "v1" },
  },
  {
    accept: `${protobuf};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1`,
    options: { transforms: true },
    want: { mediaType: protobuf, as: "PartialObjectMetadataList", group: "meta.k8s.io", version: "v1beta1" },
  },
]) {
  test(`answers Accept: ${accept} ${JSON.stringify(options ?? {})} with ${JSON.stringify(want)}`, () => {
    assert.deepEqual(negotiateOutput(accept, options), { pretty: false, stream: false, ...want });
  });
}

for (const { accept, options, named } of [
  { accept: "text/html", options: {}, named: `application/json, application/yaml, ${protobuf}` },
  { accept: protobuf, options: { protobuf: false }, named: "application/json, application/yaml" },
  { accept: table, options: {}, named: `application/json, application/yaml, ${protobuf}` },
  { accept: "application/yaml", options: { stream: true }, named: `application/json;stream=watch, ${protobuf};stream=watch` },
  {
    accept: "application/json;as=Table;v=v2;g=meta.k8s.io",
    options: { transforms: true },
    named: `application/json, application/yaml, ${protobuf}`,
  },
]) {
  test(`answers 406 to Accept: ${accept} ${JSON.stringify(options)}`, () => {
    assert.throws(() => negotiateOutput(accept, options), {
      code: 406,
      message: `only the following media types are accepted: ${named}`,
    });
  });
}

test("decodes bodies by their Content-Type", () => {
  assert.equal(negotiateInput(undefined), "application/json");
  assert.equal(negotiateInput("application/json; charset=utf-8"), "application/json");
  assert.equal(negotiateInput(" application/json ;charset=utf-8 "), "application/json");
  assert.equal(negotiateInput(protobuf), protobuf);
  assert.throws(() => negotiateInput("application/x-www-form-urlencoded"), {
    code: 415,
    message: `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${protobuf}`,
  });
});

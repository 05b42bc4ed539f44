import assert from "node:assert/strict";
import { test } from "node:test";
import { methods, type OpenApiDocument, type Schema } from "@coxswain/apimachinery/objects/schema/openapi/document";
import { openApiV2Steps } from "@coxswain/apimachinery/objects/schema/openapi/v2";
import { type OpenApiV3Document, openApiV3 } from "@coxswain/apimachinery/objects/schema/openapi/v3";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { everyResource } from "@coxswain/apimachinery/testing/openapi-resources";
import protobuf from "protobufjs";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { HandlerEnv } from "./env.ts";
import { newCurrent, newOpenApi } from "./openapi.ts";
import { beforeEnd, OpenApiBytes } from "./openapi-bytes.ts";
import { encodeOpenApi } from "./openapi-protobuf.ts";
import { encodeOpenApiV3 } from "./openapi-v3-protobuf.ts";
import { newServedResources } from "./served-resources.ts";

const document: OpenApiDocument = atOnce(openApiV2Steps(everyResource()));

const definition = (name: string): Schema => document.definitions[name] as Schema;

test("every reference leads to a definition", () => {
  for (const [, name] of JSON.stringify(document).matchAll(/"#\/definitions\/([^"]+)"/g)) {
    assert.ok(Object.hasOwn(document.definitions, String(name)), String(name));
  }
});

test("a kind says which one it is", () => {
  assert.deepEqual(definition("io.k8s.api.apps.v1.Deployment")["x-kubernetes-group-version-kind"], [
    { group: "apps", kind: "Deployment", version: "v1" },
  ]);
});

test("containers are merged by name", () => {
  const { properties, required } = definition("io.k8s.api.core.v1.PodSpec");
  assert.partialDeepStrictEqual(properties?.["containers"], {
    type: "array",
    items: { $ref: "#/definitions/io.k8s.api.core.v1.Container" },
    "x-kubernetes-patch-merge-key": "name",
    "x-kubernetes-patch-strategy": "merge",
  });
  assert.deepEqual(required, ["containers"]);
});

for (const { name, schema } of [
  { name: "io.k8s.apimachinery.pkg.api.resource.Quantity", schema: { type: "string" } },
  { name: "io.k8s.apimachinery.pkg.util.intstr.IntOrString", schema: { type: "string", format: "int-or-string" } },
  { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Time", schema: { type: "string", format: "date-time" } },
]) {
  test(`${name} is ${JSON.stringify(schema)}`, () => assert.partialDeepStrictEqual(definition(name), schema));
}

/** Non-resource paths have no kind. */
const isResourcePath = (path: string): boolean => /^\/apis?\/.*[^/]$/.test(path);

test("operations have unique ids and say what they act on", () => {
  const ids = new Set<string>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of methods) {
      const operation = item[method];
      if (operation === undefined) continue;
      assert.ok(!ids.has(operation.operationId), `${operation.operationId} at ${path}`);
      ids.add(operation.operationId);
      assert.equal(operation["x-kubernetes-group-version-kind"] !== undefined, isResourcePath(path), path);
    }
  }
});

/** Decodes the part of the message that kubectl reads, by its published field numbers. */
// biome-ignore lint/suspicious/noExplicitAny: what a decoded message looks like is what the test finds out.
type Decoded = any;
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Document { string swagger = 1; Info info = 2; Paths paths = 8; Definitions definitions = 9; }
  message Info { string title = 1; string version = 2; }
  message Paths { repeated NamedPathItem path = 2; }
  message NamedPathItem { string name = 1; PathItem value = 2; }
  message PathItem { Operation get = 2; Operation patch = 8; }
  message Operation { string operation_id = 5; repeated ParametersItem parameters = 8; repeated NamedAny vendor_extension = 13; }
  message ParametersItem { Parameter parameter = 1; }
  message Parameter { NonBody non_body_parameter = 2; }
  message NonBody { Query query_parameter_sub_schema = 3; }
  message Query { string in = 2; string name = 4; string type = 6; bool unique_items = 20; }
  message Definitions { repeated NamedSchema additional_properties = 1; }
  message NamedSchema { string name = 1; Schema value = 2; }
  message Schema {
    string ref = 1; string format = 2; string description = 4; repeated string required = 19;
    TypeItem type = 22; ItemsItem items = 23; Properties properties = 25; repeated NamedAny vendor_extension = 31;
  }
  message TypeItem { repeated string value = 1; }
  message ItemsItem { repeated Schema schema = 1; }
  message Properties { repeated NamedSchema additional_properties = 1; }
  message NamedAny { string name = 1; Any value = 2; }
  message Any { string yaml = 2; }
`);

test("the protobuf form says the same", () => {
  const type = root.lookupType("Document");
  const decoded = type.toObject(type.decode(atOnce(encodeOpenApi(document)))) as Decoded;
  assert.equal(decoded.swagger, "2.0");
  assert.equal(decoded.definitions.additionalProperties.length, Object.keys(document.definitions).length);
  assert.equal(decoded.paths.path.length, Object.keys(document.paths).length);
  const podSpec = decoded.definitions.additionalProperties.find(
    (one: Decoded) => one.name === "io.k8s.api.core.v1.PodSpec",
  ).value;
  const containers = podSpec.properties.additionalProperties.find((one: Decoded) => one.name === "containers").value;
  assert.deepEqual(containers.type.value, ["array"]);
  assert.equal(containers.items.schema[0].ref, "#/definitions/io.k8s.api.core.v1.Container");
  assert.deepEqual(
    containers.vendorExtension.map((one: Decoded) => [one.name, one.value.yaml.trim()]),
    [
      ["x-kubernetes-patch-merge-key", "name"],
      ["x-kubernetes-patch-strategy", "merge"],
    ],
  );
  const patch = decoded.paths.path.find((one: Decoded) => one.name === "/api/v1/namespaces/{namespace}/pods/{name}").value.patch;
  const queryParameters = patch.parameters.flatMap(
    (one: Decoded) => one.parameter.nonBodyParameter?.queryParameterSubSchema ?? [],
  );
  assert.partialDeepStrictEqual(
    queryParameters.find((one: Decoded) => one.name === "dryRun"),
    { in: "query", type: "string", uniqueItems: true },
  );
});

const v3 = protobuf.parse(`
  syntax = "proto3";
  message Document { string openapi = 1; Info info = 2; Paths paths = 4; Components components = 5; }
  message Info { string title = 1; string version = 6; }
  message Paths { repeated NamedPathItem path = 1; }
  message NamedPathItem { string name = 1; PathItem value = 2; }
  message PathItem { Operation get = 4; Operation post = 6; repeated ParameterItem parameters = 13; }
  message Operation {
    repeated string tags = 1; string operation_id = 5; repeated ParameterItem parameters = 6; BodyItem request_body = 7;
    Responses responses = 8; repeated NamedAny extension = 13;
  }
  message BodyItem { Body request_body = 1; }
  message Body { Content content = 2; bool required = 3; }
  message Content { repeated NamedMedia additional = 1; }
  message NamedMedia { string name = 1; Media value = 2; }
  message Media { SchemaItem schema = 1; }
  message Responses { repeated NamedResponse response = 2; }
  message NamedResponse { string name = 1; ResponseItem value = 2; }
  message ResponseItem { Response response = 1; }
  message Response { string description = 1; Content content = 3; }
  message ParameterItem { Parameter parameter = 1; }
  message Parameter { string name = 1; string in = 2; bool required = 4; SchemaItem schema = 10; }
  message Components { Schemas schemas = 1; Schemes security_schemes = 7; }
  message Schemes { repeated NamedScheme additional = 1; }
  message NamedScheme { string name = 1; }
  message Schemas { repeated NamedSchema additional = 1; }
  message NamedSchema { string name = 1; SchemaItem value = 2; }
  message SchemaItem { oneof one { Schema schema = 1; Reference reference = 2; } }
  message Reference { string ref = 1; string description = 3; }
  message Schema {
    repeated string required = 23; string type = 25; Items items = 30; Schemas properties = 31; Default default = 33;
    string description = 34; string format = 35; repeated NamedAny extension = 36;
  }
  message Items { repeated SchemaItem schema = 1; }
  message Default { double number = 1; bool boolean = 2; string string = 3; }
  message NamedAny { string name = 1; Any value = 2; }
  message Any { string yaml = 2; }
`).root;

test("the protobuf form of v3 says the same", () => {
  const made = atOnce(openApiV3(everyResource()).get("api/v1")?.() as Steps<OpenApiV3Document>);
  const type = v3.lookupType("Document");
  const decoded = type.toObject(type.decode(atOnce(encodeOpenApiV3(made)))) as Decoded;
  assert.equal(decoded.openapi, "3.0.0");
  assert.deepEqual(decoded.info, made.info);
  const byName = (list: Decoded[], name: string): Decoded => list.find((one) => one.name === name).value;
  const namesOf = (list: Decoded[]): string[] => list.map((one) => one.name);
  assert.deepEqual(namesOf(decoded.paths.path), Object.keys(made.paths));
  assert.deepEqual(namesOf(decoded.components.schemas.additional), Object.keys(made.components.schemas));
  assert.deepEqual(namesOf(decoded.components.securitySchemes.additional), ["BearerToken"]);
  const port = byName(decoded.components.schemas.additional, "io.k8s.api.core.v1.ContainerPort").schema;
  assert.deepEqual(port.required, ["containerPort"]);
  assert.partialDeepStrictEqual(byName(port.properties.additional, "protocol").schema, {
    type: "string",
    default: { string: "TCP" },
  });
  const spec = byName(decoded.components.schemas.additional, "io.k8s.api.core.v1.PodSpec").schema;
  const containers = byName(spec.properties.additional, "containers").schema;
  assert.equal(containers.items.schema[0].reference.ref, "#/components/schemas/io.k8s.api.core.v1.Container");
  assert.equal(byName(containers.extension, "x-kubernetes-patch-merge-key").yaml.trim(), "name");
  const pods = byName(decoded.paths.path, "/api/v1/namespaces/{namespace}/pods");
  assert.equal(pods.post.requestBody.requestBody.required, true);
  assert.deepEqual(namesOf(pods.post.requestBody.requestBody.content.additional), ["*/*"]);
  assert.deepEqual(namesOf(pods.post.responses.response), ["200", "201", "202", "401"]);
  assert.partialDeepStrictEqual(pods.parameters[0].parameter, { name: "namespace", in: "path", required: true });
});

test("in the protobuf form of v3 a reference keeps its description", () => {
  const made = atOnce(openApiV3(everyResource()).get("api/v1")?.() as Steps<OpenApiV3Document>);
  const properties = { b: { $ref: "#/components/schemas/b", description: "of b" } };
  const schemas = { a: { type: "object", properties } };
  const type = v3.lookupType("Document");
  const encoded = atOnce(encodeOpenApiV3({ ...made, components: { ...made.components, schemas } }));
  const decoded = type.toObject(type.decode(encoded)) as Decoded;
  const [b] = decoded.components.schemas.additional[0].value.schema.properties.additional;
  assert.deepEqual(b.value.reference, { ref: "#/components/schemas/b", description: "of b" });
});

test("documents of 300 definitions are made in steps, and once for all who ask", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [
      `field${at}`,
      { type: "object", description: "d".repeat(50), enum: [`value ${at}`] },
    ]),
  );
  const resources = Array.from({ length: 300 }, (_, at) => ({
    ...(everyResource()[0] as ReturnType<typeof everyResource>[number]),
    group: `group${at}.example.com`,
    version: "v1",
    resource: `widgets${at}`,
    kind: "Widget",
    listKind: "WidgetList",
    subresources: [],
    custom: { preserving: false, schema: { type: "object", properties: { spec: { type: "object", properties } } } },
  })) as ReturnType<typeof everyResource>;
  let made = 0;
  function* steps(): Steps<Buffer> {
    made++;
    return yield* encodeOpenApi(yield* openApiV2Steps(resources));
  }
  const longest = await longestTurnOf(100, async (round) => {
    const bytes = new OpenApiBytes([{ mediaType: "a/b", contentType: "a/b", make: steps }], 0, {
      turns: new Turns(),
      share: new ByteShare(1_000_000),
    });
    const answers: number[] = [];
    const exchange = { method: "GET", headers: {}, respond: (_: number, __: object, body: Buffer) => answers.push(body.length) };
    const { signal } = new AbortController();
    await Promise.all([1, 2].map(() => bytes.respond({ exchange, signal } as unknown as RequestContext)));
    assert.equal(answers.length, 2);
    assert.ok((answers[0] as number) > 3e6);
    assert.equal(made, round + 1);
  });
  assert.ok(longest < 300, `a turn of ${longest} ms`);
});

test("requests that arrive while documents are made share the next ones, however often the resources have changed", async () => {
  let generation = 0;
  const builds: PromiseWithResolvers<void>[] = [];
  const current = newCurrent(
    () => `${generation}`,
    async (building) => {
      const build = Promise.withResolvers<void>();
      builds.push(build);
      building(build.promise);
      return generation;
    },
  );
  assert.equal(await current(), 0);
  const later: Promise<number>[] = [];
  for (generation = 1; generation < 10; generation++) later.push(current());
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(builds.length, 1);
  builds[0]?.reject(new Error("no"));
  assert.deepEqual(new Set(await Promise.all(later)), new Set([10]));
  assert.equal(builds.length, 2);
  assert.equal(await current(), 10, "the same generation is not waited for");
});

test("documents that could not be made are made for the next request", async () => {
  let attempts = 0;
  const current = newCurrent(
    () => "1",
    async () => {
      if (attempts++ === 0) throw new Error("no");
      return attempts;
    },
  );
  await assert.rejects(current(), /no/);
  assert.deepEqual([await current(), await current()], [2, 2]);
});

const limited = protobuf.parse(`
  syntax = "proto3";
  message Document { Definitions definitions = 9; }
  message Definitions { repeated NamedSchema additional_properties = 1; }
  message NamedSchema { string name = 1; Schema value = 2; }
  message Schema {
    string title = 3; double multiple_of = 6; double maximum = 7; bool exclusive_maximum = 8; double minimum = 9;
    bool exclusive_minimum = 10; int64 max_length = 11; int64 min_length = 12; string pattern = 13; int64 max_items = 14;
    int64 min_items = 15; bool unique_items = 16; int64 max_properties = 17; int64 min_properties = 18; string discriminator = 26;
    bool read_only = 27;
  }
`).root;

test("the limits of values in documents of aggregated servers are in the protobuf form", () => {
  const limits = {
    ...{ title: "t", multipleOf: 1.5, maximum: 9.5, exclusiveMaximum: true, minimum: 2.5, exclusiveMinimum: true, maxLength: 3 },
    ...{ minLength: 4, pattern: "^a", maxItems: 5, minItems: 6, uniqueItems: true, maxProperties: 7, minProperties: 8 },
    ...{ discriminator: "kind", readOnly: true },
  };
  const type = limited.lookupType("Document");
  const encoded = atOnce(encodeOpenApi({ ...document, paths: {}, definitions: { A: limits as never } }));
  const decoded = type.toObject(type.decode(encoded), { longs: Number }) as Decoded;
  assert.deepEqual(decoded.definitions.additionalProperties[0].value, limits);
});

const whole = protobuf.parse(`
  syntax = "proto3";
  message Document {
    string swagger = 1; Info info = 2; Paths paths = 8; Definitions definitions = 9; repeated Requirement security = 12;
    Securities security_definitions = 13;
  }
  message Info { string title = 1; string version = 2; }
  message Requirement { repeated NamedScopes of = 1; }
  message NamedScopes { string name = 1; Scopes value = 2; }
  message Scopes { repeated string value = 1; }
  message Securities { repeated NamedSecurity of = 1; }
  message NamedSecurity { string name = 1; SecurityItem value = 2; }
  message SecurityItem { ApiKey api_key = 2; }
  message ApiKey { string type = 1; string name = 2; string in = 3; string description = 4; }
  message Paths { repeated NamedPathItem path = 2; }
  message NamedPathItem { string name = 1; PathItem value = 2; }
  message PathItem {
    Operation get = 2; Operation put = 3; Operation post = 4; Operation delete = 5; Operation options = 6; Operation head = 7;
    Operation patch = 8; repeated ParametersItem parameters = 9;
  }
  message Operation {
    repeated string tags = 1; string description = 3; string operation_id = 5; repeated string produces = 6;
    repeated string consumes = 7; repeated ParametersItem parameters = 8; Responses responses = 9; repeated string schemes = 10;
    repeated NamedAny extension = 13;
  }
  message Responses { repeated NamedResponse of = 1; }
  message NamedResponse { string name = 1; ResponseValue value = 2; }
  message ResponseValue { Response response = 1; }
  message Response { string description = 1; SchemaItem schema = 2; }
  message SchemaItem { Schema schema = 1; }
  message ParametersItem { oneof one { Parameter parameter = 1; Reference reference = 2; } }
  message Reference { string ref = 1; }
  message Parameter { oneof one { Body body = 1; NonBody other = 2; } }
  message Body { string description = 1; string name = 2; string in = 3; bool required = 4; Schema schema = 5; }
  message NonBody { oneof one { Near header = 1; Far form = 2; Far query = 3; Near path = 4; } }
  message Near {
    bool required = 1; string in = 2; string description = 3; string name = 4; string type = 5; string format = 6;
    bool unique_items = 19;
  }
  message Far {
    bool required = 1; string in = 2; string description = 3; string name = 4; string type = 6; string format = 7;
    bool unique_items = 20;
  }
  message Definitions { repeated NamedSchema of = 1; }
  message NamedSchema { string name = 1; Schema value = 2; }
  message Schema {
    string ref = 1; string format = 2; string description = 4; Any default = 5; repeated string required = 19;
    repeated Any enum = 20; Additional additional = 21; Texts type = 22; Items items = 23; repeated Schema all_of = 24;
    Definitions properties = 25; repeated NamedAny extension = 31;
  }
  message Additional { oneof one { Schema schema = 1; bool boolean = 2; } }
  message Texts { repeated string value = 1; }
  message Items { repeated Schema schema = 1; }
  message NamedAny { string name = 1; Any value = 2; }
  message Any { string yaml = 2; }
`).root;

test("every part of a document is at its place in the protobuf form", () => {
  const parameterOf = (place: string) => ({
    ...{ in: place, name: `of ${place}`, description: "d", required: true, type: "array", format: "f", uniqueItems: true },
  });
  const body = { in: "body", name: "body", description: "d", required: true, schema: { $ref: "#/definitions/A" } };
  const operation = (id: string) => ({ operationId: id, responses: {} });
  const get = {
    ...{ tags: ["a", "b"], description: "d", operationId: "get", produces: ["p", "q"], consumes: ["c", "d"] },
    ...{ schemes: ["http", "https"], "x-one": 1, "x-two": ["a"] },
    parameters: [body, ...["header", "formData", "query", "path", "elsewhere"].map(parameterOf)],
    responses: { 200: { description: "OK", schema: { type: "string" } }, "x-no": {}, 401: { description: "no" } },
  };
  const others = Object.fromEntries(["put", "post", "delete", "options", "head", "patch"].map((name) => [name, operation(name)]));
  const definitions = {
    A: {
      ...{ $ref: "r", format: "f", description: "d", default: { a: 1 }, required: ["a", "b"], enum: ["x", 1] },
      ...{ additionalProperties: { type: "string" }, type: "object", items: { type: "integer" }, "x-more": true },
      allOf: [{ type: "string" }, { format: "g" }],
      properties: { a: { type: ["string", "null"] }, b: { items: [{ type: "string" }, { type: "number" }] } },
    },
    B: { additionalProperties: true },
    C: { additionalProperties: false },
  };
  const made = {
    ...document,
    security: [{ first: ["s", "t"], second: [] }, { third: [] }],
    securityDefinitions: {
      first: { type: "apiKey", name: "authorization", in: "header", description: "d" },
      second: { type: "apiKey", name: "key", in: "query", description: "e" },
    },
    paths: {
      "/a": { get, ...others, parameters: [{ $ref: "#/parameters/p" }, parameterOf("path")] },
      "/b": { get: operation("b") },
    },
    definitions,
  } as unknown as OpenApiDocument;
  const type = whole.lookupType("Document");
  const decoded = type.toObject(type.decode(atOnce(encodeOpenApi(made)))) as Decoded;
  const namedIn = (list: Decoded[]): Decoded => Object.fromEntries(list.map(({ name, value }) => [name, value]));

  assert.deepEqual(decoded.security, [
    {
      of: [
        { name: "first", value: { value: ["s", "t"] } },
        { name: "second", value: {} },
      ],
    },
    { of: [{ name: "third", value: {} }] },
  ]);
  assert.deepEqual(namedIn(decoded.securityDefinitions.of), {
    first: { apiKey: made.securityDefinitions["first"] },
    second: { apiKey: made.securityDefinitions["second"] },
  });
  assert.deepEqual(
    decoded.paths.path.map(({ name }: Decoded) => name),
    ["/a", "/b"],
  );
  const { get: got, parameters, ...rest } = decoded.paths.path[0].value;
  const place = (name: string) => ({ parameter: { other: { [name === "formData" ? "form" : name]: parameterOf(name) } } });
  assert.deepEqual(parameters, [{ reference: { ref: "#/parameters/p" } }, place("path")]);
  for (const [name, { operationId }] of Object.entries(others)) assert.equal(rest[name].operationId, operationId);
  assert.equal(Object.keys(rest).length, 6);
  const { schema, ...aboutBody } = body;
  assert.deepEqual(got, {
    ...{ tags: ["a", "b"], description: "d", operationId: "get", produces: ["p", "q"], consumes: ["c", "d"] },
    schemes: ["http", "https"],
    parameters: [
      { parameter: { body: { ...aboutBody, schema: { ref: schema.$ref } } } },
      ...["header", "formData", "query", "path"].map(place),
      { parameter: { other: { query: parameterOf("elsewhere") } } },
    ],
    responses: {
      of: [
        { name: "200", value: { response: { description: "OK", schema: { schema: { type: { value: ["string"] } } } } } },
        { name: "401", value: { response: { description: "no" } } },
      ],
    },
    extension: [
      { name: "x-one", value: { yaml: "1\n" } },
      { name: "x-two", value: { yaml: "- a\n" } },
    ],
  });
  const types = (...value: string[]) => ({ type: { value } });
  assert.deepEqual(namedIn(decoded.definitions.of), {
    A: {
      ...{ ref: "r", format: "f", description: "d", default: { yaml: "a: 1\n" }, required: ["a", "b"] },
      enum: [{ yaml: "x\n" }, { yaml: "1\n" }],
      additional: { schema: types("string") },
      ...types("object"),
      items: { schema: [types("integer")] },
      allOf: [types("string"), { format: "g" }],
      properties: {
        of: [
          { name: "a", value: types("string", "null") },
          { name: "b", value: { items: { schema: [types("string"), types("number")] } } },
        ],
      },
      extension: [{ name: "x-more", value: { yaml: "true\n" } }],
    },
    B: { additional: { boolean: true } },
    C: { additional: { boolean: false } },
  });
});

test("a request that ends does not wait for a document", async () => {
  const cancel = new AbortController();
  const waiting = beforeEnd({ signal: cancel.signal } as RequestContext, new Promise(() => {}));
  cancel.abort(new Error("the client disconnected"));
  await assert.rejects(waiting, /the client disconnected/);
});

test("a changed resource makes no v3 document of other group versions anew", async () => {
  const resources = newServedResources();
  const add = (group: string, resource = "things"): void => {
    const version = {
      version: "v1",
      *published() {
        yield;
        return { schema: undefined, preserving: false };
      },
    };
    const names = { group, resource, kind: "Thing", listKind: "ThingList", hub: "v1", namespaced: true };
    const definition = { ...names, verbs: ["get", "list"], versions: [version], custom: true };
    resources.add(definition as unknown as ResourceDefinition, version, undefined);
  };
  let now = Date.parse("2022-01-01T00:00:00Z");
  const env = {
    resources,
    services: { featureEnabled: (gate: string) => gate === "OpenAPIV3", now: () => now, turns: new Turns() },
    documents: new ByteShare(1e9),
  };
  const respond = newOpenApi(env as unknown as HandlerEnv);
  /** Time at which the document was created, and its length. */
  const get = async (root: string, accept = "application/json"): Promise<{ made: string | undefined; sizeBytes: number }> => {
    const found = { made: undefined as string | undefined, sizeBytes: 0 };
    const exchange = {
      method: "GET",
      headers: { accept },
      respond(_: number, headers: Record<string, string>, body: Buffer) {
        Object.assign(found, { made: headers["last-modified"], sizeBytes: body.length });
      },
    };
    const { signal } = new AbortController();
    await respond({ exchange, signal } as unknown as RequestContext, ["openapi", "v3", "apis", root, "v1"]);
    return found;
  };
  const protobufV3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
  add("a.example");
  add("b.example");
  const first = await get("a.example");
  const inProtobuf = await get("a.example", protobufV3);
  const other = await get("b.example");
  now += 60_000;
  add("b.example"); // as after a change of its definition
  add("c.example");
  assert.deepEqual(await get("a.example"), first);
  assert.deepEqual(await get("a.example", protobufV3), inProtobuf);
  assert.notEqual((await get("b.example")).made, other.made);
  assert.ok((await get("c.example")).sizeBytes > 0);
  now += 60_000;
  resources.remove("b.example", "v1", "things");
  assert.deepEqual(await get("a.example"), first);
  const changes = [() => add("a.example", "others"), () => resources.remove("a.example", "v1", "others")];
  for (const change of changes) {
    const before = await get("a.example");
    now += 60_000;
    change();
    const after = await get("a.example");
    assert.notEqual(after.made, before.made, "of the group version that was changed it is made anew");
    assert.equal(after.sizeBytes > before.sizeBytes, change === changes[0]);
  }
});

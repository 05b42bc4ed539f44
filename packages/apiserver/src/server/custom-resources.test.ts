import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aWidget, conditionsOf, define, definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const group = "example.com";
const path = `/apis/${group}/v1/namespaces/default/widgets`;

test("a defined resource takes every verb, and is announced", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  const created = await server.request("POST", path, aWidget(group, "a", { spec: { size: 1 } }));
  assert.equal(created.code, 201, created.text);
  assert.equal(created.body.metadata.generation, 1);
  const got = await server.request("GET", `${path}/a`);
  assert.deepEqual(got.body, created.body);
  const put = await server.request("PUT", `${path}/a`, { ...got.body, spec: { size: 2 } });
  assert.deepEqual([put.code, put.body.metadata.generation, put.body.spec.size], [200, 2, 2]);
  const merge = { "content-type": "application/merge-patch+json" };
  const patched = await server.request("PATCH", `${path}/a`, { metadata: { labels: { x: "y" } } }, merge);
  assert.deepEqual([patched.code, patched.body.metadata.generation], [200, 2]);
  const strategic = { "content-type": "application/strategic-merge-patch+json" };
  const refused = await server.request("PATCH", `${path}/a`, {}, strategic);
  assert.equal(refused.code, 415);
  assert.equal(
    refused.body.message,
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
  );
  const list = await server.request("GET", `/apis/${group}/v1/widgets?labelSelector=x%3Dy`);
  assert.deepEqual([list.body.kind, list.body.items[0].kind, list.body.items.length], ["WidgetList", "Widget", 1]);
  assert.equal((await server.request("DELETE", `${path}/a`)).code, 200);
  assert.equal((await server.request("GET", `${path}/a`)).body.message, 'widgets.example.com "a" not found');

  const { body: resources } = await server.request("GET", `/apis/${group}/v1`);
  const [row] = resources.resources;
  assert.deepEqual(row, {
    name: "widgets",
    singularName: "widget",
    namespaced: true,
    kind: "Widget",
    verbs: ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
    shortNames: ["wd"],
    categories: ["all"],
    storageVersionHash: row.storageVersionHash,
  });
  await waitFor(async () => {
    const { body } = await server.request("GET", "/apis");
    return body.groups.at(-1).name === group;
  });
  assert.equal((await server.request("GET", `/apis/apiregistration.k8s.io/v1/apiservices/v1.${group}`)).code, 200);
});

test("the only server establishes a definition without waiting for others to see it, and serves none in a built-in group", async (t) => {
  const server = await startTestServer(t);
  const builtIn = widgets("storage.k8s.io");
  const annotations = { "api-approved.kubernetes.io": "unapproved, for a test" };
  const made = await server.request("POST", definitionsPath, { ...builtIn, metadata: { ...builtIn.metadata, annotations } });
  assert.equal(made.code, 201, made.text);
  const waits: number[] = [];
  // The shortest of three, in whole seconds: a busy machine may be slow once.
  for (const one of ["a.example.com", "b.example.com", "c.example.com"]) {
    await define(server, widgets(one));
    const { NamesAccepted, Established } = await conditionsOf(server, `widgets.${one}`);
    waits.push(Date.parse(Established?.lastTransitionTime ?? "") - Date.parse(NamesAccepted?.lastTransitionTime ?? ""));
  }
  assert.ok(Math.min(...waits) <= 3_000, `${waits} ms`);
  assert.equal((await server.request("GET", "/apis/storage.k8s.io/v1/widgets")).code, 404);
});

test("unknown fields are pruned and defaults are set", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=ServerSideFieldValidation=true"]);
  const schema = specOf({
    size: { type: "integer", default: 3 },
    note: { type: "string" },
    maybe: { type: "string", nullable: true },
    open: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const spec = { note: null, maybe: null, other: true, open: { any: { thing: 1 } } };
  const created = await server.request("POST", path, aWidget(group, "a", { spec, other: 1 }));
  assert.equal(created.code, 201, created.text);
  assert.deepEqual(created.body.spec, { size: 3, maybe: null, open: { any: { thing: 1 } } });
  assert.equal("other" in created.body, false);

  const strict = await server.request("POST", `${path}?fieldValidation=Strict`, aWidget(group, "b", { spec: { other: 1 } }));
  assert.equal(strict.code, 400, strict.text);
  assert.match(strict.body.message, /strict decoding error: unknown field "spec\.other"$/);
});

test("lists say that they are whole, and the metadata of custom resources has a protobuf form", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  await server.request("POST", path, aWidget(group, "a"));
  const { body } = await server.request("GET", path);
  assert.equal(body.metadata.continue, "");
  const protobuf = "application/vnd.kubernetes.protobuf";
  const asMetadata = `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
  const metadata = await server.request("GET", `${path}/a`, undefined, { accept: asMetadata });
  assert.deepEqual([metadata.code, metadata.headers["content-type"]], [200, protobuf]);
  assert.match(metadata.text, /^k8s\0/);
  const whole = await server.request("GET", `${path}/a`, undefined, { accept: protobuf });
  assert.equal(whole.code, 406);
  const html = await server.request("GET", path, undefined, { accept: "text/html" });
  assert.equal(
    html.body.message,
    "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
  );
});

test("custom resources have to say what they are, and a body that is not an object is reported", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  const apiVersion = `${group}/v1`;
  const handled = 'Widget in version "v1" cannot be handled as a Widget';
  for (const { body, code, text } of [
    { body: {}, code: 400, text: `${handled}: Object 'Kind' is missing in '{}'` },
    { body: null, code: 400, text: `${handled}: Object 'Kind' is missing in 'null'` },
    {
      body: { kind: "Widget", metadata: { name: "x" } },
      code: 500,
      text: "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'",
    },
    {
      body: { kind: "Other", apiVersion, metadata: { name: "x" } },
      code: 422,
      text: 'Other.example.com "x" is invalid: kind: Invalid value: "Other": must be Widget',
    },
    {
      body: { kind: "Other", apiVersion: "v1", metadata: { name: "x" } },
      code: 400,
      text: "the API version in the data (v1) does not match the expected API version (example.com/v1)",
    },
    {
      body: [],
      code: 400,
      text: 'the object provided is unrecognized (must be of type Widget): couldn\'t get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)',
    },
  ]) {
    const answer = await server.request("POST", `${path}?dryRun=All`, body);
    assert.deepEqual([answer.code, answer.body.message], [code, text]);
  }
});

test("a definition is kept by its finalizer from the first deletion on, also after it was replaced", async (t) => {
  const server = await startTestServer(t);
  const tried = await server.request("POST", `${definitionsPath}?dryRun=All`, widgets(group));
  assert.equal(tried.code, 201, tried.text);
  assert.equal(tried.body.metadata.finalizers, undefined);
  assert.deepEqual(tried.body.status, { conditions: null, acceptedNames: { plural: "", kind: "" }, storedVersions: ["v1"] });
  await define(server, widgets(group));
  const own = `${definitionsPath}/widgets.${group}`;
  const { body: defined } = await server.request("GET", own);
  assert.equal(defined.metadata.finalizers, undefined);
  assert.equal((await server.request("PUT", own, { ...defined, metadata: { ...defined.metadata, finalizers: [] } })).code, 200);
  assert.equal((await server.request("POST", path, aWidget(group, "a"))).code, 201);

  const { code, body } = await server.request("DELETE", own);
  assert.equal(code, 200);
  assert.deepEqual(body.metadata.finalizers, ["customresourcecleanup.apiextensions.k8s.io"]);
  assert.equal(body.metadata.generation, defined.metadata.generation);
  const pending = body.status.conditions.at(-1);
  assert.deepEqual([pending.type, pending.reason], ["Terminating", "InstanceDeletionPending"]);
  await waitFor(async () => (await server.request("GET", own)).code === 404);
  await define(server, widgets(group));
  assert.deepEqual((await server.request("GET", path)).body.items, []);
});

test("a value that violates the schema gets 422 with the path of each error", async (t) => {
  const server = await startTestServer(t);
  const schema = specOf(
    { size: { type: "integer", minimum: 1 }, color: { type: "string", enum: ["red", "blue"] } },
    { required: ["size"] },
  );
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const refused = await server.request("POST", path, aWidget(group, "a", { spec: { color: "green" } }));
  assert.equal(refused.code, 422);
  assert.equal(
    refused.body.message,
    'Widget.example.com "a" is invalid: [spec.color: Unsupported value: "green": supported values: "red", "blue", spec.size: Required value]',
  );
});

test("status and scale are separate subresources", async (t) => {
  const server = await startTestServer(t);
  const version = {
    name: "v1",
    subresources: {
      status: {},
      scale: {
        specReplicasPath: ".spec.replicas",
        statusReplicasPath: ".status.replicas",
        labelSelectorPath: ".status.selector",
      },
    },
  };
  await define(server, widgets(group, [version]));
  const made = await server.request("POST", path, aWidget(group, "a", { spec: { replicas: 2 }, status: { replicas: 9 } }));
  assert.equal("status" in made.body, false);
  const status = { replicas: 1, selector: "app=a" };
  const put = await server.request("PUT", `${path}/a/status`, { ...made.body, spec: { replicas: 7 }, status });
  assert.deepEqual([put.code, put.body.spec, put.body.status, put.body.metadata.generation], [200, { replicas: 2 }, status, 1]);
  const scale = await server.request("GET", `${path}/a/scale`);
  assert.deepEqual([scale.body.kind, scale.body.spec, scale.body.status], ["Scale", { replicas: 2 }, status]);
  const unnumbered = { metadata: { name: "a" }, spec: { replicas: 4 } };
  assert.equal((await server.request("PUT", `${path}/a/scale`, unnumbered)).body.spec.replicas, 4);
  const { body: last } = await server.request("GET", `${path}/a/scale`);
  const scaled = await server.request("PUT", `${path}/a/scale`, { ...last, spec: { replicas: 5 } });
  assert.equal(scaled.code, 200, scaled.text);
  const after = await server.request("GET", `${path}/a`);
  assert.deepEqual([after.body.spec, after.body.metadata.generation], [{ replicas: 5 }, 3]);
  const rows = (await server.request("GET", `/apis/${group}/v1`)).body.resources.map(({ name }: { name: string }) => name);
  assert.deepEqual(rows, ["widgets", "widgets/scale", "widgets/status"]);
});

test("versions show the same objects, and the stored version is the one that is said", async (t) => {
  const server = await startTestServer(t);
  const any = specOf({ size: { type: "integer", default: 3 } }, { "x-kubernetes-preserve-unknown-fields": true });
  const sized = specOf({ size: { type: "integer" }, color: { type: "string", default: "red" } });
  await define(
    server,
    widgets(group, [
      { name: "v1", schema: any },
      { name: "v2beta1", schema: sized },
    ]),
  );
  assert.equal((await server.request("POST", path, aWidget(group, "a", { spec: { other: 1 } }))).code, 201);
  const beta = `/apis/${group}/v2beta1/namespaces/default/widgets`;
  const seen = await server.request("GET", `${beta}/a`);
  assert.deepEqual([seen.body.apiVersion, seen.body.spec], [`${group}/v2beta1`, { size: 3 }]);
  assert.deepEqual((await server.request("GET", `${path}/a`)).body.spec, { other: 1, size: 3 });
  const put = await server.request("PUT", `${beta}/a`, { ...seen.body, spec: { size: 4 } });
  assert.deepEqual([put.code, put.body.apiVersion], [200, `${group}/v2beta1`]);
  assert.deepEqual((await server.request("GET", `${path}/a`)).body.spec, { size: 4, color: "red" });
});

test("columns are those of the definition", async (t) => {
  const server = await startTestServer(t);
  const additionalPrinterColumns = [
    { name: "Size", type: "integer", jsonPath: ".spec.size" },
    { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: "Parts", type: "string", jsonPath: ".spec.parts", priority: 1 },
  ];
  await define(server, widgets(group, [{ name: "v1", additionalPrinterColumns }]));
  const fields = { spec: { size: 4, parts: ["a"] }, status: { conditions: [{ type: "Ready", status: "True" }] } };
  await server.request("POST", path, aWidget(group, "a", fields));
  const table = await server.request("GET", path, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
  assert.deepEqual(
    table.body.columnDefinitions.map(({ name }: { name: string }) => name),
    ["Name", "Size", "Ready", "Parts"],
  );
  assert.deepEqual(table.body.rows[0].cells, ["a", 4, "True", '["a"]']);
  const protobuf = await server.request("GET", path, undefined, { accept: "application/vnd.kubernetes.protobuf" });
  assert.equal(protobuf.code, 406);
});

test("custom resources are selected by their name, and by their namespace where they have one", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group, [{ name: "v1" }]));
  await server.request("POST", path, aWidget(group, "a", {}));
  await server.request("POST", path, aWidget(group, "b", {}));
  const select = async (field: string, below = path) => (await server.request("GET", `${below}?fieldSelector=${field}=b`)).body;
  assert.deepEqual(
    (await select("metadata.name")).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
    ["b"],
  );
  assert.deepEqual((await select("metadata.namespace")).items, []);
  assert.equal((await select("spec.size")).message, "field label not supported: spec.size");
  const wide = widgets(`wide.${group}`, [{ name: "v1" }]);
  await define(server, { ...wide, spec: { ...wide.spec, scope: "Cluster" } });
  const refused = await select("metadata.namespace", `/apis/wide.${group}/v1/widgets`);
  assert.equal(refused.message, "field label not supported: metadata.namespace");
});

test("two definitions of a group cannot have the same kind", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  const other = widgets(group, undefined, {
    names: { plural: "gadgets", singular: "gadget", kind: "Widget", listKind: "GadgetList" },
  });
  other.metadata.name = `gadgets.${group}`;
  assert.equal((await server.request("POST", definitionsPath, other)).code, 201);
  await waitFor(async () => (await conditionsOf(server, other.metadata.name))["NamesAccepted"] !== undefined);
  const { NamesAccepted, Established } = await conditionsOf(server, other.metadata.name);
  assert.deepEqual(
    [NamesAccepted?.status, NamesAccepted?.reason, NamesAccepted?.message, Established?.reason],
    ["False", "KindConflict", '"Widget" is already in use', "NotAccepted"],
  );
  assert.equal((await server.request("GET", `/apis/${group}/v1/gadgets`)).code, 404);
  // Deleting the definition that owns the name releases it.
  assert.equal((await server.request("DELETE", `${definitionsPath}/widgets.${group}`)).code, 200);
  await waitFor(async () => (await conditionsOf(server, other.metadata.name))["Established"]?.status === "True");
  assert.equal((await server.request("GET", `/apis/${group}/v1/gadgets`)).code, 200);
});

test("a definition is deleted with its instances, and its watches end", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  await server.request("POST", path, aWidget(group, "a"));
  const watched = server.request("GET", `${path}?watch=1&timeoutSeconds=30`);
  const deleted = await server.request("DELETE", `${definitionsPath}/widgets.${group}`);
  assert.equal(deleted.code, 200);
  const events = (await watched).text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).type);
  assert.deepEqual(events, ["ADDED", "DELETED"]);
  await waitFor(async () => (await server.request("GET", path)).code === 404);
  assert.equal((await server.request("GET", path)).text, "404 page not found\n");
  await waitFor(async () => (await server.request("GET", `/apis/${group}`)).code === 404);
  await define(server, widgets(group));
  assert.deepEqual((await server.request("GET", path)).body.items, []);
});

test("a changed definition holds at once, and ends the watches of before", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  await server.request("POST", path, aWidget(group, "a", { spec: { size: 1 } }));
  const watched = server.request("GET", `${path}?watch=1&timeoutSeconds=30`);
  const { body } = await server.request("GET", `${definitionsPath}/widgets.${group}`);
  body.spec.versions[0].schema.openAPIV3Schema = specOf({ color: { type: "string", default: "red" } });
  assert.equal((await server.request("PUT", `${definitionsPath}/widgets.${group}`, body)).code, 200);
  assert.equal((await watched).code, 200);
  assert.deepEqual((await server.request("GET", `${path}/a`)).body.spec, { color: "red" });
});

test("a definition of many versions is served in all of them, and so is its change", async (t) => {
  const server = await startTestServer(t);
  const many = (last: object) =>
    widgets(group, [...Array.from({ length: 100 }, (_, at) => ({ name: `v${at + 1}` })), { name: "v101", ...last }]);
  await define(server, many({ served: false }));
  const codeOf = async (version: string): Promise<number> =>
    (await server.request("GET", `/apis/${group}/${version}/widgets`)).code;
  assert.deepEqual(await Promise.all(["v1", "v100", "v101"].map(codeOf)), [200, 200, 404]);
  const put = async (last: object): Promise<void> => {
    const { body } = await server.request("GET", `${definitionsPath}/widgets.${group}`);
    const { code, text } = await server.request("PUT", `${definitionsPath}/widgets.${group}`, { ...body, spec: many(last).spec });
    assert.equal(code, 200, text);
  };
  await put({ served: true });
  await waitFor(async () => (await codeOf("v101")) === 200);
  // The first of two quick changes is abandoned.
  await put({ served: false });
  await put({ served: true, deprecated: true });
  await waitFor(async () => (await server.request("GET", `/apis/${group}/v101/widgets`)).headers["warning"] !== undefined);
  assert.equal((await server.request("DELETE", `${definitionsPath}/widgets.${group}`)).code, 200);
  await waitFor(async () => (await codeOf("v1")) === 404);
});

test("server-side apply merges lists by the keys of the schema", async (t) => {
  const server = await startTestServer(t);
  const list = { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] };
  const item = { type: "object", required: ["name"], properties: { name: { type: "string" }, size: { type: "integer" } } };
  await define(server, widgets(group, [{ name: "v1", schema: specOf({ parts: { ...list, items: item } }) }]));
  const apply = { "content-type": "application/apply-patch+yaml" };
  const by = (manager: string, parts: object[]) =>
    server.request("PATCH", `${path}/a?fieldManager=${manager}`, aWidget(group, "a", { spec: { parts } }), apply);
  assert.equal((await by("one", [{ name: "x", size: 1 }])).code, 201);
  const both = await by("two", [{ name: "y", size: 2 }]);
  assert.deepEqual(both.body.spec.parts, [
    { name: "x", size: 1 },
    { name: "y", size: 2 },
  ]);
  assert.equal((await by("two", [{ name: "x", size: 3 }])).code, 409);
  const unknown = await server.request("PATCH", `${path}/a?fieldManager=one`, aWidget(group, "a", { spec: { other: 1 } }), apply);
  assert.equal(unknown.code, 500, unknown.text);
  assert.match(unknown.body.message, /\.spec\.other: field not declared in schema/);
});

test("OpenAPI describes the kind as its definition does, and leaves open what kubectl could not read", async (t) => {
  const server = await startTestServer(t);
  const schema = {
    ...specOf({
      size: { type: "integer", description: "How large it is.", minimum: 1, default: 3 },
      maybe: { type: "string", nullable: true },
    }),
    description: "A widget.",
  };
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const { body } = await server.request("GET", "/openapi/v2");
  const widget = body.definitions["com.example.v1.Widget"];
  assert.deepEqual(Object.keys(widget.properties).sort(), ["apiVersion", "kind", "metadata", "spec"]);
  assert.deepEqual(widget["x-kubernetes-group-version-kind"], [{ group, kind: "Widget", version: "v1" }]);
  assert.deepEqual(widget.properties.spec.properties, {
    size: { type: "integer", description: "How large it is.", minimum: 1 },
    maybe: {},
  });
  const post = body.paths[`/apis/${group}/v1/namespaces/{namespace}/widgets`].post;
  assert.deepEqual(
    [post.operationId, post.consumes],
    ["createExampleComV1NamespacedWidget", ["application/json", "application/yaml"]],
  );
  assert.equal(body.paths[`/apis/${group}/v1/watch/widgets`], undefined);
});

test("with the gate OpenAPIV3 a group version has a document with defaults and alternatives", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=OpenAPIV3=true"]);
  const schema = specOf({
    size: { type: "integer", default: 3, anyOf: [{ minimum: 1 }] },
    maybe: { type: "string", nullable: true },
  });
  await define(server, widgets(group, [{ name: "v1", schema }]));
  const { body } = await server.request("GET", `/openapi/v3/apis/${group}/v1`);
  assert.deepEqual(body.components.schemas["com.example.v1.Widget"].properties.spec.properties, {
    size: { type: "integer", default: 3, anyOf: [{ minimum: 1 }] },
    maybe: { type: "string", nullable: true },
  });
});

test("conditions say what a definition lacks", async (t) => {
  const server = await startTestServer(t);
  const unapproved = widgets("widgets.k8s.io");
  Object.assign(unapproved.metadata, { annotations: { "api-approved.kubernetes.io": "unapproved, a test" } });
  await define(server, unapproved);
  await waitFor(async () => "KubernetesAPIApprovalPolicyConformant" in (await conditionsOf(server, unapproved.metadata.name)));
  const { KubernetesAPIApprovalPolicyConformant: approval } = await conditionsOf(server, unapproved.metadata.name);
  assert.deepEqual(
    [approval?.status, approval?.reason, approval?.message],
    ["False", "UnapprovedAnnotation", 'not approved: "unapproved, a test"'],
  );
});

test("a definition that waits for its instances takes no new ones", async (t) => {
  const server = await startTestServer(t);
  await define(server, widgets(group));
  const held = aWidget(group, "a");
  Object.assign(held.metadata, { finalizers: ["example.com/held"] });
  assert.equal((await server.request("POST", path, held)).code, 201);
  await server.request("DELETE", `${definitionsPath}/widgets.${group}`);
  const begun = "InstanceDeletionInProgress";
  await waitFor(async () => (await conditionsOf(server, `widgets.${group}`))["Terminating"]?.reason === begun);
  const { Terminating } = await conditionsOf(server, `widgets.${group}`);
  assert.deepEqual([Terminating?.status, Terminating?.message], ["True", "CustomResource deletion is in progress"]);
  const refused = await server.request("POST", path, aWidget(group, "b"));
  assert.deepEqual(
    [refused.code, refused.body.message],
    [405, "create not allowed while custom resource definition is terminating"],
  );
  const { body } = await server.request("GET", `/apis/${group}/v1`);
  assert.deepEqual(body.resources[0].verbs, ["delete", "deletecollection", "get", "list", "watch"]);
});

test("a server without definitions is ready all the same", async (t) => {
  const server = await startTestServer(t, ["--runtime-config=apiextensions.k8s.io/v1=false"]);
  assert.equal((await server.request("GET", definitionsPath)).code, 404);
  assert.doesNotMatch((await server.request("GET", "/readyz?verbose")).text, /crd-informer-synced/);
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startShared, type TestServer } from "./testing.ts";

/** Error responses whose code, precedence and text match upstream's, one request each. */
let server: TestServer;
before(async () => {
  server = await startShared();
  await server.request("POST", configMaps, { metadata: { name: "kube-root" } });
});
after(() => server.stop());

const merge = { "content-type": "application/merge-patch+json" };
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const table = "application/json;as=Table;g=meta.k8s.io;v=v1";
const inDefault = (group: string, resource: string): string =>
  `${group === "" ? "/api/v1" : `/apis/${group}/v1`}/namespaces/default/${resource}`;
const configMaps = inDefault("", "configmaps");
const gone = "the server could not find the requested resource";

interface Row {
  readonly name: string;
  readonly request: Parameters<TestServer["request"]>;
  readonly code: number;
  readonly reason?: string;
  readonly message: string | RegExp;
  readonly details?: unknown;
}

const rows: readonly Row[] = [
  {
    name: "one of a resource that only takes POST",
    request: ["GET", inDefault("", "bindings/x")],
    code: 404,
    reason: "NotFound",
    message: gone,
    details: {},
  },
  { name: "one of the reviews", request: ["DELETE", "/apis/authentication.k8s.io/v1/tokenreviews/x"], code: 404, message: gone },
  {
    name: "a patch that makes a large number of the version",
    request: [
      "PATCH",
      `${configMaps}/kube-root`,
      '{"apiVersion":9007199254740993}',
      { "content-type": "application/strategic-merge-patch+json" },
    ],
    code: 422,
    reason: "Invalid",
    message: ' "" is invalid: patch: Invalid value: "map[apiVersion:9007199254740993]": cannot convert int64 to string',
  },
  {
    name: "a patch that makes a list of the object",
    request: ["PATCH", `${configMaps}/kube-root`, "[]", { "content-type": "application/merge-patch+json" }],
    code: 422,
    reason: "Invalid",
    message:
      /^ "" is invalid: patch: Invalid value: "\[\]": couldn't get version\/kind; json parse error: json: cannot unmarshal array/,
  },
  {
    name: "a patch that deletes from a list what is no list",
    request: [
      "PATCH",
      `${configMaps}/kube-root`,
      '{"metadata":{"$deleteFromPrimitiveList/finalizers":true}}',
      { "content-type": "application/strategic-merge-patch+json" },
    ],
    code: 422,
    reason: "Invalid",
    message:
      ' "" is invalid: patch: Invalid value: "map[metadata:map[$deleteFromPrimitiveList/finalizers:true]]": cannot restore slice from bool',
  },
  {
    name: "a patch whose order is no list",
    request: [
      "PATCH",
      `${configMaps}/kube-root`,
      '{"metadata":{"$setElementOrder/finalizers":"x"}}',
      { "content-type": "application/strategic-merge-patch+json" },
    ],
    code: 500,
    reason: undefined,
    message: "expected a []interface {}, but received a string",
  },
  {
    name: "a patch with a directive that is none",
    request: [
      "PATCH",
      `${configMaps}/kube-root`,
      '{"metadata":{"$patch":"frob"}}',
      { "content-type": "application/strategic-merge-patch+json" },
    ],
    code: 500,
    reason: undefined,
    message: "unknown patch type: frob in map: map[$patch:frob]",
  },
  {
    name: "YAML that cannot be read",
    request: ["POST", configMaps, "a: b: c", { "content-type": "application/yaml" }],
    code: 400,
    message:
      "the object provided is unrecognized (must be of type ConfigMap): yaml: mapping values are not allowed in this context (613a20623a2063)",
  },
  { name: "bindings of all namespaces", request: ["POST", "/api/v1/bindings", {}], code: 404, message: gone },
  {
    name: "a method that a path with others does not have",
    request: ["POST", "/api/v1/configmaps", {}],
    code: 405,
    message: "the server does not allow this method on the requested resource",
  },
  {
    name: "a patch of no known type",
    request: ["PATCH", `${configMaps}/none`, {}, { "content-type": "application/json", "content-length": "2" }],
    code: 415,
    reason: "UnsupportedMediaType",
    message: "415: Unsupported Media Type",
    details: {},
  },
  {
    name: "a patch whose answer cannot be given, before its type",
    request: ["PATCH", `${configMaps}/none`, {}, { ...merge, accept: "text/csv" }],
    code: 406,
    reason: "NotAcceptable",
    message: "406: Not Acceptable",
    details: {},
  },
  ...["/version", "/api/v1", `${configMaps}?watch=1`, `${configMaps}/none`, "/api/v1/watch/pods"].map((path) => ({
    name: `half a wildcard as the form of ${path}`,
    request: ["GET", path, undefined, { accept: "application/*" }] as Row["request"],
    code: 406,
    message: "406: Not Acceptable",
    details: {},
  })),
  {
    name: "a watch in a form that nothing has",
    request: ["GET", `${configMaps}?watch=1`, undefined, { accept: "application/json;as=Nothing;g=x;v=y" }],
    code: 406,
    message:
      "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
  },
  {
    name: "a list as the metadata of one object",
    request: ["GET", inDefault("events.k8s.io", "events"), undefined, { accept: metadataOnly }],
    code: 406,
    message: "you requested PartialObjectMetadata, but the requested object is a list (*core.EventList)",
  },
  {
    name: "a body whose type has an empty parameter",
    request: ["POST", configMaps, {}, { "content-type": "application/json;a=b;;" }],
    code: 415,
    reason: "UnsupportedMediaType",
    message: /^the body of the request was in an unknown format/,
  },
  {
    name: "a status as a table",
    request: ["GET", `${inDefault("apps", "deployments")}/none/status`, undefined, { accept: table }],
    code: 406,
    message:
      "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
  },
  {
    name: "protobuf that is none",
    request: ["POST", configMaps, "{}", { "content-type": "application/vnd.kubernetes.protobuf" }],
    code: 400,
    message:
      "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})",
  },
  {
    name: "someone whose name is not ASCII",
    request: ["GET", configMaps, undefined, { "impersonate-user": Buffer.from("zoë").toString("latin1") }],
    code: 403,
    message: 'configmaps is forbidden: User "zoë" cannot list resource "configmaps" in API group "" in the namespace "default"',
  },
  {
    name: "a custom resource definition without a name",
    request: [
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      { spec: { group: "a.b", names: { plural: "c" } } },
    ],
    code: 422,
    message: /is invalid: \[metadata.name: Required value: name or generateName is required, spec\./,
  },
  ...[
    ["x", "invalid syntax"],
    ["70000", "value out of range"],
  ].map(([port, why]) => ({
    name: `forwarding port ${port} of a pod that is not there`,
    request: ["POST", `${inDefault("", "pods")}/none/portforward?ports=80,${port}`] as unknown as Row["request"],
    code: 400,
    message: `cannot convert to []int32: strconv.ParseUint: parsing "${port}": ${why}`,
  })),
  {
    name: "exec without a command in a pod that is not there",
    request: ["POST", `${inDefault("", "pods")}/none/exec`, undefined],
    code: 404,
    message: 'pods "none" not found',
  },
  ...[
    ["networking.k8s.io", "ingresses", "Ingress.extensions"],
    ["networking.k8s.io", "networkpolicies", "NetworkPolicy.extensions"],
    ["events.k8s.io", "events", "Event"],
  ].map(([group = "", resource = "", named = ""]) => ({
    name: `one of the ${resource} of ${group} without a name, under the name of its type's first group`,
    request: ["POST", inDefault(group, resource), {}] as Row["request"],
    code: 422,
    message: new RegExp(`^${named} "" is invalid: `),
  })),
  ...[
    { type: "merge", patch: '{"a', message: "Invalid JSON Patch" },
    { type: "merge", patch: "a: b", message: "Invalid JSON Patch" },
    { type: "merge", patch: "null", message: "Invalid JSON Patch" },
    { type: "strategic-merge", patch: "a: [b", message: "invalid character 'a' looking for beginning of value" },
    {
      type: "strategic-merge",
      patch: "[]",
      message: "json: cannot unmarshal array into Go value of type map[string]interface {}",
    },
  ].map(({ type, patch, message }) => ({
    name: `a ${type} patch that is ${patch}`,
    request: [
      "PATCH",
      "/api/v1/namespaces/default",
      patch,
      { "content-type": `application/${type}-patch+json` },
    ] as Row["request"],
    code: 400,
    message,
  })),
  ...[
    { metadata: { name: "x" }, message: "the name of the object (x) does not match the name on the URL (kube-root)" },
    {
      metadata: { name: null },
      message: "the name of the object (kube-root based on URL) was undeterminable: name must be provided",
    },
    {
      metadata: { namespace: "x" },
      message: "the namespace of the object (x) does not match the namespace on the request (default)",
    },
  ].map(({ metadata, message }) => ({
    name: `a patch of metadata to ${JSON.stringify(metadata)}`,
    request: ["PATCH", `${configMaps}/kube-root`, { metadata }, merge] as Row["request"],
    code: 400,
    message,
  })),
  ...["/api/v99", "/api/v99/pods", "/apis/apps/v99", "/apis/apps/v99/namespaces/a/b/c"].map((path) => ({
    name: `${path} of a group that has other versions`,
    request: ["GET", path] as unknown as Row["request"],
    code: 404,
    message: gone,
  })),
  {
    name: "a table with too much in its rows",
    request: ["GET", `${configMaps}?includeObject=All`, undefined, { accept: table }],
    code: 400,
    message:
      "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty",
  },
  {
    name: "a malformed patch of what is not there",
    request: ["PATCH", `${configMaps}/none`, '{"a"', merge],
    code: 404,
    message: 'configmaps "none" not found',
  },
  {
    name: "an update that knows the uid of what is not there",
    request: ["PUT", `${configMaps}/none`, { metadata: { name: "none", uid: "u" } }],
    code: 409,
    reason: "Conflict",
    message:
      /^Operation cannot be fulfilled on configmaps "none": StorageError: invalid object, Code: 4, Key: \/[^ ]*\/configmaps\/default\/none, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in object meta: $/,
  },
  {
    name: "a version on a new object that is wrong otherwise too",
    request: ["POST", configMaps, { metadata: { name: "A_b", resourceVersion: "5" } }],
    code: 422,
    reason: "Invalid",
    message:
      'ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case ' +
      "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', " +
      "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  },
  {
    name: "a version on a new object",
    request: ["POST", configMaps, { metadata: { name: "versioned", resourceVersion: "5" } }],
    code: 500,
    message: "resourceVersion should not be set on objects to be created",
  },
  {
    name: "a continue token that is not JSON",
    request: ["GET", `${configMaps}?limit=1&continue=abc`],
    code: 400,
    message: "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value",
  },
  {
    name: "services by a field",
    request: ["GET", `${inDefault("", "services")}?fieldSelector=spec.type%3DClusterIP`],
    code: 400,
    message: '"spec.type" is not a known field selector: only "metadata.name", "metadata.namespace"',
  },
  {
    name: "jobs by an unknown field",
    request: ["GET", `${inDefault("batch", "jobs")}?fieldSelector=x%3D1`],
    code: 400,
    message: 'field label "x" not supported for batchv1.Job',
  },
  {
    name: "pods by an unknown field",
    request: ["GET", `${inDefault("", "pods")}?fieldSelector=x%3D1`],
    code: 400,
    message: "field label not supported: x",
  },
  {
    name: "the scale of a deployment that is not there",
    request: ["GET", inDefault("apps", "deployments/none/scale")],
    code: 404,
    message: 'deployments/scale.apps "none" not found',
    details: { name: "none", group: "apps", kind: "deployments/scale" },
  },
  {
    name: "the scale of a replication controller that is not there",
    request: ["GET", inDefault("", "replicationcontrollers/none/scale")],
    code: 404,
    message: 'replicationcontrollers/scale.autoscaling "none" not found',
  },
  {
    name: "the scale of a stateful set that is not there",
    request: ["GET", inDefault("apps", "statefulsets/none/scale")],
    code: 404,
    message: 'statefulsets.apps "none" not found',
  },
  {
    name: "a binding to nothing",
    request: ["POST", inDefault("", "bindings"), { metadata: { name: "x" } }],
    code: 500,
    message: "target.name: Required value",
  },
  {
    name: "a binding of another pod",
    request: ["POST", inDefault("", "pods/none/binding"), { target: { name: "n" } }],
    code: 400,
    message: "name in URL does not match name in Binding object",
  },
  {
    name: "an eviction of another pod",
    request: ["POST", inDefault("", "pods/none/eviction"), { kind: "Eviction", apiVersion: "policy/v1" }],
    code: 400,
    message: "name in URL does not match name in Eviction object",
  },
  {
    name: "an unknown component",
    request: ["GET", "/api/v1/componentstatuses/none"],
    code: 500,
    message: "Component not found: none",
  },
  {
    name: "a watch of components",
    request: ["GET", "/api/v1/componentstatuses?watch=1"],
    code: 405,
    message: 'watch is not supported on resources of kind "componentstatuses"',
  },
  {
    name: "a review that asks nothing",
    request: ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}],
    code: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: "null": exactly one of nonResourceAttributes ' +
      "or resourceAttributes must be specified",
  },
];

for (const { name, request, code, reason, message, details } of rows) {
  test(`${name}: ${code}`, async () => {
    const answer = await server.request(...request);
    assert.equal(answer.code, code);
    if (typeof message === "string") assert.equal(answer.body.message, message);
    else assert.match(answer.body.message, message);
    if (code === 500) assert.equal(answer.body.reason, undefined);
    if (reason !== undefined) assert.equal(answer.body.reason, reason);
    if (details !== undefined) assert.deepEqual(answer.body.details, details);
  });
}

test("a dry run may say a version on a new object", async () => {
  const { code } = await server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "dry", resourceVersion: "5" } });
  assert.equal(code, 201);
});

test("components are selected by their names, and a list says their kind once", async () => {
  const { body } = await server.request("GET", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Dscheduler");
  assert.equal(body.kind, "ComponentStatusList");
  assert.deepEqual(
    body.items.map(({ kind, metadata }: { kind?: string; metadata: { name: string } }) => [kind, metadata.name]),
    [[undefined, "scheduler"]],
  );
});

test("components are selected by labels, of which they have none", async () => {
  const namesWith = async (selector: string): Promise<string[]> => {
    const { body } = await server.request("GET", `/api/v1/componentstatuses?labelSelector=${selector}`);
    return body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  };
  assert.deepEqual(await namesWith("a%3Db"), []);
  assert.ok((await namesWith("!a")).includes("scheduler"));
});

test("a deletion that is not of the stored object says which it would be of", async () => {
  const { body: stored } = await server.request("POST", configMaps, { metadata: { name: "guarded" } });
  for (const { preconditions, message } of [
    {
      preconditions: { uid: "x" },
      message:
        `the UID in the precondition (x) does not match the UID in record (${stored.metadata.uid}). ` +
        "The object might have been deleted and then recreated",
    },
    {
      preconditions: { resourceVersion: "1" },
      message:
        `the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${stored.metadata.resourceVersion}). ` +
        "The object might have been modified",
    },
  ]) {
    const { code, body } = await server.request("DELETE", `${configMaps}/guarded`, { preconditions });
    assert.equal(code, 409);
    assert.equal(body.message, `Operation cannot be fulfilled on ConfigMap "guarded": ${message}`);
    assert.deepEqual(body.details, { name: "guarded", kind: "ConfigMap" });
  }
});

test("a cron job deleted through its beta version leaves its jobs to others, through v1 it takes them along", async () => {
  const container = { name: "c", image: "c" };
  const template = { spec: { containers: [container], restartPolicy: "Never" } };
  const spec = { schedule: "0 0 1 1 *", jobTemplate: { spec: { template } } };
  for (const { version, finalizers } of [
    { version: "v1beta1", finalizers: ["orphan"] },
    { version: "v1", finalizers: undefined },
  ]) {
    const path = `/apis/batch/${version}/namespaces/default/cronjobs`;
    const created = await server.request("POST", path, { metadata: { name: version }, spec });
    assert.equal(created.code, 201);
    const { body } = await server.request("DELETE", `${path}/${version}`);
    assert.deepEqual(body.metadata.finalizers, finalizers);
  }
});

test("a flow schema is updated without a version too", async () => {
  const path = "/apis/flowcontrol.apiserver.k8s.io/v1beta2/flowschemas";
  const schema = {
    metadata: { name: "unconditional" },
    spec: { priorityLevelConfiguration: { name: "global-default" }, matchingPrecedence: 500 },
  };
  assert.equal((await server.request("POST", path, schema)).code, 201);
  assert.equal((await server.request("PUT", `${path}/unconditional`, schema)).code, 200);
});

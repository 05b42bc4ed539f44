import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupVersionKind } from "../meta/group-version.ts";
import { scheme } from "../schema/scheme.ts";
import { canonical, coerceFields, decodeJson, encodeJsonText, encodeUntyped, indentJson } from "./json.ts";

const deployment: GroupVersionKind = { group: "apps", version: "v1", kind: "Deployment" };
const pod: GroupVersionKind = { group: "", version: "v1", kind: "Pod" };
const configMap: GroupVersionKind = { group: "", version: "v1", kind: "ConfigMap" };

const decode = (value: unknown, gvk: GroupVersionKind = pod): unknown =>
  decodeJson(typeof value === "string" ? value : JSON.stringify(value), gvk).object;

for (const { name, gvk, body, message } of [
  {
    name: "a wrong type in a struct",
    gvk: deployment,
    body: { spec: { replicas: "three" } },
    message:
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
  },
  {
    name: "a list in place of a struct",
    gvk: pod,
    body: { spec: [] },
    message:
      'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec',
  },
  {
    name: "a wrong type in a list of structs",
    gvk: deployment,
    body: { spec: { template: { spec: { containers: [{ image: 5 }] } } } },
    message:
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string',
  },
  {
    name: "a wrong type in a map",
    gvk: pod,
    body: { metadata: { labels: { a: true } } },
    message:
      'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string',
  },
  {
    name: "a fraction for an integer",
    gvk: deployment,
    body: { spec: { replicas: 1.5 } },
    message:
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
  },
  {
    name: "an integer that is too big",
    gvk: deployment,
    body: { spec: { replicas: 2147483648 } },
    message:
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32',
  },
  {
    name: "an object for a list",
    gvk: pod,
    body: { spec: { containers: {} } },
    message:
      'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
  },
  {
    name: "a bad quantity",
    gvk: pod,
    body: { spec: { containers: [{ resources: { limits: { cpu: "one" } } }] } },
    message: `Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
  },
  {
    name: "a bad time",
    gvk: pod,
    body: { metadata: { creationTimestamp: "now" } },
    message:
      'Pod in version "v1" cannot be handled as a Pod: parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
  },
  {
    name: "bytes that are no base64",
    gvk: { group: "", version: "v1", kind: "Secret" },
    body: { data: { a: "ab!d" } },
    message: 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 2',
  },
  {
    name: "another kind",
    gvk: pod,
    body: { apiVersion: "v1", kind: "Service" },
    message: 'Service in version "v1" cannot be handled as a Pod: converting (v1.Service) to (core.Pod): unknown conversion',
  },
  {
    name: "a kind that does not exist",
    gvk: pod,
    body: { apiVersion: "v1", kind: "Nothing" },
    message:
      'Nothing in version "v1" cannot be handled as a Pod: no kind "Nothing" is registered for version "v1" in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"',
  },
  {
    name: "a list",
    gvk: pod,
    body: [],
    message: `the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)`,
  },
  {
    name: "no JSON at all",
    gvk: pod,
    body: "hello",
    message:
      "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of value (68656c6c6f)",
  },
]) {
  test(`answers 400 to ${name}`, () => {
    assert.throws(() => decode(body, gvk), { code: 400, message });
  });
}

for (const { name, gvk, body, want } of [
  {
    name: "fills what Go always has and drops what it never writes",
    gvk: pod,
    body: {
      metadata: { name: "a", labels: {}, uid: "" },
      spec: { containers: [{ name: "c", command: [], resources: {} }], hostNetwork: false },
      status: {},
    },
    want: { metadata: { name: "a" }, spec: { containers: [{ name: "c" }] } },
  },
  {
    name: "takes null for nothing",
    gvk: pod,
    body: { metadata: null, spec: null, status: null },
    want: { metadata: {}, spec: { containers: [] } },
  },
  {
    name: "keeps zero values behind pointers",
    gvk: deployment,
    body: { spec: { replicas: 0, template: { spec: { containers: null, automountServiceAccountToken: false } } } },
    want: {
      metadata: {},
      spec: { replicas: 0, template: { metadata: {}, spec: { containers: [], automountServiceAccountToken: false } } },
    },
  },
  {
    name: "drops unknown fields, whatever their name",
    gvk: configMap,
    body: '{"metadata":{"name":"a","__proto__":{"x":1}},"constructor":{},"Data":{"a":"b"}}',
    want: { metadata: { name: "a" } },
  },
  {
    name: "brings quantities, times and base64 to their canonical form",
    gvk: { group: "", version: "v1", kind: "Secret" },
    body: { metadata: { creationTimestamp: "2021-12-07T20:16:20+02:00" }, data: { a: "Zm9v\nZm9v" } },
    want: { metadata: { creationTimestamp: "2021-12-07T18:16:20Z" }, data: { a: "Zm9vZm9v" } },
  },
  {
    name: "takes a number for a quantity",
    gvk: { group: "", version: "v1", kind: "ResourceQuota" },
    body: { spec: { hard: { cpu: 2, memory: "1024Mi" } } },
    want: { metadata: {}, spec: { hard: { cpu: "2", memory: "1Gi" } } },
  },
]) {
  test(name, () => {
    const { apiVersion, kind } = { apiVersion: gvk.group === "" ? gvk.version : `${gvk.group}/${gvk.version}`, kind: gvk.kind };
    assert.deepEqual(decode(body, gvk), { ...want, apiVersion, kind });
  });
}

test("keeps __proto__ and constructor as keys of a map", () => {
  const body = '{"data":{"__proto__":"a","constructor":"b"}}';
  const object = decode(body, configMap) as object;
  assert.equal(
    encodeJsonText(object),
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"creationTimestamp":null},"data":{"__proto__":"a","constructor":"b"}}',
  );
});

for (const { name, object, want } of [
  {
    name: "structs, times and required fields always",
    object: { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ name: "c" }] } },
    want: '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}',
  },
  {
    name: "empty lists that were stored as null, and those of answers as []",
    object: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: {}, rules: [] },
    want: '{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"rules":null}',
  },
  {
    name: "the items of an empty list as []",
    object: { apiVersion: "v1", kind: "PodList", metadata: {}, items: [] },
    want: '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}',
  },
  {
    name: "map keys sorted and HTML escaped",
    object: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {},
      data: { b: "<a&b>", "10": "\u2028", "9": "\b\f\u007f", "\ud83d\ude00": "x", "\uffee": "y" },
    },
    want: '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"creationTimestamp":null},"data":{"10":"\\u2028","9":"\\u0008\\u000c\u007f","b":"\\u003ca\\u0026b\\u003e","\uffee":"y","\ud83d\ude00":"x"}}',
  },
  {
    name: "kinds without schema with sorted keys",
    object: { kind: "Foo", apiVersion: "example.com/v1", spec: { b: 1, a: [null, true] } },
    want: '{"apiVersion":"example.com/v1","kind":"Foo","spec":{"a":[null,true],"b":1}}',
  },
]) {
  test(`writes ${name}`, () => assert.equal(encodeJsonText(object), want));
}

test("changed fields are written in canonical form, others unchanged", () => {
  const spec = { replicas: "as it is" };
  const object = JSON.parse('{"metadata":{"labels":null,"unknown":1,"name":"a"},"status":{},"__proto__":{"x":1},"color":"red"}');
  object.spec = spec;
  const type = scheme.kind(deployment);
  assert.ok(type);
  const coerced = coerceFields(object, type, ["metadata", "status", "__proto__", "color", "kind"]);
  assert.deepEqual(Object.keys(coerced), ["metadata", "spec"]);
  assert.deepEqual(coerced.metadata, { name: "a" });
  assert.equal((coerced as { spec?: unknown }).spec, spec);
  assert.throws(() => coerceFields({ metadata: { name: 5 } }, type, ["metadata"]), /number into Go struct field/);
});

test("preserves integers beyond 2^53", () => {
  const text =
    '{"kind":"Pod","apiVersion":"v1","metadata":{"generation":9007199254740993,"creationTimestamp":null},"spec":{"containers":null},"status":{}}';
  assert.equal(encodeJsonText(decode(text) as object), text);
});

test("warns of unknown and duplicate fields, or refuses them", () => {
  const body = '{"metadata":{"name":"a","name":"b"},"spec":{"containers":[{"name":"c","foo":1}]},"bar":{}}';
  const { warnings } = decodeJson(body, pod, { strict: "warn" });
  assert.deepEqual(warnings, [
    'duplicate field "metadata.name"',
    'unknown field "spec.containers[0].foo"',
    'unknown field "bar"',
  ]);
  assert.throws(() => decodeJson(body, pod, { strict: "strict" }), {
    message:
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: duplicate field "metadata.name", unknown field "spec.containers[0].foo", unknown field "bar"',
  });
  assert.deepEqual(decodeJson(body, pod).warnings, []);
});

test("a body of another version is decoded as its own version", () => {
  const { object } = decodeJson('{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler"}', {
    group: "autoscaling",
    version: "v2",
    kind: "HorizontalPodAutoscaler",
  });
  assert.equal(object.apiVersion, "autoscaling/v1");
});

test("reads JSON nested to the limit within fields of any shape", () => {
  const deep = `{"metadata":{"name":"a"},"junk":${"[".repeat(990)}${"]".repeat(990)}}`;
  assert.deepEqual(decode(deep, configMap), { metadata: { name: "a" }, apiVersion: "v1", kind: "ConfigMap" });
});

test("indents as Go does", () => {
  const value = { a: [], b: {}, c: [1, { d: 'x"{[,:' }] };
  assert.equal(indentJson(JSON.stringify(value)), JSON.stringify(value, null, 2));
});

test("writes objects of every depth that it reads", async () => {
  const { encodeProtobuf, decodeProtobuf } = await import("./protobuf.ts");
  const { toYaml } = await import("./yaml.ts");
  const { deepClone } = await import("../meta/deep-equal.ts");
  const text = `{"data":${'{"a":'.repeat(990)}1${"}".repeat(990)},"revision":1}`;
  const object = decode(text, { group: "apps", version: "v1", kind: "ControllerRevision" }) as object;
  assert.deepEqual(decodeProtobuf(encodeProtobuf(deepClone(object))), object);
  assert.ok(toYaml(object).length > 990);
});

test("normalizes responses of the server to the form of the types", () => {
  const list = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleList",
    metadata: {},
    items: [{ metadata: { creationTimestamp: null }, rules: null }],
  };
  assert.deepEqual(canonical(list), { ...list, items: [{ metadata: {}, rules: [] }] });
  const other = { apiVersion: "example.com/v1", kind: "Foo", spec: null };
  assert.equal(canonical(other), other);
});

for (const { body, message } of [
  { body: '{"spec":{"replicas":1.0}}', message: "number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32" },
  { body: '{"spec":{"replicas":1e3}}', message: "number 1e3 into Go struct field DeploymentSpec.spec.replicas of type int32" },
  { body: '{"spec":{"replicas":1.50}}', message: "number 1.50 into Go struct field DeploymentSpec.spec.replicas of type int32" },
  {
    body: '{"metadata":{"generation":99999999999999999999}}',
    message: "number 99999999999999999999 into Go struct field ObjectMeta.metadata.generation of type int64",
  },
  { body: '{"metadata":{"name":1.5}}', message: "number into Go struct field ObjectMeta.metadata.name of type string" },
  { body: '{"spec":2.0}', message: "number into Go struct field Deployment.spec of type v1.DeploymentSpec" },
] as const) {
  test(`refuses numbers that are not written as integers: ${body}`, () => {
    assert.throws(() => decode(body, deployment), {
      code: 400,
      message: `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal ${message}`,
    });
  });
}

test("accepts numbers in every notation for floats, quantities and fields of any shape", () => {
  const revision: GroupVersionKind = { group: "apps", version: "v1", kind: "ControllerRevision" };
  const { data } = decode('{"data":{"a":1.0,"b":[1e3,{"c":2.50}]},"revision":1}', revision) as { data: unknown };
  assert.deepEqual(data, { a: 1, b: [1000, { c: 2.5 }] });
  const claim = decode('{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1.0,"memory":1e3}}}]}}') as {
    spec: { containers: { resources: unknown }[] };
  };
  assert.deepEqual(claim.spec.containers[0]?.resources, { limits: { cpu: "1", memory: "1e3" } });
});

test("names the first byte that is no base64, as Go does", () => {
  const secret: GroupVersionKind = { group: "", version: "v1", kind: "Secret" };
  const read = (text: string): unknown => (decode({ data: { a: text } }, secret) as { data: unknown }).data;
  for (const [text, at] of [
    ["!!!!", 0],
    ["====", 0],
    ["x===", 1],
    ["=AAA", 0],
    ["A=AA", 1],
    ["AA=A", 2],
    ["AA=\nA", 3],
    ["AA==A", 4],
    ["AA=\n=\nA", 6],
    ["AAA=AAAA", 4],
    ["AAA=\n\rA", 6],
    ["AAAAA", 4],
    ["AAAAAA", 4],
    ["AAAA\nAA", 5],
    ["AAAAAAA", 4],
    ["A=", 1],
    ["A==", 1],
    ["AA=", 3],
    ["AA=\n", 4],
    ["AAAAAA=", 7],
    ["YWJjZA=====", 8],
    ["A!\n", 1],
    ["AA-A", 2],
    ["AA_A", 2],
    ["AA A", 2],
  ] as const) {
    const message = `Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte ${at}`;
    assert.throws(() => read(text), { code: 400, message }, JSON.stringify(text));
  }
  for (const [text, want] of [
    ["", ""],
    ["\n", ""],
    ["AAA=\n", "AAA="],
    ["A\r\nAA\n=", "AAA="],
    ["AA=\n=\n", "AA=="],
    ["AAAA\n", "AAAA"],
    ["+/+/", "+/+/"],
    ["AB==", "AA=="],
  ] as const) {
    assert.deepEqual(read(text), { a: want }, JSON.stringify(text));
  }
});

test("accepts a list of numbers for bytes, as Go does", () => {
  const secret: GroupVersionKind = { group: "", version: "v1", kind: "Secret" };
  assert.deepEqual((decode('{"data":{"a":[104,105,null],"b":[]}}', secret) as { data: unknown }).data, { a: "aGkA", b: "" });
  assert.throws(() => decode('{"data":{"a":[256]}}', secret), {
    message:
      'Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8',
  });
});

test("names unknown and repeated fields in the order of the text, each once", () => {
  const body =
    '{"spec":{"unknown1":1,"unknownTwice":1,"unknownTwice":{"a":1,"a":2},"paused":true,"paused":false,"template":{"metadata":{"labels":{"a":"1","a":"2"}}}}}';
  const { warnings } = decodeJson(body, deployment, { strict: "warn" });
  assert.deepEqual(warnings, [
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownTwice"',
    'duplicate field "spec.paused"',
    'duplicate field "spec.template.metadata.labels.a"',
  ]);
  const many = JSON.stringify({ spec: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x${i}`, 1])) });
  assert.equal(decodeJson(many, deployment, { strict: "warn" }).warnings.length, 100);
});

test("keeps integers beyond 2^53 and the order of keys in raw values, through protobuf and back", async () => {
  const { encodeProtobuf, decodeProtobuf } = await import("./protobuf.ts");
  const text =
    '{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{"name":"a","generation":9007199254740993,"creationTimestamp":null},"data":{"z":9223372036854775807,"a":[-9223372036854775808]},"revision":-9007199254740995}';
  const object = decode(text, { group: "apps", version: "v1", kind: "ControllerRevision" }) as object;
  assert.equal(encodeJsonText(object), text);
  assert.equal(encodeJsonText(decodeProtobuf(encodeProtobuf(object))), text);
});

test("an optional quantity or port of zero is absent, as from protobuf", () => {
  const service: GroupVersionKind = { group: "", version: "v1", kind: "Service" };
  const port = (body: string): unknown => (decode(body, service) as { spec: { ports: unknown[] } }).spec.ports[0];
  assert.deepEqual(port('{"spec":{"ports":[{"port":80,"targetPort":0}]}}'), { port: 80 });
  assert.deepEqual(port('{"spec":{"ports":[{"port":80,"targetPort":""}]}}'), { port: 80, targetPort: "" });
});

const deep = (levels: number, field: string): string =>
  `{"kind":"ControllerRevision","apiVersion":"apps/v1","${field}":${'{"a":'.repeat(levels - 1)}1${"}".repeat(levels - 1)}}`;
const controllerRevision = { group: "apps", version: "v1", kind: "ControllerRevision" };

for (const { name, levels, field, refused } of [
  { name: "unknown fields of 10,000 levels are dropped", levels: 10_000, field: "unknown", refused: false },
  { name: "a text of more levels is refused", levels: 10_001, field: "unknown", refused: true },
  { name: "values of any shape may have 1,000 levels", levels: 1000, field: "data", refused: false },
  { name: "values of any shape of more levels are refused", levels: 1001, field: "data", refused: true },
]) {
  for (const strict of ["ignore", "warn"] as const) {
    test(`${name}, with unknown fields ${strict === "warn" ? "named" : "ignored"}`, () => {
      const decode = () => decodeJson(deep(levels, field), controllerRevision, { strict });
      if (refused) assert.throws(decode, { code: 400, message: /exceeded max depth/ });
      else assert.equal(decode().object.kind, "ControllerRevision");
    });
  }
}

for (const { what, text } of [
  { what: "holds a wrong type", text: deep(10_001, "unknown").replace("{", '{"revision":"x",') },
  { what: "is no JSON", text: deep(10_001, "unknown").replace("1", "x") },
]) {
  test(`a text that is too deep and ${what} is refused for its depth`, () => {
    assert.throws(() => decodeJson(text, controllerRevision), { code: 400, message: /'{' exceeded max depth/ });
  });
}

test("schemas of custom resources that nest without end are refused", () => {
  const schema = `${'{"not":'.repeat(9_000)}{}${"}".repeat(9_000)}`;
  const body = `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":${schema}}}]}}`;
  const gvk = { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" };
  for (const strict of ["ignore", "strict"] as const)
    assert.throws(() => decodeJson(body, gvk, { strict }), { code: 400, message: /exceeded max depth/ });
});

test("strings of any length are escaped alike", () => {
  const long = "x".repeat(200);
  for (let code = 0; code < 0x2100; code++) {
    const text = `${String.fromCharCode(code)}<"\\`;
    const short = encodeUntyped(text).toString();
    assert.equal(encodeUntyped(`${text}${long}`).toString().replace(long, ""), short);
    assert.equal(JSON.parse(short), text);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { convert, type Format } from "./convert.ts";

const json = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"data":{"k":"v"}}';
const textOf = async (input: Buffer | string, to: Format, version?: { group: string; version: string }): Promise<string> =>
  (await convert(Buffer.from(input), to, version)).bytes.toString();
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every shape.
const objectOf = async (input: Buffer | string, version?: { group: string; version: string }): Promise<any> =>
  JSON.parse(await textOf(input, "json", version));
const autoscaling = (version: string) => ({ group: "autoscaling", version });

test("an object is the same after conversion through all three encodings", async () => {
  let bytes: Buffer = Buffer.from(json);
  for (const format of ["protobuf", "yaml", "protobuf", "json"] satisfies Format[]) bytes = (await convert(bytes, format)).bytes;
  assert.deepEqual(JSON.parse(bytes.toString()), JSON.parse(json));
});

test("reads a raw value of etcd, and etcdctl's output with the key or only with a line end", async () => {
  const { bytes } = await convert(Buffer.from(json), "protobuf");
  const key = Buffer.from("/registry/configmaps/default/a\n");
  const end = Buffer.from("\n");
  for (const value of [
    bytes,
    Buffer.concat([bytes, end]),
    Buffer.concat([key, bytes, end]),
    Buffer.concat([key, Buffer.from(json), end]),
  ])
    assert.match(await textOf(value, "yaml"), /^apiVersion: v1\n/);
});

test("every document of a YAML stream is converted, and empty ones are skipped", async () => {
  const yaml =
    "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: b}\n";
  const text = await textOf(yaml, "json");
  assert.deepEqual(
    text
      .split("\n}\n")
      .slice(0, 2)
      .map((one) => JSON.parse(`${one}}`).kind),
    ["ConfigMap", "Secret"],
  );
  assert.equal((await textOf(yaml, "yaml")).split("---\n").length, 2);
  await assert.rejects(convert(Buffer.from(yaml), "protobuf"), { message: /^2 documents do not fit/ });
});

test("flow YAML is not read as malformed JSON", async () => {
  assert.equal((await objectOf("{kind: ConfigMap, apiVersion: v1}")).kind, "ConfigMap");
  await assert.rejects(convert(Buffer.from('{"kind":'), "yaml"), { message: "unexpected end of JSON input" });
});

test("an object after white space is still JSON, and its mistakes are those of JSON", async () => {
  await assert.rejects(convert(Buffer.from('\n \t {"kind":'), "yaml"), { message: "unexpected end of JSON input" });
});

test("a custom resource is kept as it is, between other documents and with the given version", async () => {
  const text = await textOf(
    "kind: Foo\napiVersion: example.com/v1\nspec: {a: 1}\n---\nkind: ConfigMap\napiVersion: v1\n",
    "yaml",
  );
  assert.deepEqual(
    [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind),
    ["Foo", "ConfigMap"],
  );
  assert.deepEqual(await objectOf('{"kind":"Foo","spec":{"a":1}}', { group: "example.com", version: "v1" }), {
    ...{ kind: "Foo", apiVersion: "example.com/v1" },
    spec: { a: 1 },
  });
});

test("an empty apiVersion is none, and a value that only mentions encryption is not encrypted", async () => {
  assert.equal((await objectOf('{"kind":"ConfigMap","apiVersion":""}', { group: "", version: "v1" })).apiVersion, "v1");
  const data = { k: "k8s:enc:aescbc" };
  assert.deepEqual((await objectOf(JSON.stringify({ kind: "ConfigMap", apiVersion: "v1", data }))).data, data);
});

test("warns of every document's fields that it drops from YAML", async () => {
  const pod = "kind: Pod\napiVersion: v1\nspec: {a: 1}\n";
  const { warnings } = await convert(Buffer.from(`${pod}---\n${pod.replace("a:", "b:")}`), "json");
  assert.deepEqual(warnings, ['unknown field "spec.a"', 'unknown field "spec.b"']);
});

test("warns of fields that it drops", async () => {
  const { warnings } = await convert(
    Buffer.from('{"kind":"Pod","apiVersion":"v1","spec":{"containersss":[]},"spec":{"a":1}}'),
    "yaml",
  );
  assert.deepEqual(warnings, ['duplicate field "spec"', 'unknown field "spec.a"']);
});

test("the given version is used for objects without one", async () => {
  assert.equal((await objectOf("kind: ConfigMap\nmetadata:\n  name: a\n", { group: "", version: "v1" })).apiVersion, "v1");
  await assert.rejects(convert(Buffer.from("kind: ConfigMap\n"), "json"), { message: /no apiVersion: pass --api-version/ });
});

test("converts an autoscaler from the version that etcd holds to the one with all fields", async () => {
  const v1 = {
    kind: "HorizontalPodAutoscaler",
    apiVersion: "autoscaling/v1",
    metadata: { name: "h" },
    spec: { scaleTargetRef: { kind: "Deployment", name: "d" }, maxReplicas: 3, targetCPUUtilizationPercentage: 70 },
  };
  const { apiVersion, spec } = await objectOf(encodeProtobuf(v1), autoscaling("v2"));
  assert.equal(apiVersion, "autoscaling/v2");
  assert.equal(spec.metrics[0].resource.target.averageUtilization, 70);
});

test("converts a list of one kind, and a List of several, item by item", async () => {
  const event = { metadata: { name: "e" }, involvedObject: { kind: "Pod" }, message: "m" };
  const events = { kind: "EventList", apiVersion: "v1", metadata: {}, items: [event] };
  const version = { group: "events.k8s.io", version: "v1" };
  const list = await objectOf(JSON.stringify(events), version);
  hasFields(list, {
    kind: "EventList",
    apiVersion: "events.k8s.io/v1",
    items: [{ note: "m", regarding: { kind: "Pod" } }],
  });
  assert.equal(list.items[0].kind, undefined);
  const mixed = { kind: "List", apiVersion: "v1", metadata: {}, items: [{ kind: "Event", apiVersion: "v1", ...event }] };
  hasFields(await objectOf(JSON.stringify(mixed), version), {
    kind: "List",
    apiVersion: "v1",
    items: [{ kind: "Event", apiVersion: "events.k8s.io/v1", note: "m" }],
  });
});

test("converts the items of a List that already has the target version", async () => {
  const event = { kind: "Event", apiVersion: "events.k8s.io/v1", metadata: { name: "e" }, note: "n" };
  const list = { kind: "List", apiVersion: "v1", metadata: {}, items: [event] };
  const { items } = await objectOf(JSON.stringify(list), { group: "", version: "v1" });
  hasFields(items, [{ kind: "Event", apiVersion: "v1", message: "n" }]);
});

test("converts a Scale between the groups that have one", async () => {
  const scale = {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name: "s" },
    status: { replicas: 1, selector: "a=b,c=d" },
  };
  const old = await objectOf(JSON.stringify(scale), { group: "extensions", version: "v1beta1" });
  assert.deepEqual(old.status, { replicas: 1, selector: { a: "b", c: "d" }, targetSelector: "a=b,c=d" });
  assert.deepEqual((await objectOf(JSON.stringify(old), autoscaling("v1"))).status, scale.status);
  const { targetSelector: _, ...mapOnly } = old.status;
  const back = await objectOf(JSON.stringify({ ...old, status: mapOnly }), autoscaling("v1"));
  assert.equal(back.status.selector, "a=b,c=d");
  const inSet = { ...scale, status: { replicas: 1, selector: "a in (b)" } };
  assert.equal((await objectOf(JSON.stringify(inSet), { group: "apps", version: "v1beta2" })).status.selector, undefined);
});

for (const { name, from, to, status, want } of [
  {
    name: "the text of its selector counts more than the map",
    ...{ from: "apps/v1beta1", to: autoscaling("v1") },
    status: { replicas: 1, selector: { a: "b" }, targetSelector: "c=d" },
    want: { replicas: 1, selector: "c=d" },
  },
  {
    name: "without a selector",
    ...{ from: "apps/v1beta2", to: autoscaling("v1") },
    status: { replicas: 1 },
    want: { replicas: 1 },
  },
  {
    name: "without a selector to an older group",
    ...{ from: "autoscaling/v1", to: { group: "apps", version: "v1beta1" } },
    status: { replicas: 1 },
    want: { replicas: 1 },
  },
  {
    name: "both signs of equality",
    ...{ from: "autoscaling/v1", to: { group: "apps", version: "v1beta1" } },
    status: { replicas: 1, selector: "a==b,c=d" },
    want: { replicas: 1, selector: { a: "b", c: "d" }, targetSelector: "a==b,c=d" },
  },
  {
    name: "between two of the older groups",
    ...{ from: "extensions/v1beta1", to: { group: "apps", version: "v1beta2" } },
    status: { replicas: 1, selector: { a: "b" }, targetSelector: "a=b" },
    want: { replicas: 1, selector: { a: "b" }, targetSelector: "a=b" },
  },
  {
    name: "without a status, which counts as no replicas",
    ...{ from: "autoscaling/v1", to: { group: "apps", version: "v1beta1" } },
    status: undefined,
    want: { replicas: 0 },
  },
])
  test(`converts a Scale: ${name}`, async () => {
    const scale = { kind: "Scale", apiVersion: from, metadata: { name: "s" }, ...(status !== undefined && { status }) };
    const converted = await objectOf(JSON.stringify(scale), to);
    assert.equal(converted.apiVersion, `${to.group}/${to.version}`);
    assert.deepEqual(converted.status, want);
  });

for (const { name, input, to = "json", version, message } of [
  { name: "an empty file", input: "", message: "it contains no object" },
  { name: "a text that is no object", input: "hello", message: "expected an object, found a string" },
  { name: "a list without a kind", input: "- a", message: "expected an object, found a list" },
  { name: "an object without a kind", input: "apiVersion: v1", message: "the object has no kind" },
  { name: "an object with an empty kind", input: '{"kind":"","apiVersion":"v1"}', message: "the object has no kind" },
  { name: "null", input: "null", message: "it contains no object" },
  { name: "a number as apiVersion", input: "apiVersion: 1\nkind: Pod", message: "1 is no apiVersion" },
  { name: "an apiVersion that is none", input: "apiVersion: a/b/c\nkind: Pod", message: '"a/b/c" is no apiVersion' },
  {
    name: "a field of the wrong type",
    input: '{"kind":"Pod","apiVersion":"v1","spec":{"containers":3}}',
    message: /cannot unmarshal number into Go struct field PodSpec.spec.containers of type \[\]v1.Container/,
  },
  {
    name: "a custom resource as protobuf",
    input: "kind: Foo\napiVersion: example.com/v1",
    to: "protobuf",
    message: /has no protobuf form/,
  },
  { name: "protobuf that is cut off", input: "k8s\0\n\x10", message: /unexpected EOF/ },
  {
    name: "an encrypted value of etcd",
    input: "/registry/secrets/a/b\nk8s:enc:aescbc:v1:key:xyz",
    message: /the value is encrypted/,
  },
  {
    name: "an item of a List with a field of the wrong type",
    input: '{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","spec":{"containers":3}}]}',
    version: { group: "", version: "v1" },
    message: /cannot unmarshal number .*containers/,
  },
  {
    name: "an empty list in a version that its kind has not",
    input: '{"kind":"PodList","apiVersion":"v1","items":[]}',
    version: { group: "apps", version: "v1" },
    message: "Pod has no version apps/v1: it has v1",
  },
  {
    name: "a Scale in a version that it has not",
    input: "kind: Scale\napiVersion: autoscaling/v1",
    version: { group: "apps", version: "v1" },
    message: "Scale has no version apps/v1: it has autoscaling/v1, extensions/v1beta1, apps/v1beta1, apps/v1beta2",
  },
  {
    name: "a version that the kind has not",
    input: "kind: Pod\napiVersion: v1",
    version: { group: "apps", version: "v1" },
    message: "Pod has no version apps/v1: it has v1",
  },
] as const) {
  test(`says what is wrong with ${name}`, async () => {
    await assert.rejects(convert(Buffer.from(input), to, version), { message });
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { allTypes } from "../../testing/all-types.ts";
import { builtInResources } from "./kinds/resources.ts";
import { scheme } from "./scheme.ts";

test("knows the kind of every built-in resource and subresource", () => {
  for (const row of builtInResources) {
    const gvk = { group: row.kindGroup ?? row.group, version: row.kindVersion ?? row.version, kind: row.kind };
    assert.ok(scheme.kind(gvk), `${row.resource}: ${JSON.stringify(gvk)}`);
  }
});

test("resolves every field of every type", () => {
  let fields = 0;
  for (const type of allTypes) {
    for (const field of type.fields) assert.ok(field.type.kind, `${type.name}.${field.name}`);
    fields += type.fields.length;
    const numbers = type.message.map((f) => f.number);
    assert.equal(new Set(numbers).size, numbers.length, `${type.name} has a protobuf number twice`);
  }
  assert.ok(fields > 3000, `${fields} fields`);
});

test("knows list kinds of what can be listed", () => {
  for (const row of builtInResources.filter((r) => r.verbs.includes("list"))) {
    assert.ok(scheme.kind({ group: row.group, version: row.version, kind: `${row.kind}List` }), row.resource);
  }
});

test("gives shared kinds in every group version", () => {
  const shared = scheme.type("meta/v1.DeleteOptions");
  assert.equal(scheme.kind({ group: "apps", version: "v1", kind: "DeleteOptions" }), shared);
  assert.equal(scheme.kind({ group: "", version: "v1", kind: "Status" })?.name, "io.k8s.apimachinery.pkg.apis.meta.v1.Status");
  assert.equal(scheme.kind({ group: "apps", version: "v1", kind: "Status" }), undefined);
});

test("flattens inlined structs in JSON and keeps them apart in protobuf", () => {
  const volume = scheme.type("io.k8s.api.core.v1.Volume");
  assert.equal(volume?.fields[0]?.name, "name");
  assert.equal(volume?.field("configMap")?.declaredBy, "VolumeSource");
  assert.deepEqual(
    volume?.message.map((f) => [f.number, f.name]),
    [
      [1, "name"],
      [2, undefined],
    ],
  );
});

test("describes merge keys, list types and defaults", () => {
  const ports = scheme.type("core/v1.ServiceSpec")?.field("ports");
  assert.equal(ports?.patchMergeKey, "port");
  assert.deepEqual(ports?.listMapKeys, ["port", "protocol"]);
  assert.equal(scheme.type("core/v1.ServicePort")?.field("protocol")?.default, "TCP");
  assert.deepEqual(scheme.type("apps/v1.DeploymentSpec")?.field("strategy")?.patchStrategy, ["retainKeys"]);
});

test("does not find unknown kinds", () => {
  assert.equal(scheme.kind({ group: "", version: "v1", kind: "PodSpec" }), undefined);
  assert.equal(scheme.kind({ group: "", version: "v1", kind: "constructor" }), undefined);
  assert.equal(scheme.kind({ group: "example.com", version: "v1", kind: "Pod" }), undefined);
});

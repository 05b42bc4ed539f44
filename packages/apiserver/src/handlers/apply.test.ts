import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startShared(["--disable-admission-plugins=ServiceAccount"]);
});
after(() => server.stop());

const deployments = "/apis/apps/v1/namespaces/default/deployments";
const applyType = { "content-type": "application/apply-patch+yaml" };

function apply(path: string, manager: string, config: unknown, query = ""): Promise<Answer> {
  return server.request("PATCH", `${path}?fieldManager=${manager}${query}`, config, applyType);
}

const aDeployment = (name: string, spec: object) => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec });
const web = (name: string, more: object = {}) =>
  aDeployment(name, {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "web", image: "web:1" }] } },
    ...more,
  });

// biome-ignore lint/suspicious/noExplicitAny: entries as they are on the wire.
type Entry = any;
const entriesOf = (answer: Answer): Entry[] => answer.body.metadata.managedFields ?? [];
const entryOf = (answer: Answer, manager: string, subresource?: string): Entry => {
  const found = entriesOf(answer).find((entry) => entry.manager === manager && entry.subresource === subresource);
  assert.ok(found, `no entry of ${manager} in ${JSON.stringify(entriesOf(answer))}`);
  return found;
};
const withoutTime = ({ time, ...entry }: Entry): unknown => {
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  return entry;
};

test("an apply creates the object with 201, in YAML or JSON, and 200 after that", async () => {
  const path = `${configMaps}/applied`;
  const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\n  labels: {a: b}\ndata:\n  key: value\n";
  const created = await apply(path, "me", yaml);
  assert.equal(created.code, 201, created.raw.toString());
  assert.deepEqual(entriesOf(created).map(withoutTime), [
    {
      manager: "me",
      operation: "Apply",
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { "f:key": {} }, "f:metadata": { "f:labels": { "f:a": {} } } },
    },
  ]);
  const again = await apply(path, "me", aConfigMap("applied", { key: "value" }, { a: "b" }));
  assert.equal(again.code, 200);
  assert.deepEqual(again.body, created.body, "the same applied again is no change");
  const less = await apply(path, "me", aConfigMap("applied", { other: "x" }));
  assert.deepEqual(less.body.data, { other: "x" });
  assert.equal(less.body.metadata.labels, undefined);
});

test("every write is tracked under the user agent or the name that it gives", async () => {
  const created = await server.request("POST", configMaps, aConfigMap("tracked", { a: "1", b: "1" }), {
    "user-agent": "kubectl/v1.23.0 (linux/amd64) kubernetes/abc",
  });
  assert.deepEqual(entriesOf(created).map(withoutTime), [
    {
      manager: "kubectl",
      operation: "Update",
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { ".": {}, "f:a": {}, "f:b": {} } },
    },
  ]);
  const path = `${configMaps}/tracked`;
  const put = await server.request("PUT", `${path}?fieldManager=writer`, { ...created.body, data: { a: "2", b: "1" } });
  assert.deepEqual(entryOf(put, "kubectl").fieldsV1, { "f:data": { ".": {}, "f:b": {} } });
  assert.deepEqual(entryOf(put, "writer").fieldsV1, { "f:data": { "f:a": {} } });
  const patched = await server.request(
    "PATCH",
    `${path}?fieldManager=patcher`,
    { data: { c: "3", b: null } },
    {
      "content-type": "application/merge-patch+json",
    },
  );
  assert.deepEqual(entryOf(patched, "patcher").fieldsV1, { "f:data": { "f:c": {} } });
  assert.deepEqual(entryOf(patched, "kubectl").fieldsV1, { "f:data": {} });
  // The owner of the emptied container owns the values that others set there. The next write records it, and no later one.
  const settled = await server.request("PUT", `${path}?fieldManager=nobody`, patched.body);
  assert.deepEqual(entryOf(settled, "kubectl").fieldsV1, { "f:data": { ".": {}, "f:a": {}, "f:c": {} } });
  const same = await server.request("PUT", `${path}?fieldManager=nobody`, settled.body);
  assert.deepEqual(same.body, settled.body);
  const forgetful = { ...settled.body, metadata: { ...settled.body.metadata, managedFields: undefined } };
  assert.deepEqual((await server.request("PUT", path, forgetful)).body, settled.body);
  const reset = await server.request("PUT", path, {
    ...settled.body,
    metadata: { ...settled.body.metadata, managedFields: [{}] },
  });
  assert.equal(reset.code, 200);
  assert.equal(reset.body.metadata.managedFields, undefined);
});

test("a create owns its defaults, and neither what admission and the strategy add nor status", async () => {
  const made = await server.request("POST", `${deployments}?fieldManager=maker`, { ...web("owned"), status: { replicas: 7 } });
  assert.equal(made.code, 201, made.raw.toString());
  assert.deepEqual(entryOf(made, "maker").fieldsV1, {
    "f:spec": {
      "f:progressDeadlineSeconds": {},
      "f:replicas": {},
      "f:revisionHistoryLimit": {},
      "f:selector": {},
      "f:strategy": { "f:rollingUpdate": { ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} }, "f:type": {} },
      "f:template": {
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
        "f:spec": {
          "f:containers": {
            'k:{"name":"web"}': {
              ".": {},
              "f:image": {},
              "f:imagePullPolicy": {},
              "f:name": {},
              "f:resources": {},
              "f:terminationMessagePath": {},
              "f:terminationMessagePolicy": {},
            },
          },
          "f:dnsPolicy": {},
          "f:restartPolicy": {},
          "f:schedulerName": {},
          "f:securityContext": {},
          "f:terminationGracePeriodSeconds": {},
        },
      },
    },
  });
});

test("a conflict is 409 with a cause for each field, until it is forced", async () => {
  const path = `${deployments}/contested`;
  await server.request("POST", `${deployments}?fieldManager=kubectl-client-side-apply`, web("contested", { replicas: 1 }));
  const refused = await apply(path, "other", aDeployment("contested", { replicas: 3 }));
  assert.equal(refused.code, 409);
  assert.deepEqual(refused.body, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas',
    reason: "Conflict",
    details: {
      causes: [
        {
          reason: "FieldManagerConflict",
          message: 'conflict with "kubectl-client-side-apply" using apps/v1',
          field: ".spec.replicas",
        },
      ],
    },
    code: 409,
  });
  const forced = await apply(path, "other", aDeployment("contested", { replicas: 3 }), "&force=true");
  assert.equal(forced.code, 200);
  assert.equal(forced.body.spec.replicas, 3);
  assert.deepEqual(entryOf(forced, "other").fieldsV1, { "f:spec": { "f:replicas": {} } });
  assert.equal(entryOf(forced, "kubectl-client-side-apply").fieldsV1["f:spec"]["f:replicas"], undefined);
});

test("list items of other managers keep their place, and own items are removed when they are no longer applied", async () => {
  const path = `${deployments}/items`;
  const container = (name: string, more: object = {}) => ({ name, image: `${name}:1`, ...more });
  const pods = (...containers: object[]) => ({
    template: { metadata: { labels: { app: "items" } }, spec: { containers } },
  });
  const first = await apply(
    path,
    "a",
    web("items", pods(container("one", { ports: [{ containerPort: 80 }] }), container("two"))),
  );
  assert.equal(first.code, 201, first.raw.toString());
  await server.request(
    "PATCH",
    `${path}?fieldManager=sidecar`,
    { spec: { template: { spec: { containers: [container("side")] } } } },
    { "content-type": "application/strategic-merge-patch+json" },
  );
  const second = await apply(path, "a", web("items", pods(container("one", { ports: [{ containerPort: 81 }] }))));
  assert.equal(second.code, 200, second.raw.toString());
  const names = second.body.spec.template.spec.containers.map((c: { name: string }) => c.name);
  assert.deepEqual(names.sort(), ["one", "side"]);
  const one = second.body.spec.template.spec.containers.find((c: { name: string }) => c.name === "one");
  assert.deepEqual(one.ports, [{ containerPort: 81, protocol: "TCP" }]);
});

test("status and scale have separate entries", async () => {
  const path = `${deployments}/parts`;
  await apply(path, "main", web("parts", { replicas: 1 }));
  const current = await server.request("GET", path);
  const status = await server.request("PUT", `${path}/status?fieldManager=controller`, {
    ...current.body,
    spec: { ...current.body.spec, paused: true },
    metadata: { ...current.body.metadata, labels: { stolen: "yes" } },
    status: { replicas: 1, observedGeneration: 1 },
  });
  assert.equal(status.code, 200, status.raw.toString());
  assert.equal(status.body.spec.paused, undefined);
  assert.deepEqual(withoutTime(entryOf(status, "controller", "status")), {
    manager: "controller",
    operation: "Update",
    apiVersion: "apps/v1",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:status": { "f:observedGeneration": {}, "f:replicas": {} } },
    subresource: "status",
  });
  const applied = await apply(`${path}/status`, "reporter", {
    ...aDeployment("parts", {}),
    status: { readyReplicas: 0, unavailableReplicas: 2 },
  });
  assert.equal(applied.code, 200, applied.raw.toString());
  assert.equal(applied.body.status.unavailableReplicas, 2);
  assert.equal(entryOf(applied, "reporter", "status").operation, "Apply");

  const scaled = await server.request(
    "PATCH",
    `${path}/scale?fieldManager=kubectl`,
    { spec: { replicas: 4 } },
    { "content-type": "application/merge-patch+json" },
  );
  assert.equal(scaled.code, 200, scaled.raw.toString());
  const after = await server.request("GET", path);
  assert.equal(after.body.spec.replicas, 4);
  assert.deepEqual(entryOf(after, "kubectl", "scale"), {
    manager: "kubectl",
    operation: "Update",
    apiVersion: "apps/v1",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": { "f:replicas": {} } },
    subresource: "scale",
  });
  assert.equal(entryOf(after, "main").fieldsV1["f:spec"]["f:replicas"], undefined);
  const scale = (replicas: number) => ({
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: { name: "parts" },
    spec: { replicas },
  });
  const refused = await apply(`${path}/scale`, "scaler", scale(5));
  assert.equal(refused.code, 409, refused.raw.toString());
  assert.equal(
    refused.body.message,
    'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using autoscaling/v1: .spec.replicas',
  );
  const taken = await apply(`${path}/scale`, "scaler", scale(5), "&force=true");
  assert.equal(taken.code, 200, taken.raw.toString());
  assert.equal((await server.request("GET", path)).body.spec.replicas, 5);
});

test("watchers see what an apply makes and changes, and nothing of one that changes nothing", async () => {
  const { body } = await server.request("GET", configMaps);
  const watch = await server.watch(`${configMaps}?watch=1&resourceVersion=${body.metadata.resourceVersion}`);
  const path = `${configMaps}/watched`;
  await apply(path, "me", aConfigMap("watched", { a: "1" }));
  await apply(path, "me", aConfigMap("watched", { a: "1" }));
  await apply(path, "me", aConfigMap("watched", { a: "2" }));
  const events = [await watch.next(), await watch.next()];
  watch.close();
  assert.deepEqual(
    events.map(({ type, object }) => [type, object.data.a]),
    [
      ["ADDED", "1"],
      ["MODIFIED", "2"],
    ],
  );
});

test("a dry run of an apply answers what would be and stores nothing", async () => {
  const path = `${configMaps}/dry`;
  const answer = await apply(path, "me", aConfigMap("dry", { a: "b" }), "&dryRun=All");
  assert.equal(answer.code, 201);
  assert.equal(entriesOf(answer).length, 1);
  assert.equal((await server.request("GET", path)).code, 404);
});

test("one object in two versions of its resource has entries in both", async () => {
  const hpa = (version: string) => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;
  const target = { apiVersion: "apps/v1", kind: "Deployment", name: "x" };
  const made = await apply(`${hpa("v2")}/both`, "new", {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "both" },
    spec: { scaleTargetRef: target, maxReplicas: 3, minReplicas: 2 },
  });
  assert.equal(made.code, 201, made.raw.toString());
  const merged = await server.request(
    "PATCH",
    `${hpa("v1")}/both?fieldManager=old`,
    { spec: { maxReplicas: 5, targetCPUUtilizationPercentage: 70 } },
    { "content-type": "application/merge-patch+json" },
  );
  assert.equal(merged.code, 200, merged.raw.toString());
  assert.deepEqual(withoutTime(entryOf(merged, "old")), {
    manager: "old",
    operation: "Update",
    apiVersion: "autoscaling/v1",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": { "f:maxReplicas": {}, "f:targetCPUUtilizationPercentage": {} } },
  });
  assert.deepEqual(entryOf(merged, "new").fieldsV1, {
    "f:spec": { "f:minReplicas": {}, "f:scaleTargetRef": { "f:apiVersion": {}, "f:kind": {}, "f:name": {} } },
  });
  const refused = await apply(`${hpa("v2")}/both`, "new", {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "both" },
    spec: { scaleTargetRef: target, maxReplicas: 3, minReplicas: 2 },
  });
  assert.equal(refused.body.message, 'Apply failed with 1 conflict: conflict with "old" using autoscaling/v1: .spec.maxReplicas');
});

test("reviews carry the entry of their manager and store nothing", async () => {
  const answer = await server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=me", {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { nonResourceAttributes: { path: "/x", verb: "get" } },
  });
  assert.equal(answer.code, 201, answer.raw.toString());
  assert.deepEqual(entryOf(answer, "me").fieldsV1, {
    "f:spec": { "f:nonResourceAttributes": { ".": {}, "f:path": {}, "f:verb": {} } },
  });
});

for (const { name, path, query, config, code, message } of [
  {
    name: "without a manager",
    path: `${configMaps}/bad`,
    query: "",
    config: aConfigMap("bad"),
    code: 422,
    message: /fieldManager: Required value: is required for apply patch/,
  },
  {
    name: "that is no YAML",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: "a: [",
    code: 400,
    message: /^error decoding YAML: error converting YAML to JSON: yaml: /,
  },
  {
    name: "that has too many values",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: "? ".repeat(1_000_000),
    code: 413,
    message: /^Request entity too large: the YAML has more than/,
  },
  {
    name: "of another version",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("bad"), apiVersion: "v2" },
    code: 400,
    message: "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
  },
  {
    name: "of another kind",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("bad"), kind: "Secret" },
    code: 500,
    message: "failed to create typed patch object (/bad; /v1, Kind=Secret): no corresponding type for /v1, Kind=Secret",
  },
  {
    name: "with entries",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("bad"), metadata: { name: "bad", managedFields: [{}] } },
    code: 400,
    message: "metadata.managedFields must be nil",
  },
  {
    name: "with unknown fields",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("bad"), spec: {} },
    code: 500,
    message: "failed to create typed patch object (/bad; /v1, Kind=ConfigMap): .spec: field not declared in schema",
  },
  {
    name: "under another name",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: aConfigMap("other"),
    code: 400,
    message: "the name of the object (other) does not match the name on the URL (bad)",
  },
  {
    name: "of a status that has no object",
    path: `${deployments}/none/status`,
    query: "?fieldManager=x",
    config: { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "none" } },
    code: 404,
    message: 'deployments.apps "none" not found',
  },
  {
    name: "with an unknown uid",
    path: `${configMaps}/bad`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("bad"), metadata: { name: "bad", uid: "1" } },
    code: 409,
    message: /uid mismatch: the provided object specified uid 1, and no existing object was found/,
  },
  {
    name: "with an old resourceVersion",
    path: `${configMaps}/kube-root`,
    query: "?fieldManager=x",
    config: { ...aConfigMap("kube-root"), metadata: { name: "kube-root", resourceVersion: "1" } },
    code: 409,
    message: /the object has been modified/,
  },
]) {
  test(`an apply ${name} is refused`, async () => {
    if (path.endsWith("kube-root")) await server.request("POST", configMaps, aConfigMap("kube-root"));
    const answer = await server.request("PATCH", path + query, config, applyType);
    assert.equal(answer.code, code, answer.raw.toString());
    if (typeof message === "string") assert.equal(answer.body.message, message);
    else assert.match(answer.body.message, message);
  });
}

for (const [config, word] of [
  ["a text", "string"],
  ["[]", "array"],
  ["true", "bool"],
  ["5", "number"],
  ["9007199254740993", "number"],
] as const) {
  test(`a configuration ${config} is refused`, async () => {
    const { code, body } = await apply(`${configMaps}/odd`, "me", config);
    const message = `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${word} into Go value of type map[string]interface {}`;
    assert.deepEqual([code, body.reason, body.message], [400, "BadRequest", message]);
  });
}

test("a configuration of nothing is one without a kind", async () => {
  for (const nothing of ["null", "# nothing\n"]) {
    const { code, body } = await apply(`${configMaps}/odd`, "me", nothing);
    const message = "Incorrect version specified in apply patch. Specified patch version: , expected: v1";
    assert.deepEqual([code, body.message], [400, message]);
  }
});

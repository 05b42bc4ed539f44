import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import { allTypes } from "../../../testing/all-types.ts";
import { everyResource } from "../../../testing/openapi-resources.ts";
import access from "./descriptions/access.json" with { type: "json" };
import autoscaling from "./descriptions/autoscaling.json" with { type: "json" };
import containers from "./descriptions/containers.json" with { type: "json" };
import core from "./descriptions/core.json" with { type: "json" };
import events from "./descriptions/events.json" with { type: "json" };
import extension from "./descriptions/extension.json" with { type: "json" };
import meta from "./descriptions/meta.json" with { type: "json" };
import networking from "./descriptions/networking.json" with { type: "json" };
import pods from "./descriptions/pods.json" with { type: "json" };
import storage from "./descriptions/storage.json" with { type: "json" };
import volumes from "./descriptions/volumes.json" with { type: "json" };
import workloads from "./descriptions/workloads.json" with { type: "json" };
import { type Method, methods, type Operation, type PathItem, type Schema } from "./document.ts";
import { openApiV2Steps } from "./v2.ts";
import { openApiV3 } from "./v3.ts";

const document = atOnce(openApiV2Steps(everyResource()));
const definition = (name: string): Schema => document.definitions[`io.k8s.api.${name}`] as Schema;
const path = (name: string): PathItem => document.paths[name] as PathItem;
const names = (parameters: readonly { name: string }[] = []): string[] => parameters.map(({ name }) => name);

test("every kind and every field of it is explained", () => {
  const definitions = Object.entries(document.definitions);
  const fields = definitions.flatMap(([name, { properties = {} }]) =>
    Object.entries(properties).map(([field, schema]) => [`${name}.${field}`, schema] as const),
  );
  const unexplained = [...definitions, ...fields].filter(([, { description }]) => !description).map(([name]) => name);
  assert.deepEqual(unexplained, []);
  assert.ok(definitions.length > 600 && fields.length > 2500, `${definitions.length} types, ${fields.length} fields`);
});

test("no explanation is of a type or field that there is not", () => {
  const known = new Map<string, Set<string>>();
  for (const type of allTypes) {
    const fields = known.get(type.goName) ?? new Set(["", "="]);
    for (const { name } of type.fields) fields.add(name);
    known.set(type.goName, fields);
  }
  for (const table of [
    access,
    autoscaling,
    containers,
    core,
    events,
    extension,
    meta,
    networking,
    pods,
    storage,
    volumes,
    workloads,
  ]) {
    for (const [type, texts] of Object.entries(table as Record<string, Record<string, string>>)) {
      if (type === "*") continue;
      assert.deepEqual(
        Object.keys(texts).filter((field) => !known.get(type)?.has(field)),
        [],
        type,
      );
      if (texts["="] !== undefined) assert.ok(known.has(texts["="]), texts["="]);
    }
  }
});

for (const [at, method, id, action, kind] of [
  ["/api/v1/namespaces/{namespace}/pods", "get", "listCoreV1NamespacedPod", "list", "/v1/Pod"],
  ["/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod", "deletecollection", "/v1/Pod"],
  ["/api/v1/pods", "get", "listCoreV1PodForAllNamespaces", "list", "/v1/Pod"],
  ["/api/v1/namespaces/{namespace}/pods/{name}", "put", "replaceCoreV1NamespacedPod", "put", "/v1/Pod"],
  ["/api/v1/namespaces/{namespace}/pods/{name}/status", "patch", "patchCoreV1NamespacedPodStatus", "patch", "/v1/Pod"],
  ["/api/v1/namespaces/{namespace}/pods/{name}/log", "get", "readCoreV1NamespacedPodLog", "get", "/v1/Pod"],
  [
    "/api/v1/namespaces/{namespace}/pods/{name}/eviction",
    "post",
    "createCoreV1NamespacedPodEviction",
    "post",
    "policy/v1/Eviction",
  ],
  [
    "/api/v1/namespaces/{namespace}/pods/{name}/exec",
    "post",
    "connectCoreV1PostNamespacedPodExec",
    "connect",
    "/v1/PodExecOptions",
  ],
  ["/api/v1/nodes/{name}/proxy", "head", "connectCoreV1HeadNodeProxy", "connect", "/v1/NodeProxyOptions"],
  ["/api/v1/nodes/{name}/proxy/{path}", "get", "connectCoreV1GetNodeProxyWithPath", "connect", "/v1/NodeProxyOptions"],
  ["/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces", "watchlist", "/v1/Pod"],
  ["/api/v1/watch/namespaces/{namespace}/pods", "get", "watchCoreV1NamespacedPodList", "watchlist", "/v1/Pod"],
  ["/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watchCoreV1NamespacedPod", "watch", "/v1/Pod"],
  ["/api/v1/watch/nodes", "get", "watchCoreV1NodeList", "watchlist", "/v1/Node"],
  ["/api/v1/componentstatuses/{name}", "get", "readCoreV1ComponentStatus", "get", "/v1/ComponentStatus"],
  [
    "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
    "get",
    "readAppsV1NamespacedDeploymentScale",
    "get",
    "autoscaling/v1/Scale",
  ],
  [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
    "get",
    "readRbacAuthorizationV1ClusterRole",
    "get",
    "rbac.authorization.k8s.io/v1/ClusterRole",
  ],
] as const satisfies [string, Method, string, string, string][]) {
  test(`${method} ${at} is ${id}`, () => {
    const operation = path(at)[method] as Operation;
    const [group, version, kindName] = kind.split("/");
    assert.equal(operation.operationId, id);
    assert.equal(operation["x-kubernetes-action"], action);
    assert.deepEqual(operation["x-kubernetes-group-version-kind"], { group, version, kind: kindName });
  });
}

const json = ["application/json"];
const objects = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
for (const [at, id, tag, consumes, produces] of [
  ["/api/", "getCoreAPIVersions", "core", objects, objects],
  ["/api/v1/", "getCoreV1APIResources", "core_v1", objects, objects],
  ["/apis/", "getAPIVersions", "apis", objects, objects],
  ["/apis/rbac.authorization.k8s.io/", "getRbacAuthorizationAPIGroup", "rbacAuthorization", objects, objects],
  ["/apis/apps/v1/", "getAppsV1APIResources", "apps_v1", objects, objects],
  ["/version/", "getCodeVersion", "version", json, json],
  ["/logs/", "logFileListHandler", "logs"],
  ["/logs/{logpath}", "logFileHandler", "logs"],
  ["/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "openid", undefined, ["application/jwk-set+json"]],
  ["/.well-known/openid-configuration/", "getServiceAccountIssuerOpenIDConfiguration", "WellKnown", undefined, json],
] as const) {
  test(`${at} is ${id}`, () => {
    const { operationId, tags, consumes: takes, produces: gives, schemes } = path(at).get ?? {};
    assert.deepEqual(
      { operationId, tags, takes, gives, schemes },
      {
        ...{ operationId: id, tags: [tag], takes: consumes, gives: produces, schemes: ["https"] },
      },
    );
  });
}

test("parameters that all operations of a path have are the path's, except bodies", () => {
  const pod = path("/api/v1/namespaces/{namespace}/pods/{name}");
  assert.deepEqual(names(pod.parameters), ["name", "namespace", "pretty"]);
  assert.equal(pod.get?.parameters, undefined);
  assert.deepEqual(names(pod.patch?.parameters), ["body", "dryRun", "fieldManager", "fieldValidation", "force"]);
  const deletion = ["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
  assert.deepEqual(names(pod.delete?.parameters), ["body", ...deletion]);
  const binding = path("/api/v1/namespaces/{namespace}/bindings");
  assert.deepEqual(names(binding.parameters), ["dryRun", "fieldManager", "fieldValidation", "namespace", "pretty"]);
  assert.deepEqual(names(binding.post?.parameters), ["body"]);
  const exec = path("/api/v1/namespaces/{namespace}/pods/{name}/exec");
  assert.deepEqual(names(exec.parameters), ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"]);
  const everywhere = path("/api/v1/pods").parameters;
  const selection = ["allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "pretty", "resourceVersion"];
  assert.deepEqual(names(everywhere), [...selection, "resourceVersionMatch", "timeoutSeconds", "watch"]);
});

test("a list operation has stream media types, even without a watch", () => {
  const stream = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
  for (const at of ["/api/v1/pods", "/api/v1/componentstatuses"]) assert.deepEqual(path(at).get?.produces?.slice(-2), stream, at);
  assert.ok(!path("/api/v1/componentstatuses/{name}").get?.produces?.some((type) => type.includes("stream")));
});

test("the log operation has only parameters that a query can carry", () => {
  const log = path("/api/v1/namespaces/{namespace}/pods/{name}/log");
  assert.ok(names(log.parameters).includes("sinceSeconds"));
  assert.ok(!names(log.parameters).includes("sinceTime"));
});

test("the responses are those of the verb", () => {
  const codes = (operation: Operation | undefined): string[] => Object.keys(operation?.responses ?? {});
  const { get, put, patch, delete: remove } = path("/api/v1/namespaces/{namespace}/pods/{name}");
  const { post, delete: removeAll } = path("/api/v1/namespaces/{namespace}/pods");
  assert.deepEqual([get, post, put, patch, remove, removeAll].map(codes), [
    ["200", "401"],
    ["200", "201", "202", "401"],
    ["200", "201", "401"],
    ["200", "201", "401"],
    ["200", "202", "401"],
    ["200", "401"],
  ]);
});

test("required fields stand in the order of the type, and v2 has no defaults", () => {
  assert.deepEqual(definition("rbac.v1.RoleRef").required, ["apiGroup", "kind", "name"]);
  assert.ok(!JSON.stringify(document.definitions).includes('"default":""'));
  assert.equal(definition("core.v1.ContainerPort").properties?.["protocol"]?.default, undefined);
});

test("a union says by which field its members are distinguished", () => {
  assert.deepEqual(definition("flowcontrol.v1beta2.Subject")["x-kubernetes-unions"], [
    {
      discriminator: "kind",
      "fields-to-discriminateBy": { group: "Group", serviceAccount: "ServiceAccount", user: "User" },
    },
  ]);
});

test("options have every known group version, by group and version", () => {
  const name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
  const kinds = document.definitions[name]?.["x-kubernetes-group-version-kind"] as { group: string; version: string }[];
  const places = kinds.map(({ group, version }) => `${group} ${version}`);
  assert.deepEqual(places, [...new Set(places)].sort());
  assert.deepEqual(
    places.filter((place) => place.startsWith("meta.k8s.io")),
    [],
  );
  for (const known of [
    "/v1",
    "apps/v1beta2",
    "admission.k8s.io/v1",
    "apiextensions.k8s.io/v1beta1",
    "imagepolicy.k8s.io/v1alpha1",
  ]) {
    assert.ok(
      kinds.some(({ group, version }) => `${group}/${version}` === known),
      known,
    );
  }
});

test("enumerated fields list their values on request", () => {
  const shown = atOnce(openApiV2Steps(everyResource(), { enums: true })).definitions["io.k8s.api.core.v1.ContainerPort"];
  assert.deepEqual(shown?.properties?.["protocol"]?.enum, ["SCTP", "TCP", "UDP"]);
  assert.equal(definition("core.v1.ContainerPort").properties?.["protocol"]?.enum, undefined);
});

test("v3 has one document for each root, with what it refers to and default values", () => {
  const documents = openApiV3(everyResource());
  assert.deepEqual([...documents.keys()].filter((root) => !root.startsWith("apis/")).sort(), [
    ".well-known/openid-configuration",
    "api",
    "api/v1",
    "apis",
    "logs",
    "openid/v1/jwks",
    "version",
  ]);
  const make = documents.get("apis/apps/v1");
  const apps = make && atOnce(make());
  const schemas: Record<string, Schema> = apps?.components.schemas ?? {};
  for (const [, name] of JSON.stringify(apps).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    assert.ok(Object.hasOwn(schemas, String(name)), String(name));
  }
  assert.equal(schemas["io.k8s.api.core.v1.ContainerPort"]?.properties?.["protocol"]?.default, "TCP");
  assert.equal(schemas["io.k8s.api.core.v1.Container"]?.properties?.["name"]?.default, "");
  assert.deepEqual(schemas["io.k8s.api.apps.v1.Deployment"]?.properties?.["spec"]?.default, {});
  const create = apps?.paths["/apis/apps/v1/namespaces/{namespace}/deployments"]?.post;
  const schema = { $ref: "#/components/schemas/io.k8s.api.apps.v1.Deployment" };
  assert.deepEqual(create?.requestBody, { required: true, content: { "*/*": { schema } } });
  assert.deepEqual(create?.responses["201"]?.content?.["application/yaml"], { schema });
  assert.deepEqual(names(create?.parameters), ["dryRun", "fieldManager", "fieldValidation"]);
});

test("every operation of v2 is in v3", () => {
  const ids = (items: Iterable<object>): string[] =>
    [...items].flatMap((item) => methods.flatMap((method) => (item as PathItem)[method]?.operationId ?? [])).sort();
  const v3 = [...openApiV3(everyResource()).values()].flatMap((make) => Object.values(atOnce(make()).paths));
  assert.deepEqual(ids(v3), ids(Object.values(document.paths)));
});

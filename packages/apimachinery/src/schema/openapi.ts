/**
 * The OpenAPI v2 document of the served resources, made from the descriptors: kubectl validates manifests and explains
 * fields with it, clients find merge keys and supported operations in it.
 * Source: k8s.io/kube-openapi pkg/builder, k8s.io/apiserver pkg/endpoints/installer.go (operation ids, actions)
 */
import { type GroupVersionKind, groupVersionPath } from "../meta/group-version.ts";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "./descriptor.ts";
import { fieldDescription, typeDescription } from "./openapi-descriptions.ts";
import { scheme } from "./scheme.ts";

/** One served resource, as far as OpenAPI is concerned. */
export interface OpenApiResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** A deletion answers with the last state instead of a Status. */
  readonly returnsDeleted?: boolean;
  readonly subresources: readonly OpenApiSubresource[];
}

export interface OpenApiSubresource {
  readonly name: string;
  readonly kind: GroupVersionKind;
  readonly verbs: readonly string[];
  /** log, exec, proxy and their like: bytes instead of objects. */
  readonly connect: boolean;
}

export interface OpenApiDocument {
  swagger: "2.0";
  info: { title: string; version: string };
  paths: Record<string, PathItem>;
  definitions: Record<string, Schema>;
  securityDefinitions: Record<string, { description: string; type: string; name: string; in: string }>;
  security: Record<string, string[]>[];
}

export interface Schema {
  $ref?: string;
  description?: string;
  type?: string;
  format?: string;
  default?: unknown;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  required?: string[];
  [extension: `x-${string}`]: unknown;
}

export type PathItem = Partial<Record<"get" | "put" | "post" | "delete" | "options" | "head" | "patch", Operation>> & {
  parameters?: Parameter[];
};

export interface Operation {
  description: string;
  consumes: string[];
  produces: string[];
  schemes: string[];
  tags: string[];
  operationId: string;
  parameters?: Parameter[];
  responses: Record<string, { description: string; schema?: Schema }>;
  [extension: `x-${string}`]: unknown;
}

export interface Parameter {
  name: string;
  in: "query" | "path" | "body";
  description?: string;
  required?: boolean;
  uniqueItems?: boolean;
  type?: string;
  schema?: Schema;
}

/** @param extra definitions of kinds that have no descriptor (custom resources), by name. */
export function openApiV2(resources: readonly OpenApiResource[], extra: Readonly<Record<string, Schema>> = {}): OpenApiDocument {
  const definitions = new Definitions(resources);
  const paths: Record<string, PathItem> = {};
  for (const resource of resources) addPaths(paths, resource, definitions);
  definitions.kind({ group: "meta.k8s.io", version: "v1", kind: "Status" });
  definitions.kind({ group: "meta.k8s.io", version: "v1", kind: "WatchEvent" });
  for (const name of ["APIVersions", "APIGroup", "APIGroupList", "APIResourceList"]) {
    definitions.kind({ group: "meta.k8s.io", version: "v1", kind: name });
  }
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: "v1.23.0" },
    paths: sorted(paths),
    definitions: sorted({ ...definitions.all(), ...extra }),
    securityDefinitions: {
      BearerToken: { description: "Bearer Token authentication", type: "apiKey", name: "authorization", in: "header" },
    },
    security: [{ BearerToken: [] }],
  };
}

// Definitions

/** Collects every type that is reached from a served kind. */
class Definitions {
  readonly #found = new Map<string, Schema>();
  readonly #shared: readonly { group: string; version: string }[];

  constructor(resources: readonly OpenApiResource[]) {
    const groupVersions = new Map(resources.map(({ group, version }) => [`${group}/${version}`, { group, version }]));
    groupVersions.set("/v1", { group: "", version: "v1" });
    this.#shared = [...groupVersions.values()].sort((a, b) => (`${a.group}/${a.version}` < `${b.group}/${b.version}` ? -1 : 1));
  }

  /** A reference to a kind; an object of any shape when it has no descriptor. */
  kind(gvk: GroupVersionKind): Schema {
    const type = scheme.kind(gvk);
    return type === undefined ? { type: "object" } : this.#ref(type);
  }

  /** The body of a PATCH, whose form its Content-Type says. */
  patch(): Schema {
    const name = `${meta}.Patch`;
    this.#found.set(name, { description: "A change to an object, in the form that the Content-Type names.", type: "object" });
    return { $ref: `#/definitions/${name}` };
  }

  all(): Record<string, Schema> {
    return Object.fromEntries(this.#found);
  }

  #ref(type: TypeDescriptor): Schema {
    if (!this.#found.has(type.name)) {
      const schema: Schema = {};
      this.#found.set(type.name, schema); // before its fields: types may contain themselves
      Object.assign(schema, this.#definition(type));
    }
    return { $ref: `#/definitions/${type.name}` };
  }

  #definition(type: TypeDescriptor): Schema {
    const properties: Record<string, Schema> = {};
    for (const field of type.fields) {
      properties[field.name] = { ...describe(fieldDescription(type.goName, field.name)), ...this.#field(field) };
    }
    const required = type.fields.filter((field) => !field.omitEmpty && !field.optional).map((field) => field.name);
    const schema: Schema = { ...describe(typeDescription(type.goName)), type: "object" };
    if (Object.keys(properties).length > 0) schema.properties = sorted(properties);
    if (required.length > 0) schema.required = required.sort();
    const kinds = this.#kindsOf(type);
    if (kinds.length > 0) schema["x-kubernetes-group-version-kind"] = kinds;
    if (type.atomic) schema["x-kubernetes-map-type"] = "atomic";
    return schema;
  }

  #kindsOf(type: TypeDescriptor): { group: string; kind: string; version: string }[] {
    if (!type.isKind && type.goName !== "WatchEvent") return [];
    if (type.group !== "meta.k8s.io") return [{ group: type.group, kind: type.goName, version: type.version }];
    if (type.goName === "DeleteOptions" || type.goName === "WatchEvent") {
      return this.#shared.map(({ group, version }) => ({ group, kind: type.goName, version }));
    }
    return [{ group: "", kind: type.goName, version: "v1" }];
  }

  #field(field: FieldDescriptor): Schema {
    const schema = { ...this.#type(field.type) };
    if (field.default !== undefined) schema.default = field.default;
    if (field.listType !== undefined) schema["x-kubernetes-list-type"] = field.listType;
    if (field.listMapKeys !== undefined) schema["x-kubernetes-list-map-keys"] = [...field.listMapKeys];
    if (field.mapType !== undefined) schema["x-kubernetes-map-type"] = field.mapType;
    if (field.patchMergeKey !== undefined) schema["x-kubernetes-patch-merge-key"] = field.patchMergeKey;
    if (field.patchStrategy.length > 0) schema["x-kubernetes-patch-strategy"] = field.patchStrategy.join(",");
    return schema;
  }

  #type(type: FieldType): Schema {
    switch (type.kind) {
      case "struct":
        return this.#ref(type.struct);
      case "list":
        return { type: "array", items: this.#type(type.element) };
      case "map":
        return { type: "object", additionalProperties: this.#type(type.value) };
      default: {
        const named = namedScalars[type.kind];
        if (named === undefined) return scalarSchema(type.kind);
        this.#found.set(named.name, named.schema);
        return { $ref: `#/definitions/${named.name}` };
      }
    }
  }
}

function scalarSchema(kind: string): Schema {
  switch (kind) {
    case "bool":
      return { type: "boolean" };
    case "int32":
    case "int64":
      return { type: "integer", format: kind };
    case "float64":
      return { type: "number", format: "double" };
    case "bytes":
      return { type: "string", format: "byte" };
    case "any":
      return { type: "object" };
    default:
      return { type: "string" };
  }
}

const meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
const extensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/** Types with a form of their own on the wire. */
const namedScalars: Readonly<Record<string, { name: string; schema: Schema }>> = {
  time: {
    name: `${meta}.Time`,
    schema: { description: "A point in time, RFC 3339 with whole seconds.", type: "string", format: "date-time" },
  },
  microTime: {
    name: `${meta}.MicroTime`,
    schema: { description: "A point in time, RFC 3339 with microseconds.", type: "string", format: "date-time" },
  },
  quantity: {
    name: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    schema: { description: 'An amount with a suffix: "500m" is a half, "1Gi" is 2^30, "2k" is 2000.', type: "string" },
  },
  intOrString: {
    name: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    schema: { description: "A number, or a text: the name of a port, or a percentage.", type: "string", format: "int-or-string" },
  },
  raw: {
    name: "io.k8s.apimachinery.pkg.runtime.RawExtension",
    schema: { description: "An object of any kind.", type: "object" },
  },
  fieldsV1: {
    name: `${meta}.FieldsV1`,
    schema: { description: "A set of fields, as a tree of their names.", type: "object" },
  },
  json: { name: `${extensions}.JSON`, schema: { description: "Any JSON value." } },
  schemaOrArray: { name: `${extensions}.JSONSchemaPropsOrArray`, schema: { description: "A schema, or a list of them." } },
  schemaOrBool: { name: `${extensions}.JSONSchemaPropsOrBool`, schema: { description: "A schema, or true or false." } },
  schemaOrStrings: {
    name: `${extensions}.JSONSchemaPropsOrStringArray`,
    schema: { description: "A schema, or a list of names." },
  },
};

function describe(description: string): { description?: string } {
  return description === "" ? {} : { description };
}

// Paths

const jsonYamlProto = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const streamTypes = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const patchTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

function addPaths(paths: Record<string, PathItem>, resource: OpenApiResource, definitions: Definitions): void {
  const base = groupVersionPath(resource);
  const scope = resource.namespaced ? `${base}/namespaces/{namespace}` : base;
  const kind = { group: resource.group, version: resource.version, kind: resource.kind };
  const object = definitions.kind(kind);
  const objectList = definitions.kind({ ...kind, kind: resource.listKind });
  const operation = (verb: OperationVerb, details: Partial<OperationDetails> = {}): Operation =>
    makeOperation(resource, verb, { kind, subresource: "", answer: object, everywhere: false, ...details }, definitions);
  const has = (verb: string): boolean => resource.verbs.includes(verb);

  const collection: PathItem = {};
  if (has("list")) collection.get = operation("list", { answer: objectList });
  if (has("create")) collection.post = operation("create");
  if (has("deletecollection")) collection.delete = operation("deletecollection");
  add(paths, `${scope}/${resource.resource}`, collection, resource.namespaced ? [namespaceParameter] : []);

  const named: PathItem = {};
  if (has("get")) named.get = operation("get");
  if (has("update")) named.put = operation("update");
  if (has("patch")) named.patch = operation("patch");
  if (has("delete")) named.delete = operation("delete");
  const namedParameters = [nameParameter(resource.kind), ...(resource.namespaced ? [namespaceParameter] : [])];
  add(paths, `${scope}/${resource.resource}/{name}`, named, namedParameters);

  if (resource.namespaced && has("list")) {
    add(paths, `${base}/${resource.resource}`, { get: operation("list", { answer: objectList, everywhere: true }) }, []);
  }
  for (const subresource of resource.subresources)
    addSubresource(paths, resource, subresource, scope, namedParameters, definitions);
}

function addSubresource(
  paths: Record<string, PathItem>,
  resource: OpenApiResource,
  subresource: OpenApiSubresource,
  scope: string,
  parameters: Parameter[],
  definitions: Definitions,
): void {
  const answer = subresource.connect ? { type: "string" } : definitions.kind(subresource.kind);
  const details = {
    kind: subresource.kind,
    subresource: subresource.name,
    answer,
    everywhere: false,
    connect: subresource.connect,
  };
  const methods: [keyof PathItem, string, OperationVerb][] = [
    ["get", "get", "get"],
    ["post", "create", "create"],
    ["put", "update", "update"],
    ["patch", "patch", "patch"],
    ["delete", "delete", "delete"],
  ];
  const item: PathItem = {};
  for (const [method, verb, action] of methods) {
    if (!subresource.verbs.includes(verb)) continue;
    item[method as "get"] = makeOperation(resource, action, details, definitions);
  }
  const path = `${scope}/${resource.resource}/{name}/${subresource.name}`;
  add(paths, path, item, parameters);
}

function add(paths: Record<string, PathItem>, path: string, item: PathItem, parameters: Parameter[]): void {
  if (Object.keys(item).length === 0) return;
  item.parameters = [...parameters, prettyParameter];
  paths[path] = item;
}

type OperationVerb = "list" | "get" | "create" | "update" | "patch" | "delete" | "deletecollection";

interface OperationDetails {
  kind: GroupVersionKind;
  subresource: string;
  answer: Schema;
  everywhere: boolean;
  connect?: boolean;
}

function makeOperation(
  resource: OpenApiResource,
  verb: OperationVerb,
  details: OperationDetails,
  definitions: Definitions,
): Operation {
  const connect = details.connect === true;
  const status = (): Schema => definitions.kind({ group: "meta.k8s.io", version: "v1", kind: "Status" });
  const options = (): Schema => definitions.kind({ group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" });
  const body = (schema: Schema, required: boolean): Parameter => ({
    name: "body",
    in: "body",
    ...(required ? { required } : {}),
    schema,
  });
  const parameters: Parameter[] = [];
  const responses: Operation["responses"] = { "200": { description: "OK", schema: details.answer } };
  if (!connect) {
    switch (verb) {
      case "list":
        parameters.push(...listParameters);
        break;
      case "create":
        parameters.push(body(details.answer, true), ...writeParameters);
        responses["201"] = { description: "Created", schema: details.answer };
        responses["202"] = { description: "Accepted", schema: details.answer };
        break;
      case "update":
        parameters.push(body(details.answer, true), ...writeParameters);
        responses["201"] = { description: "Created", schema: details.answer };
        break;
      case "patch":
        parameters.push(body(definitions.patch(), true), ...writeParameters, forceParameter);
        responses["201"] = { description: "Created", schema: details.answer };
        break;
      case "delete":
        parameters.push(body(options(), false), ...deleteParameters);
        responses["200"] = { description: "OK", schema: resource.returnsDeleted ? details.answer : status() };
        responses["202"] = { description: "Accepted", schema: resource.returnsDeleted ? details.answer : status() };
        break;
      case "deletecollection":
        parameters.push(body(options(), false), ...deleteParameters, ...listParameters);
        responses["200"] = { description: "OK", schema: status() };
        break;
    }
  }
  responses["401"] = { description: "Unauthorized" };
  const action = connect ? "connect" : actions[verb];
  return {
    description: `${action} ${details.subresource === "" ? "" : `${details.subresource} of `}${resource.kind}`,
    consumes: verb === "patch" && !connect ? [...patchTypes] : ["*/*"],
    produces: connect ? ["*/*"] : verb === "list" ? [...jsonYamlProto, ...streamTypes] : [...jsonYamlProto],
    schemes: ["https"],
    tags: [tagOf(resource)],
    operationId: operationId(resource, verb, details),
    ...(parameters.length > 0 ? { parameters } : {}),
    responses,
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": {
      group: details.kind.group,
      kind: details.kind.kind,
      version: details.kind.version,
    },
  };
}

const actions: Readonly<Record<OperationVerb, string>> = {
  list: "list",
  get: "get",
  create: "post",
  update: "put",
  patch: "patch",
  delete: "delete",
  deletecollection: "deletecollection",
};

/** `createAppsV1NamespacedDeployment`, `listCoreV1PodForAllNamespaces`, `readCoreV1NodeStatus`. */
function operationId(resource: OpenApiResource, verb: OperationVerb, details: OperationDetails): string {
  const words: Record<OperationVerb, string> = {
    list: "list",
    get: "read",
    create: "create",
    update: "replace",
    patch: "patch",
    delete: "delete",
    deletecollection: "delete",
  };
  const methods: Record<OperationVerb, string> = {
    list: "Get",
    get: "Get",
    create: "Post",
    update: "Put",
    patch: "Patch",
    delete: "Delete",
    deletecollection: "Delete",
  };
  const connect = details.connect === true && details.subresource !== "log";
  const prefix = connect ? "connect" : words[verb];
  const groupVersion = capital(groupWords(resource.group)) + capital(resource.version);
  const middle = connect ? methods[verb] : verb === "deletecollection" ? "Collection" : "";
  const namespaced = resource.namespaced && !details.everywhere ? "Namespaced" : "";
  const suffix = details.everywhere ? "ForAllNamespaces" : "";
  return `${prefix}${groupVersion}${middle}${namespaced}${resource.kind}${capital(details.subresource)}${suffix}`;
}

function tagOf(resource: OpenApiResource): string {
  return `${groupWords(resource.group)}_${resource.version}`;
}

/** `rbac.authorization.k8s.io` → `rbacAuthorization`; the core group is `core`. */
function groupWords(group: string): string {
  if (group === "") return "core";
  const [first = "", ...rest] = group.replace(/\.k8s\.io$/, "").split(/[.-]/);
  return first + rest.map(capital).join("");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const query = (name: string, type: string, description: string): Parameter => ({
  name,
  in: "query",
  description,
  type,
  uniqueItems: true,
});

const prettyParameter = query("pretty", "string", "If 'true', the answer is indented.");
const namespaceParameter: Parameter = {
  name: "namespace",
  in: "path",
  description: "The namespace of the object.",
  required: true,
  type: "string",
  uniqueItems: true,
};
const nameParameter = (kind: string): Parameter => ({
  name: "name",
  in: "path",
  description: `name of the ${kind}`,
  required: true,
  type: "string",
  uniqueItems: true,
});
const dryRunParameter = query("dryRun", "string", "With 'All', everything is done except the write.");
const writeParameters = [
  dryRunParameter,
  query("fieldManager", "string", "Who makes this change, for the tracking of fields."),
  query("fieldValidation", "string", "What happens to unknown and repeated fields: Ignore, Warn or Strict."),
];
const forceParameter = query("force", "boolean", "An apply takes over fields that others own.");
const deleteParameters = [
  dryRunParameter,
  query("gracePeriodSeconds", "integer", "Seconds until the object is removed; 0 removes it at once."),
  query("orphanDependents", "boolean", "Deprecated: use propagationPolicy. Whether dependents lose their owner or go with it."),
  query("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
];
const listParameters = [
  query("allowWatchBookmarks", "boolean", "Asks for BOOKMARK events."),
  query("continue", "string", "The token of the previous page."),
  query("fieldSelector", "string", "Restricts the list by fields."),
  query("labelSelector", "string", "Restricts the list by labels."),
  query("limit", "integer", "The most items of one page."),
  query("resourceVersion", "string", "How old the data may be."),
  query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."),
  query("timeoutSeconds", "integer", "When the request ends."),
  query("watch", "boolean", "Follows changes instead of listing."),
];

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

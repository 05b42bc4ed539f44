/**
 * The paths of a resource: collection, objects, subresources and the deprecated watch paths.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go (registerResourceHandlers)
 */
import { type GroupVersionKind, groupVersionPath } from "../../meta/group-version.ts";
import type { Definitions } from "./definitions.ts";
import type { Method, OpenApiResource, OpenApiSubresource, Operation, Parameter, PathItem, Schema } from "./document.ts";
import { actionOf, capital, operationId, summaryOf, type Target, tagOf, type Verb } from "./operation-names.ts";
import { body, pathItem, pathParameter, query, queryParameters } from "./parameters.ts";

/**
 * @param definitions gets the kinds that the paths refer to
 * @returns path items by path (`/api/v1/namespaces/{namespace}/pods`)
 */
export function resourcePaths(resource: OpenApiResource, definitions: Definitions): Record<string, PathItem> {
  return new ResourcePaths(resource, definitions).all();
}

export const objectTypes = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/** Custom resources have no protobuf encoding. */
const customTypes = ["application/json", "application/yaml"];
const watchTypes = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const patchTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

const pretty = query("pretty", "string", "If 'true', the answer is indented.");
const namespace = pathParameter("namespace", "The namespace of the object.");
const restOfPath = pathParameter("path", "The rest of the path.");

/** HTTP methods and verbs of single objects. */
const objectVerbs: readonly [Method, Verb][] = [
  ["get", "get"],
  ["post", "create"],
  ["put", "update"],
  ["patch", "patch"],
  ["delete", "delete"],
];
/** HTTP methods of connect operations. HEAD and OPTIONS are listed when DELETE is, see `connectVerbs`. */
const connectMethods: readonly Method[] = ["delete", "get", "head", "options", "patch", "post", "put"];
const connectVerbs: Partial<Record<Method, string>> = {
  delete: "delete",
  get: "get",
  head: "delete",
  options: "delete",
  patch: "patch",
  post: "create",
  put: "update",
};

class ResourcePaths {
  readonly #resource: OpenApiResource;
  readonly #definitions: Definitions;
  readonly #paths: Record<string, PathItem> = {};
  readonly #object: Schema;
  readonly #list: () => Schema;

  constructor(resource: OpenApiResource, definitions: Definitions) {
    this.#resource = resource;
    this.#definitions = definitions;
    const { custom } = resource;
    if (custom === undefined) {
      this.#object = definitions.kind(resource);
      this.#list = () => definitions.kind({ ...resource, kind: resource.listKind });
    } else {
      const { object, list } = definitions.custom({ ...resource, custom });
      this.#object = object;
      this.#list = () => list;
    }
  }

  all(): Record<string, PathItem> {
    const resource = this.#resource;
    const { namespaced } = resource;
    const base = groupVersionPath(resource);
    const scope = namespaced ? "/namespaces/{namespace}" : "";
    const plural = `/${resource.resource}`;
    const inScope = namespaced ? [namespace] : [];
    const named = [pathParameter("name", `The name of the ${resource.kind}.`), ...inScope];

    this.#addCollection(`${base}${scope}${plural}`, inScope);
    this.#addObject(`${base}${scope}${plural}/{name}`, named);
    for (const subresource of resource.subresources) {
      const path = `${base}${scope}${plural}/{name}/${subresource.name}`;
      if (subresource.connect && subresource.name !== "log") this.#addConnection(path, subresource, named);
      else this.#addSubresource(path, subresource, named);
    }
    if (this.#has("list") && namespaced) this.#addEverywhere(`${base}${plural}`);
    if (this.#has("watch") && resource.custom === undefined) {
      const watch = (path: string, verb: Verb, target: Partial<Target>, parameters: Parameter[]): void =>
        this.#add(`${base}/watch${path}`, { get: this.#watch(verb, target, parameters) });
      if (namespaced) watch(plural, "watchlist", { everywhere: true }, []);
      watch(`${scope}${plural}`, "watchlist", {}, inScope);
      if (this.#has("get")) watch(`${scope}${plural}/{name}`, "watch", {}, named);
    }
    return this.#paths;
  }

  #addCollection(path: string, parameters: Parameter[]): void {
    const operations: Partial<Record<Method, Operation>> = {};
    if (this.#has("list")) operations.get = this.#listOperation({}, parameters);
    if (this.#has("create")) operations.post = this.#write("create", this.#target(), this.#object, parameters);
    if (this.#has("deletecollection")) operations.delete = this.#remove("deletecollection", parameters);
    this.#add(path, operations);
  }

  #addEverywhere(path: string): void {
    this.#add(path, { get: this.#listOperation({ everywhere: true }, []) });
  }

  #addObject(path: string, parameters: Parameter[]): void {
    const operations: Partial<Record<Method, Operation>> = {};
    for (const [method, verb] of objectVerbs) {
      if (verb === "create" || !this.#has(verb)) continue;
      operations[method] = this.#objectOperation(verb, this.#target(), this.#object, parameters);
    }
    this.#add(path, operations);
  }

  #addSubresource(path: string, subresource: OpenApiSubresource, parameters: Parameter[]): void {
    const target = this.#target({ subresource: subresource.name });
    const operations: Partial<Record<Method, Operation>> = {};
    for (const [method, verb] of objectVerbs) {
      if (!subresource.verbs.includes(verb)) continue;
      operations[method] = subresource.connect
        ? this.#log(target, parameters)
        : this.#objectOperation(verb, target, this.#kindOf(subresource), parameters, subresource.kind);
    }
    this.#add(path, operations);
  }

  #kindOf({ kind }: OpenApiSubresource): Schema {
    const isOwn = kind.kind === this.#resource.kind && kind.group === this.#resource.group;
    return isOwn && this.#resource.custom !== undefined ? this.#object : this.#definitions.kind(kind);
  }

  #addConnection(path: string, subresource: OpenApiSubresource, parameters: Parameter[]): void {
    const { group, version, kind } = subresource.kind;
    const options = queryParameters(`${group === "" ? "core" : group}/${version}.${kind}`);
    const add = (at: string, withPath: boolean, more: Parameter[]): void => {
      const operations: Partial<Record<Method, Operation>> = {};
      for (const method of connectMethods) {
        if (!subresource.verbs.includes(connectVerbs[method]!)) continue;
        const target = this.#target({ subresource: subresource.name, method: capital(method), withPath });
        operations[method] = this.#operation("connect", target, subresource.kind, {
          produces: ["*/*"],
          parameters: [...parameters, ...options, ...more],
          responses: { "200": { type: "string" } },
        });
      }
      this.#add(at, operations);
    };
    add(path, false, []);
    if (subresource.name === "proxy") add(`${path}/{path}`, true, [restOfPath]);
  }

  #log(target: Target, parameters: Parameter[]): Operation {
    return this.#operation("get", target, this.#resource, {
      produces: ["text/plain", ...objectTypes],
      parameters: [...parameters, pretty, ...queryParameters("core/v1.PodLogOptions")],
      responses: { "200": { type: "string" } },
    });
  }

  #objectOperation(verb: Verb, target: Target, answer: Schema, parameters: Parameter[], kind?: GroupVersionKind): Operation {
    if (verb === "delete") return this.#remove(verb, parameters, target, kind);
    if (verb !== "get") return this.#write(verb, target, answer, parameters, kind);
    return this.#operation(verb, target, kind, { parameters: [...parameters, pretty], responses: { "200": answer } });
  }

  #listOperation(target: Partial<Target>, parameters: Parameter[]): Operation {
    return this.#operation("list", this.#target(target), undefined, {
      produces: this.#resource.custom === undefined ? [...objectTypes, ...watchTypes] : customTypes, // also without watch
      parameters: [...parameters, pretty, ...queryParameters("meta/v1.ListOptions")],
      responses: { "200": this.#list() },
    });
  }

  #watch(verb: Verb, target: Partial<Target>, parameters: Parameter[]): Operation {
    return this.#operation(verb, this.#target(target), undefined, {
      produces: [...objectTypes, ...watchTypes],
      parameters: [...parameters, pretty, ...queryParameters("meta/v1.ListOptions")],
      responses: { "200": this.#definitions.meta("WatchEvent") },
    });
  }

  #write(verb: Verb, target: Target, answer: Schema, parameters: Parameter[], kind?: GroupVersionKind): Operation {
    const input = verb === "patch" ? this.#definitions.patch() : answer;
    // Cast: other verbs have the default.
    const options = { create: "CreateOptions", patch: "PatchOptions" }[verb as string] ?? "UpdateOptions";
    return this.#operation(verb, target, kind, {
      consumes: this.#consumed(verb),
      parameters: [...parameters, pretty, body(input, true), ...queryParameters(`meta/v1.${options}`)],
      responses: { "200": answer, "201": answer, ...(verb === "create" && { "202": answer }) },
    });
  }

  #remove(verb: Verb, parameters: Parameter[], target = this.#target(), kind?: GroupVersionKind): Operation {
    const answer = verb === "delete" && this.#resource.returnsDeleted ? this.#object : this.#definitions.meta("Status");
    const selection = verb === "delete" ? [] : queryParameters("meta/v1.ListOptions", ["watch", "allowWatchBookmarks"]);
    const options = [
      body(this.#definitions.meta("DeleteOptions"), false),
      ...queryParameters("meta/v1.DeleteOptions"),
      ...selection,
    ];
    return this.#operation(verb, target, kind, {
      parameters: [...parameters, pretty, ...options],
      responses: { "200": answer, ...(verb === "delete" && { "202": answer }) },
    });
  }

  #operation(
    verb: Verb,
    target: Target,
    kind: GroupVersionKind = this.#resource,
    form: { consumes?: string[]; produces?: string[]; parameters: Parameter[]; responses: Record<string, Schema> },
  ): Operation {
    const responses = Object.entries(form.responses).map(([code, schema]) => [
      code,
      { description: reasons[code] ?? "", schema },
    ]);
    return {
      description: summaryOf(verb, target),
      consumes: [...(form.consumes ?? ["*/*"])],
      produces: [...(form.produces ?? (this.#resource.custom === undefined ? objectTypes : customTypes))],
      schemes: ["https"],
      tags: [tagOf(this.#resource)],
      operationId: operationId(verb, target),
      parameters: form.parameters,
      responses: { ...Object.fromEntries(responses), "401": { description: "Unauthorized" } },
      "x-kubernetes-action": actionOf(verb),
      "x-kubernetes-group-version-kind": { group: kind.group, kind: kind.kind, version: kind.version },
    };
  }

  #consumed(verb: Verb): string[] {
    const isCustom = this.#resource.custom !== undefined;
    if (verb === "patch") return isCustom ? patchTypes.filter((type) => !type.includes("strategic")) : patchTypes;
    return isCustom ? customTypes : ["*/*"];
  }

  #target(target: Partial<Target> = {}): Target {
    return { resource: this.#resource, subresource: "", ...target };
  }

  #has(verb: string): boolean {
    return this.#resource.verbs.includes(verb);
  }

  #add(path: string, operations: Partial<Record<Method, Operation>>): void {
    if (Object.keys(operations).length > 0) this.#paths[path] = pathItem(operations);
  }
}

const reasons: Readonly<Record<string, string>> = { "200": "OK", "201": "Created", "202": "Accepted" };

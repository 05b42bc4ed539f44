import type { Sent } from "./client.ts";
import { inflate, type JsonObject, objectFromSchema, spoil } from "./objects.ts";
import { Random } from "./random.ts";
import type { Resource, Surface } from "./surface.ts";

export type Quality = "good" | "missing" | "wrong" | "huge";

/** A request, and which corner of the surface it is for. */
export interface Step extends Sent {
  readonly number: number;
  readonly verb: string;
  readonly quality: Quality;
  readonly resource: Resource;
}

export interface Walk {
  readonly seed: number;
  readonly surface: Surface;
  readonly namespace: string;
}

/** Every resource, verb and quality once, in an order of the seed's; longer walks begin again with other input. */
export function stepsOf(walk: Walk, from: number, count: number): Step[] {
  const corners = walk.surface.resources.flatMap((resource) =>
    [...new Set([...resource.verbs, "get", "update"])].flatMap((verb) =>
      (["good", "missing", "wrong", "huge"] as const).map((quality) => ({ resource, verb, quality })),
    ),
  );
  const order = shuffled(corners, new Random(walk.seed));
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    const corner = order[number % order.length] as (typeof corners)[number];
    return { number, ...corner, ...requestOf(walk, corner, new Random(walk.seed, number)) };
  });
}

function shuffled<T>(values: readonly T[], random: Random): T[] {
  return values
    .map((value) => ({ value, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

const methods: Readonly<Record<string, string>> = {
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETE",
};

function requestOf(walk: Walk, corner: Pick<Step, "resource" | "verb" | "quality">, random: Random): Sent {
  const { resource, verb, quality } = corner;
  const method = methods[verb] ?? "GET";
  const isWrite = method !== "GET";
  const name = nameFor(walk, corner, random);
  const query = queryFor(corner, random);
  if (verb === "watch") query.push(["watch", "true"], ["timeoutSeconds", "1"]);
  // What the walk may not change on a shared cluster it only tries.
  if (isWrite && !resource.namespaced) query.push(["dryRun", "All"]);
  const onCollection = ["list", "watch", "deletecollection"].includes(verb) || (verb === "create" && resource.subresource === "");
  const path = [
    resource.root,
    ...(resource.namespaced ? ["namespaces", quality === "missing" && random.chance(0.3) ? "walk-nowhere" : walk.namespace] : []),
    resource.resource,
    ...(onCollection ? [] : [encodeURIComponent(name)]),
    ...(resource.subresource === "" ? [] : [resource.subresource]),
  ].join("/");
  const search = query.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
  const content = verb === "patch" ? random.pick(patchTypes) : bodyTypeFor(quality, random);
  const hasBody = verb === "create" || verb === "update" || verb === "patch" || (method === "DELETE" && resource.namespaced);
  const body = hasBody ? bodyFor(walk, corner, name, content, random) : undefined;
  return {
    method,
    path: search === "" ? path : `${path}?${search}`,
    headers: { ...headersFor(quality, random), ...(body !== undefined && { "content-type": content }) },
    body,
  };
}

function nameFor(walk: Walk, { verb, quality, resource }: Pick<Step, "resource" | "verb" | "quality">, random: Random): string {
  if (quality === "missing") return "walk-missing";
  if (quality === "wrong" && random.chance(0.3))
    return random.pick(["Not_A_Name", "..", "a/b", "%", "ä", "a\nb", "-", "a:b", " "]);
  if (quality === "huge" && random.chance(0.3)) return "x".repeat(random.pick([254, 2000, 7000]));
  const example = walk.surface.examples.get(`${resource.apiVersion}/${resource.kind}`) as
    | { metadata?: { name?: string } }
    | undefined;
  if (methods[verb] === undefined && example?.metadata?.name !== undefined && random.chance(0.4)) return example.metadata.name;
  return random.pick(["walk-a", "walk-b"]);
}

const patchTypes = [
  ...["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"],
  "application/apply-patch+yaml",
];

function bodyTypeFor(quality: Quality, random: Random): string {
  if (quality !== "wrong" || random.chance(0.7)) return "application/json";
  return random.pick([
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    ";",
    "application/json;a=b;;",
  ]);
}

const parameters: Readonly<Record<string, readonly string[]>> = {
  limit: ["1", "3", "500", "0", "-1", "x", "99999999999999999999"],
  continue: ["", "abc", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4XHUwMDAwIn0", "e30", "////"],
  resourceVersion: ["0", "1", "", "-1", "latest", "18446744073709551616", "00", "1e3"],
  resourceVersionMatch: ["Exact", "NotOlderThan", "", "exact"],
  labelSelector: ["walk=true", "walk in (a,b)", "!walk", "a=b=c", "in in (in)", ",", "(((", "x notin ()", "-=-"],
  fieldSelector: ["metadata.name=walk-a", "metadata.name!=walk-a", "a=b", "=", "metadata.name==\\", "spec.nodeName="],
  timeoutSeconds: ["1", "0", "-1", "x"],
  allowWatchBookmarks: ["true", "maybe"],
  fieldManager: ["walk", "x".repeat(129), "\u0000"],
  fieldValidation: ["Strict", "Warn", "Ignore", "strict"],
  force: ["true", "false", "x"],
  pretty: ["true", "1", "x"],
  gracePeriodSeconds: ["0", "1", "-5", "x"],
  propagationPolicy: ["Foreground", "Background", "Orphan", "None"],
  orphanDependents: ["true", "x"],
  includeObject: ["None", "Object", "Metadata", "All"],
  ...{ tailLines: ["1", "-1", "x"], sinceSeconds: ["1", "-1"], sinceTime: ["yesterday"], limitBytes: ["0", "1"] },
  ...{
    command: ["sh", ""],
    container: ["walk", "../.."],
    stdin: ["true", "x"],
    ports: ["80", "x", "70000"],
    path: ["/", "../..", "//"],
  },
  ...{ timeout: ["1s", "-1s", "x", "100h"], dryRun: ["All", "", "None"], watch: ["true"] },
  ...{ ["__proto__"]: ["x"], "": [""] },
};
const parameterNames = Object.keys(parameters);

function queryFor({ verb, quality }: Pick<Step, "verb" | "quality">, random: Random): [string, string][] {
  const query: [string, string][] = [];
  if (quality === "good") return random.chance(0.3) ? [["pretty", "true"]] : [];
  for (let times = random.below(4); times > 0; times--) {
    const name = random.pick(parameterNames);
    if (name === "watch" && verb !== "list") continue;
    query.push([name, random.pick(parameters[name] as readonly string[])]);
  }
  if (quality === "huge" && random.chance(0.3)) {
    query.push([random.pick(["labelSelector", "fieldSelector", "continue", "walk"]), "x,".repeat(random.pick([500, 3000]))]);
  }
  return query;
}

const accepts = [
  ...["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "text/csv", ""],
  "application/json;as=Table;g=meta.k8s.io;v=v1, application/json",
  "application/json;as=Table;g=meta.k8s.io;v=v1",
  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
  "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
  ...["application/json;as=Nothing;g=x;v=y", "application/json;stream=watch", "a/b;q=0.1, */*;q=0", ";;;", ","],
];

function headersFor(quality: Quality, random: Random): Record<string, string> {
  const headers: Record<string, string> = {};
  if (random.chance(0.4)) headers["accept"] = random.pick(quality === "good" ? accepts.slice(0, 4) : accepts);
  if (quality === "wrong" && random.chance(0.2)) headers["accept-encoding"] = random.pick(["gzip", "gzip;q=x", "br", ""]);
  if (quality === "wrong" && random.chance(0.1))
    headers["impersonate-user"] = random.pick(["nobody", "system:serviceaccount:a:b", "ä"]);
  if (quality === "wrong" && random.chance(0.1)) headers["user-agent"] = random.pick(["", "\u00ff".repeat(200), "/"]);
  if (quality === "huge" && random.chance(0.2)) headers["x-walk"] = "x".repeat(random.pick([1000, 12_000]));
  return headers;
}

function bodyFor(
  walk: Walk,
  { resource, verb, quality }: Pick<Step, "resource" | "verb" | "quality">,
  name: string,
  content: string,
  random: Random,
): Buffer {
  if (quality === "wrong" && random.chance(0.15)) {
    return Buffer.from(
      random.pick(["", "{", "[]", "null", "1", '"x"', "\u0000\u0001", '{"kind":', "a: [b", "k8s\u0000\u000a\u00ff"]),
    );
  }
  const object = goodBody(walk, resource, verb, name, content, random);
  if (quality === "good" || (quality === "missing" && random.chance(0.5))) return bytesOf(object, content);
  if (quality === "huge") return bytesOf(inflate(object, random), content);
  return bytesOf(spoil(object, random), content);
}

function goodBody(walk: Walk, resource: Resource, verb: string, name: string, content: string, random: Random): JsonObject {
  if (verb === "delete" || verb === "deletecollection") {
    return { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: random.pick(["Background", "Foreground", "Orphan"]) };
  }
  if (content === "application/merge-patch+json" && random.chance(0.5)) return { metadata: { annotations: { walk: name } } };
  const example = walk.surface.examples.get(`${resource.apiVersion}/${resource.kind}`);
  if (example === undefined || random.chance(0.4))
    return objectFromSchema(walk.surface.definitions, { ...resource, name }, random);
  const copy = structuredClone(example) as JsonObject;
  return { ...copy, metadata: { name, labels: { walk: "true" } } };
}

/** A JSON patch is a list of changes: each top-level field of the object becomes one. */
function bytesOf(object: JsonObject, content: string): Buffer {
  if (content !== "application/json-patch+json") return Buffer.from(JSON.stringify(object));
  const changes = Object.entries(object).map(([field, value]) => ({ op: "add", path: `/${field}`, value }));
  return Buffer.from(JSON.stringify(changes));
}

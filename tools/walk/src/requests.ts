import { spoilBytes } from "./bytes.ts";
import type { Sent } from "./client.ts";
import { inflate, type JsonObject, objectFromSchema, spoil } from "./objects.ts";
import { oddFrames, oddPath, oddUpgrade } from "./oddities.ts";
import { Random } from "./random.ts";
import type { Resource, Surface } from "./surface.ts";

const qualities = ["good", "missing", "wrong", "huge", "odd"] as const;
type Quality = (typeof qualities)[number];

/** A request with the resource, verb and input quality that it covers. */
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

type Corner = Pick<Step, "resource" | "verb" | "quality">;

/**
 * Covers every combination of resource, verb and quality once, and one lifecycle per resource, in an order determined by the
 * seed; longer walks start over with other input.
 * @returns a function from a number to requests that must be sent in sequence.
 */
export function newSteps(walk: Walk): (number: number) => Step[] {
  const corners = walk.surface.resources.flatMap((resource): Corner[] => [
    ...[...new Set([...resource.verbs, "get", "update"])].flatMap((verb) =>
      qualities.map((quality) => ({ resource, verb, quality })),
    ),
    ...(lives(resource) ? [{ resource, verb: "live", quality: "good" } as const] : []),
  ]);
  const order = shuffled(corners, new Random(walk.seed));
  return (number) => {
    const corner = order[number % order.length]!;
    const random = new Random(walk.seed, number);
    if (corner.verb !== "live") return [{ number, ...corner, ...requestOf(walk, corner, random) }];
    return lifeOf(walk, corner.resource, number, random);
  };
}

const lives = ({ namespaced, verbs, subresource }: Resource): boolean =>
  namespaced && subresource === "" && ["create", "get", "update", "patch", "delete"].every((verb) => verbs.includes(verb));

/** Lifecycle of an object: create, read, update, all patch types, delete with a random propagation policy, delete again. */
function lifeOf(walk: Walk, resource: Resource, number: number, random: Random): Step[] {
  const name = `walk-life-${number}`;
  const collection = `${resource.root}/namespaces/${walk.namespace}/${resource.resource}`;
  const object = goodBody(walk, resource, "create", name, "application/json", random);
  const changed = { ...object, metadata: { name, labels: { walk: "true" }, annotations: { walk: "äöü\u2028\u{1f6a2}" } } };
  const policy = random.pick(["Background", "Foreground", "Orphan"]);
  const steps: [verb: string, path: string, content?: string, body?: JsonObject][] = [
    ["create", collection, "application/json", object],
    ["create", collection, "application/json", object],
    ["get", `${collection}/${name}`],
    ["update", `${collection}/${name}`, "application/json", changed],
    ...patchTypes.map((content): [string, string, string, JsonObject] => [
      "patch",
      `${collection}/${name}?fieldManager=${random.pick(["walk", "other"])}&force=${random.chance(0.5)}`.replace(
        content === applyType ? "" : /&force=.*/,
        "",
      ),
      content,
      random.chance(0.5) ? object : changed,
    ]),
    ["patch", `${collection}/${name}/status`, "application/merge-patch+json", { status: object["status"] ?? {} }],
    ["list", `${collection}?labelSelector=walk%3Dtrue&limit=2`],
    ["delete", `${collection}/${name}`, "application/json", { kind: "DeleteOptions", propagationPolicy: policy }],
    ["patch", `${collection}/${name}`, "application/merge-patch+json", { metadata: { finalizers: null } }],
    ["delete", `${collection}/${name}?gracePeriodSeconds=0`],
  ];
  return steps.map(
    ([verb, path, content = "", body]): Step => ({
      ...{ number, resource, verb, quality: "good", method: methods[verb] ?? "GET", path },
      headers: content === "" ? {} : { "content-type": content },
      body: body && bytesOf(body, content),
    }),
  );
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

function requestOf(walk: Walk, corner: Corner, random: Random): Sent {
  const { resource, verb, quality } = corner;
  const method = methods[verb] ?? "GET";
  const isWrite = method !== "GET";
  const odd = quality === "odd" ? random.pick(["path", "upgrade", "bytes", "bytes", "method"]) : "";
  const name = nameFor(walk, corner, random);
  const query = queryFor(corner, random);
  if (verb === "watch") query.push(["watch", "true"], ["timeoutSeconds", "1"]);
  // Cluster-scoped resources must not change on a shared cluster.
  if ((isWrite || odd === "method") && !resource.namespaced) query.push(["dryRun", "All"]);
  const onCollection = ["list", "watch", "deletecollection"].includes(verb) || (verb === "create" && resource.subresource === "");
  const path = [
    resource.root,
    ...(resource.namespaced ? ["namespaces", quality === "missing" && random.chance(0.3) ? "walk-nowhere" : walk.namespace] : []),
    resource.resource,
    ...(onCollection ? [] : [encodeURIComponent(name)]),
    ...(resource.subresource === "" ? [] : [resource.subresource]),
  ].join("/");
  const search = query.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
  const encoded = walk.surface.encoded.get(`${resource.apiVersion}/${resource.kind}`);
  const isEncoded = odd === "bytes" && encoded !== undefined && verb !== "patch" && random.chance(0.5);
  const content = isEncoded ? protobufType : verb === "patch" ? random.pick(patchTypes) : bodyTypeFor(quality, random);
  const hasBody = verb === "create" || verb === "update" || verb === "patch" || (method === "DELETE" && resource.namespaced);
  const good = hasBody ? (isEncoded ? encoded : bodyFor(walk, corner, name, content, random)) : undefined;
  const body = good && odd === "bytes" ? spoilBytes(good, isEncoded ? "protobuf" : "json", random) : good;
  const requested = odd === "path" ? oddPath(path, random) : path;
  return {
    method: odd === "method" ? random.pick(["OPTIONS", "HEAD", "TRACE", "PROPFIND", "POST", "PUT"]) : method,
    path: search === "" ? requested : `${requested}?${search}`,
    headers: {
      ...headersFor(quality, random),
      ...(body !== undefined && { "content-type": content }),
      ...(odd === "upgrade" && oddUpgrade(random)),
    },
    body,
    ...(odd === "upgrade" && { afterUpgrade: oddFrames(random) }),
  };
}

function nameFor(walk: Walk, { verb, quality, resource }: Corner, random: Random): string {
  if (quality === "missing") return "walk-missing";
  if (quality === "wrong" && random.chance(0.3))
    return random.pick([
      "Not_A_Name",
      "..",
      "a/b",
      "%",
      "ä",
      "a\nb",
      "-",
      "a:b",
      " ",
      "__proto__",
      "constructor",
      "\ud83d\udea2",
    ]);
  if (quality === "huge" && random.chance(0.3)) return "x".repeat(random.pick([63, 64, 253, 254, 2000, 7000]));
  // cast: examples are objects of the API
  const example = walk.surface.examples.get(`${resource.apiVersion}/${resource.kind}`) as
    | { metadata?: { name?: string } }
    | undefined;
  if (methods[verb] === undefined && example?.metadata?.name !== undefined && random.chance(0.4)) return example.metadata.name;
  return random.pick(["walk-a", "walk-b"]);
}

const applyType = "application/apply-patch+yaml";
const protobufType = "application/vnd.kubernetes.protobuf";
const patchTypes = [
  ...["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"],
  applyType,
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
  if (quality === "good" || quality === "odd") return random.chance(0.3) ? [["pretty", "true"]] : [];
  for (let times = random.below(4); times > 0; times--) {
    const name = random.pick(parameterNames);
    if (name === "watch" && verb !== "list") continue;
    query.push([name, random.pick(parameters[name]!)]);
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

function bodyFor(walk: Walk, { resource, verb, quality }: Corner, name: string, content: string, random: Random): Buffer {
  if (quality === "wrong" && random.chance(0.15)) {
    return Buffer.from(
      random.pick(["", "{", "[]", "null", "1", '"x"', "\u0000\u0001", '{"kind":', "a: [b", "k8s\u0000\u000a\u00ff"]),
    );
  }
  const object = goodBody(walk, resource, verb, name, content, random);
  if (quality === "good" || quality === "odd" || (quality === "missing" && random.chance(0.5))) return bytesOf(object, content);
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
  const copy = structuredClone(example) as JsonObject; // cast: examples are JSON objects
  return { ...copy, metadata: { name, labels: { walk: "true" } } };
}

/** Serializes a body; for a JSON patch, each top-level field of the object becomes an operation. */
function bytesOf(object: JsonObject, content: string): Buffer {
  if (content !== "application/json-patch+json") return Buffer.from(JSON.stringify(object));
  const changes = Object.entries(object).map(([field, value]) => ({ op: "add", path: `/${field}`, value }));
  return Buffer.from(JSON.stringify(changes));
}

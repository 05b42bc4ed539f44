/**
 * `/openapi/v2`, and with the gate OpenAPIV3 `/openapi/v3` with one document per group version. Documents are built on
 * request, and rebuilt after the served resources changed. Encoded documents are cached, also in gzip.
 * Source: k8s.io/kube-openapi pkg/handler, pkg/handler3; k8s.io/apiserver pkg/server/routes/openapi.go
 */
import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { groupVersionPath } from "@coxswain/apimachinery/objects/meta/group-version";
import type { OpenApiDocument, OpenApiResource } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { RequestContext } from "../request/context.ts";
import type { HandlerEnv } from "./env.ts";
import { beforeEnd, type DocumentForm, OpenApiBytes } from "./openapi-bytes.ts";
import type { ServedResource } from "./served-resources.ts";
import { findSubresource, subresourceNames } from "./subresource.ts";

interface Documents {
  readonly v2: OpenApiBytes;
  /** The index at `/openapi/v3`. */
  readonly roots: OpenApiBytes;
  /** Documents by root: `apis/apps/v1`. */
  readonly v3: ReadonlyMap<string, RootDocument>;
}

/** The v3 document of one root, which is kept as long as the root serves the same resources. */
interface RootDocument {
  /** The resources that the document describes. A changed resource is a new ServedResource object. */
  readonly of: readonly ServedResource[];
  readonly bytes: OpenApiBytes;
}

const protobufV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const protobufV3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

/** Paths of the OpenAPI v3 documents, for the index at `/`. */
export function openApiV3Paths(env: HandlerEnv): readonly string[] {
  return env.services.featureEnabled("OpenAPIV3") ? ["/openapi/v3", "/openapi/v3/"] : [];
}

/** @returns a handler that returns false when the path does not exist. @param parts of the path: `openapi`, `v2` */
export function newOpenApi(env: HandlerEnv): (ctx: RequestContext, parts: readonly string[]) => Promise<boolean> {
  const hasV3 = env.services.featureEnabled("OpenAPIV3");
  let made: Documents | undefined;
  const documents = newCurrent(
    () => `${env.resources.generation}/${env.aggregated?.openApi.generation ?? 0}`,
    async (building) => {
      made = await newDocuments(env, building, made);
      return made;
    },
  );
  return async (ctx, parts) => {
    const [, version, ...root] = parts;
    if (version === "v2" && root.length === 0) {
      const { v2 } = await beforeEnd(ctx, documents());
      await v2.respond(ctx);
      return true;
    }
    if (version !== "v3" || !hasV3) return false;
    const { roots, v3 } = await beforeEnd(ctx, documents());
    if (root.length === 0) await roots.respond(ctx);
    else await (v3.get(root.join("/"))?.bytes.respond(ctx) ?? respondAggregated(env, ctx, root.join("/")));
    return true;
  };
}

/**
 * Creates the documents of the current generation for the first request after a change. While documents of an earlier
 * generation are being encoded it waits, so that a series of changes causes no more than one build at a time, and all
 * requests that arrive in the meantime share the next one.
 * @param make must report encodings to its argument
 */
export function newCurrent<T>(
  generationNow: () => string,
  make: (building: (work: Promise<unknown>) => void) => Promise<T>,
): () => Promise<T> {
  let made: Promise<T> | undefined;
  let generation = "";
  const running = new Set<Promise<unknown>>();
  const building = (work: Promise<unknown>): void => {
    const end = (): void => void running.delete(ended);
    const ended: Promise<void> = work.then(end, end);
    running.add(ended);
  };
  return async () => {
    while (generation !== generationNow() && running.size > 0) await Promise.all(running);
    const now = generationNow();
    if (made === undefined || generation !== now) {
      generation = now;
      made = make(building);
      made.catch(() => {
        made = undefined; // the next request tries again
      });
    }
    return made;
  };
}

/** Forwards a document of an aggregated server. Upstream sends an empty response for an unknown root. */
async function respondAggregated({ aggregated }: HandlerEnv, { exchange }: RequestContext, root: string): Promise<void> {
  const document = await aggregated?.openApi.v3(root, exchange.headers.accept ?? "application/json");
  if (document === undefined) return exchange.respond(200, {});
  const { code, contentType, body, etag } = document;
  exchange.respond(code, { ...(contentType && { "content-type": contentType }), etag }, body);
}

/**
 * Imports the generators on first use, since they are large.
 * @param earlier its v3 documents that have not changed are kept
 */
async function newDocuments(
  env: HandlerEnv,
  building: (work: Promise<unknown>) => void,
  earlier: Documents | undefined,
): Promise<Documents> {
  const [{ openApiV2Steps }, { openApiV3 }, { encodeOpenApi }, { encodeOpenApiV3 }] = await Promise.all([
    import("@coxswain/apimachinery/objects/schema/openapi/v2"),
    import("@coxswain/apimachinery/objects/schema/openapi/v3"),
    import("./openapi-protobuf.ts"),
    import("./openapi-v3-protobuf.ts"),
  ]);
  const options = { enums: env.services.featureEnabled("OpenAPIEnums") };
  const served = env.resources.all();
  const described = Promise.resolve(env.services.turns.run(describingAll(served)));
  building(described);
  const resources = await described;
  const byRoot = Map.groupBy(served, ({ kind }) => groupVersionPath(kind).slice(1));
  const modified = env.services.now();
  const { aggregated } = env;
  function* v2(): Steps<OpenApiDocument> {
    const own = yield* openApiV2Steps(resources, options);
    return aggregated === undefined ? own : yield* aggregated.openApi.merge(own);
  }
  function* protobufV2Steps(): Steps<Buffer> {
    return yield* encodeOpenApi(yield* v2());
  }
  const bytes = (forms: readonly DocumentForm[]): OpenApiBytes =>
    new OpenApiBytes(forms, modified, { turns: env.services.turns, share: env.documents }, building);
  const v3 = openApiV3(resources, options);
  return {
    v2: bytes([jsonForm(v2), { mediaType: protobufV2, contentType: "application/octet-stream", make: protobufV2Steps }]),
    roots: bytes([jsonForm(() => atOnceSteps({ Paths: [...v3.keys(), ...(aggregated?.openApi.v3Roots() ?? [])].sort() }))]),
    v3: new Map(
      [...v3].map(([root, document]) => {
        const of = byRoot.get(root) ?? [];
        const before = earlier?.v3.get(root);
        if (before !== undefined && isSameList(before.of, of)) return [root, before];
        function* make(): Steps<Buffer> {
          return yield* encodeOpenApiV3(yield* document());
        }
        const forms = [jsonForm(document), { mediaType: protobufV3, contentType: "application/octet-stream", make }];
        return [root, { of, bytes: bytes(forms) }];
      }),
    ),
  };
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

function jsonForm(document: () => Steps<object>): DocumentForm {
  function* make(): Steps<Buffer> {
    const pieces: Buffer[] = [];
    yield* jsonPieces(yield* document(), 2, pieces);
    return Buffer.concat(pieces);
  }
  return { mediaType: "application/json", contentType: "application/json", make };
}

// biome-ignore lint/correctness/useYield: what is there already takes no steps.
function* atOnceSteps(document: object): Steps<object> {
  return document;
}

/** JSON of a document in pieces, descending to `depth`. */
function* jsonPieces(value: object, depth: number, pieces: Buffer[]): Steps<void> {
  let text = "{";
  let isFirst = true;
  for (const [name, member] of Object.entries(value)) {
    text += `${isFirst ? "" : ","}${JSON.stringify(name)}:`;
    isFirst = false;
    if (depth > 0 && typeof member === "object" && member !== null && !Array.isArray(member)) {
      pieces.push(Buffer.from(text));
      text = "";
      yield* jsonPieces(member, depth - 1, pieces);
    } else text += rawJson(member);
    if (text.length < pieceCharacters) continue;
    pieces.push(Buffer.from(text));
    text = "";
    yield;
  }
  pieces.push(Buffer.from(`${text}}`));
  yield;
}

const pieceCharacters = 16 * 1024;

function* describingAll(served: readonly ServedResource[]): Steps<OpenApiResource[]> {
  const described: OpenApiResource[] = [];
  for (const one of served) described.push(yield* describing(one));
  return described;
}

function* describing(served: ServedResource): Steps<OpenApiResource> {
  const { definition, kind } = served;
  const virtual = definition.subresources?.[""];
  return {
    group: kind.group,
    version: kind.version,
    resource: definition.resource,
    kind: definition.kind,
    listKind: definition.listKind,
    namespaced: definition.namespaced,
    verbs: virtual?.verbs ?? definition.verbs,
    ...(served.version.published !== undefined && { custom: yield* served.version.published() }),
    returnsDeleted: definition.returnDeletedObject === true,
    subresources: subresourceNames(definition).flatMap((name) => {
      const subresource = findSubresource(served, name);
      if (subresource === undefined) return [];
      const connect = definition.subresources?.[name]?.handler.type === "connect";
      return [{ name, kind: subresource.kind, verbs: subresource.verbs, connect }];
    }),
  };
}

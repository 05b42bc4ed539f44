import { type Clock, realClock } from "../clock/clock.ts";
import { protobufMediaType } from "../codec/negotiate.ts";
import { decodeProtobuf, hasProtobufForm } from "../codec/protobuf.ts";
import { genericServerResponse, StatusError } from "../errors/status-error.ts";
import { type ResourceRef, resourcePath } from "../meta/group-version.ts";
import type { DeleteOptions, KubeList, KubeObject, Status, Unstructured } from "../meta/types.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";
import { type Body, deleteBody, jsonBody, objectBody } from "./body.ts";
import { type ClientConfig, userAgentOf } from "./config.ts";
import type { Connect } from "./connect.ts";
import { newCredentials } from "./credentials.ts";
import { newTokenBucket, type TokenBucket, unlimited } from "./rate-limit.ts";
import type { PoolObserver } from "./stream-pool.ts";
import { newTransport, readBody, type Transport, type TransportRequest, type TransportResponse } from "./transport.ts";
import { isConnectionLost, wasNotProcessed } from "./transport-errors.ts";
import { decodeProtobufWatch, decodeWatchStream } from "./watch-decoder.ts";
import { parseWire } from "./wire-json.ts";

/**
 * The API of one server, for any resource. Objects go out and come in as JSON shapes; what comes in is the caller's own.
 *
 * Failures are StatusErrors with the server's Status; errors of the connection are Node's (see `transport.ts`), an
 * aborted signal rejects with its reason. A 429 or 5xx answer with Retry-After is waited for and tried again, ten times
 * at most, whatever the verb: the server says by it that it did nothing.
 * Source: k8s.io/client-go rest/request.go
 */
export interface Client {
  get<T extends object = Unstructured>(ref: ResourceRef, target: NamedTarget, options?: GetOptions): Promise<T>;
  list<T extends object = Unstructured>(ref: ResourceRef, target?: ListTarget, options?: ListOptions): Promise<KubeList<T>>;
  /** The path is made from the object's own name and namespace; give `name` for subresources that create (binding, eviction, token). */
  create<T extends object = Unstructured>(ref: ResourceRef, object: T, options?: CreateOptions): Promise<T>;
  update<T extends object = Unstructured>(ref: ResourceRef, object: T, options?: UpdateOptions): Promise<T>;
  patch<T extends object = Unstructured>(ref: ResourceRef, target: NamedTarget, patch: Patch, options?: PatchOptions): Promise<T>;
  /** @returns the object when it is only marked for deletion, else a Status. */
  delete(ref: ResourceRef, target: NamedTarget, options?: DeleteOptions & CallOptions): Promise<Status | Unstructured>;
  deleteCollection(
    ref: ResourceRef,
    target: ListTarget,
    options?: DeleteOptions & Pick<ListOptions, "labelSelector" | "fieldSelector"> & CallOptions,
  ): Promise<Status | Unstructured>;
  /**
   * Events from `resourceVersion` on, until the server ends the watch (the loop ends), it fails (StatusError, also for an
   * ERROR event), or `signal` is aborted (rejects with its reason). A slow reader makes the server wait.
   */
  watch<T extends object = Unstructured>(
    ref: ResourceRef,
    target: ListTarget,
    options: WatchOptions,
  ): AsyncIterable<ObjectEvent<T>>;
  /** Anything else: discovery, health, openapi. Any status is an answer. @param path with its query */
  raw(method: string, path: string, options?: RawOptions): Promise<RawResponse>;
  /** Ends the connections, and open watches with them. */
  close(): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface NamedTarget {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly subresource?: string | undefined;
}

export interface ListTarget {
  readonly namespace?: string | undefined;
}

export interface GetOptions extends CallOptions {
  readonly resourceVersion?: string | undefined;
  /** Answered as PartialObjectMetadata: metadata alone. */
  readonly metadataOnly?: boolean | undefined;
}

export interface ListOptions extends CallOptions {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
  readonly metadataOnly?: boolean | undefined;
}

export interface WatchOptions {
  readonly signal: AbortSignal;
  readonly resourceVersion?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly metadataOnly?: boolean | undefined;
}

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean | undefined;
  readonly fieldManager?: string | undefined;
}

export interface CreateOptions extends WriteOptions {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

export interface UpdateOptions extends CreateOptions {}

export interface PatchOptions extends WriteOptions {
  /** Takes fields from other managers; for `apply`. */
  readonly force?: boolean | undefined;
}

export interface Patch {
  readonly type: "json" | "merge" | "strategic" | "apply";
  readonly body: unknown;
}

export interface RawOptions extends CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string | undefined;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** Told of each request, for metrics. */
export interface ClientObserver {
  /** @param code the answer's status, or `<error>`. */
  requested(method: string, host: string, code: string, latencyMs: number): void;
  rateLimited(method: string, host: string, waitedMs: number): void;
  /** Of one set of connections to the host. */
  pool?(host: string): PoolObserver;
}

export interface ClientDependencies {
  readonly clock?: Clock;
  readonly observer?: ClientObserver;
  /** Instead of the configuration's qps and burst, for clients that share a limit. */
  readonly limiter?: TokenBucket;
  /** Instead of connections to the host: a server's client of itself. */
  readonly transport?: Transport;
  /** How the host is reached, when not directly. */
  readonly connect?: Connect | undefined;
}

export function newClient(config: ClientConfig, dependencies: ClientDependencies = {}): Client {
  return newClientFamily(config, dependencies).member(config, dependencies.limiter);
}

/** Clients of one server with one set of credentials and connections, each with its own limit and user agent. */
export interface ClientFamily {
  member(own: Pick<ClientConfig, "qps" | "burst" | "userAgent">, limiter?: TokenBucket): Client;
  /** A member with connections of its own: for leases, whose requests must not wait behind anything. */
  apart(own: Pick<ClientConfig, "qps" | "burst" | "userAgent">): Client;
  /** Ends the connections of all of them; `close` of a member those that it uses. */
  close(): void;
}

export function newClientFamily(config: ClientConfig, dependencies: Omit<ClientDependencies, "limiter"> = {}): ClientFamily {
  const { clock = realClock, observer, connect } = dependencies;
  const transports: Transport[] = [];
  const credentials = newCredentials(config, clock, () => {
    for (const transport of transports) transport.reconnect();
  });
  const newOwn = (): Transport => {
    const certificate = () => credentials.certificate();
    const pool = observer?.pool?.(new URL(config.host).host);
    return newTransport(config, { clock, certificate, connect, observer: pool });
  };
  const shared = dependencies.transport ?? newOwn();
  transports.push(shared);
  const memberOver = (transport: Transport, own: Parameters<ClientFamily["apart"]>[0], limiter?: TokenBucket): Client =>
    memberOf({
      config: { ...config, ...own },
      clock,
      credentials,
      transport,
      limiter: limiter ?? limiterOf(own, clock),
      observer,
    });
  return {
    member: (own, limiter) => memberOver(shared, own, limiter),
    apart(own) {
      const transport = dependencies.transport ?? newOwn();
      transports.push(transport);
      return memberOver(transport, own);
    },
    close() {
      for (const transport of transports) transport.close();
    },
  };
}

function memberOf(call: Call): Client {
  const protobuf = call.config.contentType === protobufMediaType;
  const acceptOf = (ref: ResourceRef): string =>
    protobuf && hasProtobufForm(ref) ? `${protobufMediaType},${jsonType}` : jsonType;
  const accepting = (
    ref: ResourceRef,
    options: { metadataOnly?: boolean | undefined },
    kind: string,
  ): Record<string, string> => ({
    accept: options.metadataOnly === true ? `${jsonType};as=${kind};g=meta.k8s.io;v=v1,${jsonType}` : acceptOf(ref),
  });
  const sending = (
    ref: ResourceRef,
    method: string,
    path: string,
    body: Body,
    signal: AbortSignal | undefined,
  ): TransportRequest => {
    return { method, path, headers: { accept: acceptOf(ref), "content-type": body.contentType }, body: body.bytes, signal };
  };
  const object = async <T>(verb: string, ref: ResourceRef, name: string, request: TransportRequest): Promise<T> => {
    const response = await send(call, request);
    const body = await readBody(response.body);
    if (response.status >= 200 && response.status < 300) return objectIn(response, body) as T;
    throw errorOf(verb, ref, name, response, body);
  };
  const pathOf = (ref: ResourceRef, target: Target, query?: Query): string => {
    const namespace = ref.namespaced ? target.namespace : undefined;
    return resourcePath(ref, { ...target, namespace }) + formatQuery(query);
  };

  return {
    get(ref, target, options = {}) {
      const path = pathOf(ref, target, { resourceVersion: options.resourceVersion });
      return object("get", ref, target.name, {
        method: "GET",
        path,
        headers: accepting(ref, options, "PartialObjectMetadata"),
        signal: options.signal,
      });
    },
    async list<T extends object>(ref: ResourceRef, target: ListTarget = {}, options: ListOptions = {}) {
      const { signal, metadataOnly: _, ...query } = options;
      const path = pathOf(ref, target, query);
      const list = await object<KubeList<T>>("list", ref, "", {
        method: "GET",
        path,
        headers: accepting(ref, options, "PartialObjectMetadataList"),
        signal,
      });
      return { ...list, items: list.items ?? [] }; // of nothing upstream's servers may write null
    },
    create(ref, body, options = {}) {
      const { metadata } = body as unknown as KubeObject;
      const target = {
        namespace: options.namespace ?? metadata?.namespace,
        name: options.name,
        subresource: options.subresource,
      };
      const path = pathOf(ref, target, writeQuery(options));
      return object(
        "create",
        ref,
        options.name ?? metadata?.name ?? "",
        sending(ref, "POST", path, objectBody(ref, body, protobuf, options.subresource), options.signal),
      );
    },
    update(ref, body, options = {}) {
      const { metadata } = body as unknown as KubeObject;
      const name = options.name ?? metadata.name ?? "";
      const target = { namespace: options.namespace ?? metadata.namespace, name, subresource: options.subresource };
      const path = pathOf(ref, target, writeQuery(options));
      return object(
        "update",
        ref,
        name,
        sending(ref, "PUT", path, objectBody(ref, body, protobuf, options.subresource), options.signal),
      );
    },
    patch(ref, target, patch, options = {}) {
      const query = { ...writeQuery(options), ...(options.force === undefined ? {} : { force: options.force }) };
      const body = { contentType: patchTypes[patch.type], bytes: jsonBody(patch.body).bytes };
      return object("patch", ref, target.name, sending(ref, "PATCH", pathOf(ref, target, query), body, options.signal));
    },
    delete(ref, target, options = {}) {
      const { signal, ...deleteOptions } = options;
      const body = deleteBody(ref, deleteOptions, protobuf);
      return object("delete", ref, target.name, sending(ref, "DELETE", pathOf(ref, target), body, signal));
    },
    deleteCollection(ref, target, options = {}) {
      const { signal, labelSelector, fieldSelector, ...deleteOptions } = options;
      const path = pathOf(ref, target, { labelSelector, fieldSelector });
      return object("delete", ref, "", sending(ref, "DELETE", path, deleteBody(ref, deleteOptions, protobuf), signal));
    },
    async *watch(ref, target, options) {
      const { signal, metadataOnly: _, ...query } = options;
      const path = pathOf(ref, target, { ...query, watch: true });
      const response = await send(call, {
        method: "GET",
        path,
        headers: accepting(ref, options, "PartialObjectMetadata"),
        signal,
      });
      if (response.status !== 200) throw errorOf("watch", ref, "", response, await readBody(response.body));
      yield* isProtobuf(response) ? decodeProtobufWatch(response.body, signal) : decodeWatchStream(response.body, signal);
    },
    async raw(method, path, options = {}) {
      const headers = { accept: jsonType, ...options.headers };
      const response = await send(call, { method, path, headers, body: options.body, signal: options.signal });
      return { status: response.status, headers: response.headers, body: await readBody(response.body) };
    },
    close: () => call.transport.close(),
  };
}

interface Call {
  readonly config: ClientConfig;
  readonly clock: Clock;
  readonly credentials: ReturnType<typeof newCredentials>;
  readonly transport: Transport;
  readonly limiter: TokenBucket;
  readonly observer: ClientObserver | undefined;
}

type Target = { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined };
type Query = Readonly<Record<string, string | number | boolean | undefined>>;

const jsonType = "application/json";

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

function limiterOf(config: Pick<ClientConfig, "qps" | "burst">, clock: Clock): TokenBucket {
  const qps = config.qps || 5;
  return qps < 0 ? unlimited : newTokenBucket({ qps, burst: config.burst || 10, clock });
}

function writeQuery(options: WriteOptions): Query {
  return { dryRun: options.dryRun === true ? "All" : undefined, fieldManager: options.fieldManager };
}

function formatQuery(query: Query | undefined): string {
  if (query === undefined) return "";
  const parts: string[] = [];
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parts.push(`${key}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

const mostRetries = 10;

/** With what may be the reason for a 401, which the server does not tell. */
type Answer = TransportResponse & { readonly certificateFault?: string | undefined };

/** Sends until there is an answer that is not "later". The body of the answer is still to be read. */
async function send(call: Call, request: TransportRequest): Promise<Answer> {
  const { config, clock, credentials, transport, limiter, observer } = call;
  const { host } = new URL(config.host);
  const prefix = new URL(config.host).pathname.replace(/\/$/, "");
  for (let retries = 0, unauthorized = false; ; ) {
    const waitedMs = await limiter.accept(request.signal);
    observer?.rateLimited(request.method, host, waitedMs);
    const headers = {
      "user-agent": config.userAgent ?? userAgentOf("coxswain"),
      ...request.headers,
      ...(await credentials.headers()),
    };
    const startedAt = clock.monotonic();
    let response: TransportResponse;
    try {
      response = await transport.request({ ...request, path: prefix + request.path, headers });
    } catch (err) {
      observer?.requested(request.method, host, "<error>", clock.monotonic() - startedAt);
      const again = wasNotProcessed(err) || (request.method === "GET" && isConnectionLost(err));
      if (!again || request.signal?.aborted || retries++ >= mostRetries) throw err;
      if (retries > 1) await clock.sleep(1000, request.signal);
      continue;
    }
    observer?.requested(request.method, host, String(response.status), clock.monotonic() - startedAt);
    if (response.status === 401 && !unauthorized && credentials.rejected()) {
      unauthorized = true;
      response.body.resume();
      continue;
    }
    if (response.status === 401) return { ...response, certificateFault: transport.certificateFault?.() };
    const retryAfter = retryAfterSeconds(response);
    if (retryAfter === undefined || retries >= mostRetries) return response;
    retries++;
    response.body.resume();
    await clock.sleep(retryAfter * 1000, request.signal);
  }
}

/** Source: client-go rest/with_retry.go, checkWait */
function retryAfterSeconds(response: TransportResponse): number | undefined {
  if (response.status !== 429 && response.status < 500) return undefined;
  const text = response.headers["retry-after"];
  return typeof text === "string" && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function errorOf(verb: string, ref: ResourceRef, name: string, response: Answer, body: Buffer): StatusError {
  const text = body.toString("utf8");
  const status = parseStatus(response, body);
  if (status !== undefined) {
    const { certificateFault: fault } = response;
    return new StatusError(fault === undefined ? status : { ...status, message: `${status.message}: client ${fault}` });
  }
  const retryAfter = Number(response.headers["retry-after"]);
  return genericServerResponse(response.status, verb, ref, name, text, Number.isFinite(retryAfter) ? retryAfter : 0, true);
}

function isProtobuf(response: TransportResponse): boolean {
  return response.headers["content-type"]?.startsWith(protobufMediaType) === true;
}

/** @throws Error when the body is none of what the header says */
function objectIn(response: TransportResponse, body: Buffer): unknown {
  return isProtobuf(response) ? decodeProtobuf(body) : parseWire(body.toString("utf8"));
}

function parseStatus(response: TransportResponse, body: Buffer): Status | undefined {
  try {
    const value = objectIn(response, body) as Partial<Status> | null;
    return value?.kind === "Status" && value.status !== "Success" ? (value as Status) : undefined;
  } catch {
    return undefined; // a proxy's page, say
  }
}

import { protobufMediaType } from "../objects/codec/negotiate.ts";
import { decodeProtobuf, decodeProtobufInSteps, hasProtobufForm } from "../objects/codec/protobuf.ts";
import type { ReadOptions } from "../objects/codec/protobuf-decode.ts";
import { failureIn, genericServerResponse, StatusError } from "../objects/errors/status-error.ts";
import { type ResourceRef, resourcePath } from "../objects/meta/group-version.ts";
import type { DeleteOptions, KubeList, KubeObject, Status, Unstructured } from "../objects/meta/types.ts";
import { type Clock, realClock } from "../process/clock/clock.ts";
import { Turns } from "../process/event-loop/turns.ts";
import type { Connect } from "../transport/connect.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";
import { type Body, deleteBody, jsonBody, objectBody } from "./body.ts";
import { type ClientConfig, userAgentOf } from "./config.ts";
import { newCredentials } from "./credentials.ts";
import { newTokenBucket, type TokenBucket, unlimited } from "./rate-limit.ts";
import type { PoolObserver } from "./stream-pool.ts";
import { newTransport, readBody, type Transport } from "./transport.ts";
import { isConnectionLost, wasNotProcessed } from "./transport-errors.ts";
import type { TransportRequest, TransportResponse } from "./transport-messages.ts";
import { decodeProtobufWatch, decodeWatchStream, largeObjectBytes } from "./watch-decoder.ts";
import { dropManagedFields, parseWire } from "./wire-json.ts";

/**
 * A client of one API server, for any resource. Objects are plain JSON shapes; returned objects belong to the caller.
 *
 * API failures reject with a StatusError that holds the server's Status, connection failures with Node's error (see
 * `transport.ts`), an aborted signal with its reason. A 429 or 5xx response with Retry-After is retried after that delay, up to
 * ten times and for any verb: by Retry-After the server states that the request was not executed.
 * Source: k8s.io/client-go rest/request.go
 */
export interface Client {
  get<T extends object = Unstructured>(ref: ResourceRef, target: NamedTarget, options?: GetOptions): Promise<T>;
  list<T extends object = Unstructured>(ref: ResourceRef, target?: ListTarget, options?: ListOptions): Promise<KubeList<T>>;
  /** The path is derived from the object's namespace; give `name` for creating subresources (binding, eviction, token). */
  create<T extends object = Unstructured>(ref: ResourceRef, object: T, options?: CreateOptions): Promise<T>;
  update<T extends object = Unstructured>(ref: ResourceRef, object: T, options?: UpdateOptions): Promise<T>;
  patch<T extends object = Unstructured>(ref: ResourceRef, target: NamedTarget, patch: Patch, options?: PatchOptions): Promise<T>;
  /** The answer is not decoded: the object when it is only marked for deletion, otherwise a Status. */
  delete(ref: ResourceRef, target: NamedTarget, options?: DeleteOptions & CallOptions): Promise<void>;
  deleteCollection(
    ref: ResourceRef,
    target: ListTarget,
    options?: DeleteOptions & Pick<ListOptions, "labelSelector" | "fieldSelector"> & CallOptions,
  ): Promise<void>;
  /**
   * Yields events after `resourceVersion`. The iteration ends when the server ends the watch, and throws when the watch fails
   * (StatusError, also for an ERROR event) or when `signal` is aborted (its reason). Slow consumers exert backpressure on the
   * server.
   */
  watch<T extends object = Unstructured>(
    ref: ResourceRef,
    target: ListTarget,
    options: WatchOptions,
  ): AsyncIterable<ObjectEvent<T>>;
  /** Any other request: discovery, health, openapi. Does not throw for error statuses. @param path including the query */
  raw(method: string, path: string, options?: RawOptions): Promise<RawResponse>;
  /** Closes all connections, including those of open watches. */
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
  /** Requests PartialObjectMetadata. */
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
  /** Decodes only the metadata of the answer, if it is protobuf; other fields are absent from the result. */
  readonly readsMetadataOnly?: boolean | undefined;
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
  /** Takes ownership of fields that other managers own; for `apply`. */
  readonly force?: boolean | undefined;
}

export interface Patch {
  readonly type: "json" | "merge" | "strategic" | "apply";
  readonly body: unknown;
}

interface RawOptions extends CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string | undefined;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** Receives request events, for metrics. */
export interface ClientObserver {
  /** @param code the status of the response, or `<error>` */
  requested(method: string, host: string, code: string, latencyMs: number): void;
  rateLimited(method: string, host: string, waitedMs: number): void;
  /** Creates the observer of one connection pool to the host. */
  pool?(host: string): PoolObserver;
}

export interface ClientDependencies {
  readonly clock?: Clock;
  readonly observer?: ClientObserver;
  /** Overrides qps and burst of the configuration, for clients that share a limit. */
  readonly limiter?: TokenBucket;
  /** Replaces network connections: for a server's in-process client. */
  readonly transport?: Transport;
  /** Custom dialer; default a direct connection or the configured proxy. */
  readonly connect?: Connect | undefined;
}

/** Creates a client with its own connections, credentials and rate limit. */
export function newClient(config: ClientConfig, dependencies: ClientDependencies = {}): Client {
  return newClientFamily(config, dependencies).member(config, dependencies.limiter);
}

/** Clients of one server that share credentials and connections but have their own rate limits and user agents. */
export interface ClientFamily {
  member(own: Pick<ClientConfig, "qps" | "burst" | "userAgent">, limiter?: TokenBucket): Client;
  /** A member with its own connections: for leader election leases, whose requests must not queue behind others. */
  apart(own: Pick<ClientConfig, "qps" | "burst" | "userAgent">): Client;
  /** Closes the connections of all members. `close` of a member closes the connections that it uses. */
  close(): void;
}

/** @param dependencies `transport`: connections to use in place of the family's own */
export function newClientFamily(config: ClientConfig, dependencies: Omit<ClientDependencies, "limiter"> = {}): ClientFamily {
  const { clock = realClock, observer, connect } = dependencies;
  const turns = new Turns();
  const transports: Transport[] = [];
  const credentials = newCredentials(config, clock, () => {
    for (const transport of transports) transport.reconnect();
  });
  const newOwn = (): Transport => {
    const certificate = () => credentials.certificate();
    const pool = observer?.pool?.(server.host);
    return newTransport(config, { clock, certificate, connect, observer: pool });
  };
  const server = serverOf(config);
  const shared = dependencies.transport ?? newOwn();
  transports.push(shared);
  const memberOver = (transport: Transport, own: Parameters<ClientFamily["apart"]>[0], limiter?: TokenBucket): Client =>
    new MemberClient({
      config: { ...config, ...own },
      server,
      clock,
      credentials,
      transport,
      limiter: limiter ?? limiterOf(own, clock),
      observer,
      turns,
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

class MemberClient implements Client {
  readonly #call: Call;
  readonly #protobuf: boolean;

  constructor(call: Call) {
    this.#call = call;
    this.#protobuf = call.config.contentType === protobufMediaType;
  }

  #acceptOf(ref: ResourceRef): string {
    return this.#protobuf && hasProtobufForm(ref) ? `${protobufMediaType},${jsonType}` : jsonType;
  }

  #accepting(ref: ResourceRef, options: { metadataOnly?: boolean | undefined }, kind: string): Record<string, string> {
    const metadataType = `${jsonType};as=${kind};g=meta.k8s.io;v=v1,${jsonType}`;
    return { accept: options.metadataOnly === true ? metadataType : this.#acceptOf(ref) };
  }

  #sending(ref: ResourceRef, method: string, path: string, encode: () => Body, signal: AbortSignal | undefined): Sending {
    return { method, path, headers: { accept: this.#acceptOf(ref) }, encode, signal };
  }

  async #object<T>(ref: ResourceRef, name: string, request: Sending, readsMetadataOnly = false): Promise<T> {
    const { config, turns } = this.#call;
    const { response, body } = await this.#answer(ref, name, request);
    const options = readsMetadataOnly ? { ...config, readsMetadataOnly } : config;
    const isLarge = body.length >= largeObjectBytes && isProtobuf(response);
    const object = isLarge ? await turns.run(decodeProtobufInSteps(body, undefined, options)) : objectIn(response, body, options);
    // Cast: the server is trusted to answer with an object of the requested kind.
    return object as T;
  }

  /**
   * @param name as in the path; `""` for a collection
   * @throws StatusError unless the request succeeded
   */
  async #answer(ref: ResourceRef, name: string, request: Sending): Promise<{ response: TransportResponse; body: Buffer }> {
    const response = await send(this.#call, request);
    const body = await readBody(response);
    if (response.status >= 200 && response.status < 300) return { response, body };
    throw errorOf(this.#call, { method: request.method, ref, name }, response, body);
  }

  #pathOf(ref: ResourceRef, target: Target, query?: Query): string {
    const namespace = ref.namespaced ? target.namespace : undefined;
    return resourcePath(ref, { ...target, namespace }) + formatQuery(query);
  }

  get<T extends object>(ref: ResourceRef, target: NamedTarget, options: GetOptions = {}): Promise<T> {
    const path = this.#pathOf(ref, target, { resourceVersion: options.resourceVersion });
    return this.#object(ref, target.name, {
      method: "GET",
      path,
      headers: this.#accepting(ref, options, "PartialObjectMetadata"),
      signal: options.signal,
    });
  }

  async list<T extends object>(ref: ResourceRef, target: ListTarget = {}, options: ListOptions = {}): Promise<KubeList<T>> {
    const { signal, metadataOnly: _, ...query } = options;
    const path = this.#pathOf(ref, target, query);
    const list = await this.#object<KubeList<T>>(ref, "", {
      method: "GET",
      path,
      headers: this.#accepting(ref, options, "PartialObjectMetadataList"),
      signal,
    });
    return { ...list, items: list.items ?? [] }; // upstream's servers may write null for an empty list
  }

  create<T extends object>(ref: ResourceRef, body: T, options: CreateOptions = {}): Promise<T> {
    const { metadata }: Partial<KubeObject> = body;
    const target = {
      namespace: options.namespace ?? metadata?.namespace,
      name: options.name,
      subresource: options.subresource,
    };
    const path = this.#pathOf(ref, target, writeQuery(options));
    return this.#object(
      ref,
      options.name ?? "",
      this.#sending(ref, "POST", path, () => objectBody(ref, body, this.#protobuf, options.subresource), options.signal),
      options.readsMetadataOnly,
    );
  }

  update<T extends object>(ref: ResourceRef, body: T, options: UpdateOptions = {}): Promise<T> {
    const { metadata }: Partial<KubeObject> = body;
    const name = options.name ?? metadata?.name ?? "";
    const target = { namespace: options.namespace ?? metadata?.namespace, name, subresource: options.subresource };
    const path = this.#pathOf(ref, target, writeQuery(options));
    return this.#object(
      ref,
      name,
      this.#sending(ref, "PUT", path, () => objectBody(ref, body, this.#protobuf, options.subresource), options.signal),
      options.readsMetadataOnly,
    );
  }

  patch<T extends object>(ref: ResourceRef, target: NamedTarget, patch: Patch, options: PatchOptions = {}): Promise<T> {
    const query = { ...writeQuery(options), ...(options.force === undefined ? {} : { force: options.force }) };
    const encode = (): Body => ({ contentType: patchTypes[patch.type], bytes: jsonBody(patch.body).bytes });
    return this.#object(
      ref,
      target.name,
      this.#sending(ref, "PATCH", this.#pathOf(ref, target, query), encode, options.signal),
      options.readsMetadataOnly,
    );
  }

  async delete(ref: ResourceRef, target: NamedTarget, options: Parameters<Client["delete"]>[2] = {}): Promise<void> {
    const { signal, ...deleteOptions } = options;
    const encode = (): Body => deleteBody(ref, deleteOptions, this.#protobuf);
    await this.#answer(ref, target.name, this.#sending(ref, "DELETE", this.#pathOf(ref, target), encode, signal));
  }

  async deleteCollection(
    ref: ResourceRef,
    target: ListTarget,
    options: Parameters<Client["deleteCollection"]>[2] = {},
  ): Promise<void> {
    const { signal, labelSelector, fieldSelector, ...deleteOptions } = options;
    const path = this.#pathOf(ref, target, { labelSelector, fieldSelector });
    const encode = (): Body => deleteBody(ref, deleteOptions, this.#protobuf);
    await this.#answer(ref, "", this.#sending(ref, "DELETE", path, encode, signal));
  }

  async *watch<T extends object>(ref: ResourceRef, target: ListTarget, options: WatchOptions): AsyncIterable<ObjectEvent<T>> {
    const { signal, metadataOnly: _, ...query } = options;
    const path = this.#pathOf(ref, target, { ...query, watch: true });
    const response = await send(this.#call, {
      method: "GET",
      path,
      headers: this.#accepting(ref, options, "PartialObjectMetadata"),
      signal,
    });
    if (response.status !== 200) throw errorOf(this.#call, { method: "GET", ref, name: "" }, response, await readBody(response));
    const { config, turns } = this.#call;
    const parts = response.parts?.() ?? response.body;
    yield* isProtobuf(response)
      ? decodeProtobufWatch<T>(parts, signal, config, turns)
      : decodeWatchStream<T>(parts, signal, config);
  }

  async raw(method: string, path: string, options: RawOptions = {}): Promise<RawResponse> {
    const headers = { accept: jsonType, ...options.headers };
    const response = await send(this.#call, { method, path, headers, body: options.body, signal: options.signal });
    return { status: response.status, headers: response.headers, body: await readBody(response) };
  }

  close(): void {
    this.#call.transport.close();
  }
}

/** A request whose body is encoded when the rate limiter lets it pass: those that wait hold no second copy of their objects. */
interface Sending extends TransportRequest {
  readonly encode?: () => Body;
}

interface Call {
  readonly config: ClientConfig;
  readonly server: Server;
  readonly clock: Clock;
  readonly credentials: ReturnType<typeof newCredentials>;
  readonly transport: Transport;
  readonly limiter: TokenBucket;
  readonly observer: ClientObserver | undefined;
  /** In which large objects are decoded. */
  readonly turns: Turns;
}

/** Parts of the configuration's URL. */
interface Server {
  readonly host: string;
  /** Path prefix of all requests, without a trailing slash. */
  readonly prefix: string;
}

function serverOf(config: ClientConfig): Server {
  const { host, pathname } = new URL(config.host);
  return { host, prefix: pathname.replace(/\/$/, "") };
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

/** Sends a request with rate limiting and retries. The body of the returned response is unread. */
async function send(call: Call, { encode, ...request }: Sending): Promise<TransportResponse> {
  const { config, server, clock, credentials, transport, limiter, observer } = call;
  const { host, prefix } = server;
  let body: Body | undefined;
  for (let retries = 0, unauthorized = false; ; ) {
    // Without an await where nothing waits: each costs a request some microseconds.
    const passes = request.signal?.aborted !== true && limiter.tryAccept();
    const waitedMs = passes ? 0 : await limiter.accept(request.signal);
    observer?.rateLimited(request.method, host, waitedMs);
    body ??= encode?.();
    const known = credentials.headers();
    const headers = {
      "user-agent": config.userAgent ?? userAgentOf("coxswain"),
      ...request.headers,
      ...(body !== undefined && { "content-type": body.contentType }),
      ...(known instanceof Promise ? await known : known),
    };
    const startedAt = clock.monotonic();
    let response: TransportResponse;
    try {
      response = await transport.request({ ...request, body: body?.bytes ?? request.body, path: prefix + request.path, headers });
    } catch (err) {
      observer?.requested(request.method, host, "<error>", clock.monotonic() - startedAt);
      const again = wasNotProcessed(err) || (request.method === "GET" && isConnectionLost(err));
      const most = wasNotProcessed(err) ? mostRetries : (config.retriesOfLost ?? mostRetries);
      if (!again || request.signal?.aborted || retries++ >= most) throw err;
      if (retries > 1) await clock.sleep(1000, request.signal);
      continue;
    }
    observer?.requested(request.method, host, String(response.status), clock.monotonic() - startedAt);
    if (response.status === 401 && !unauthorized && credentials.rejected(headers)) {
      unauthorized = true;
      response.body.resume();
      continue;
    }
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
  const text = headerOf(response, "retry-after");
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

interface Subject {
  readonly method: string;
  readonly ref: ResourceRef;
  readonly name: string;
}

function errorOf({ transport }: Call, { method, ref, name }: Subject, response: TransportResponse, body: Buffer): StatusError {
  const text = body.toString("utf8");
  const status = parseStatus(response, body);
  if (status !== undefined) {
    // The likely reason for a 401, which the server does not report.
    const fault = response.status === 401 ? transport.certificateFault?.() : undefined;
    return new StatusError(fault === undefined ? status : { ...status, message: `${status.message}: client ${fault}` });
  }
  const retryAfter = Number(headerOf(response, "retry-after"));
  return genericServerResponse(response.status, method, ref, name, text, Number.isFinite(retryAfter) ? retryAfter : 0, true);
}

function isProtobuf(response: TransportResponse): boolean {
  return headerOf(response, "content-type")?.startsWith(protobufMediaType) === true;
}

function headerOf(response: TransportResponse, name: string): string | undefined {
  if (response.header !== undefined) return response.header(name);
  const value = response.headers[name];
  return typeof value === "string" ? value : undefined;
}

/** @throws Error when the body does not match the content type */
function objectIn(response: TransportResponse, body: Buffer, options: ReadOptions = {}): unknown {
  if (isProtobuf(response)) return decodeProtobuf(body, undefined, options);
  const object = parseWire(body.toString("utf8"));
  if (options.omitsManagedFields === true) dropManagedFields(object);
  return object;
}

function parseStatus(response: TransportResponse, body: Buffer): Status | undefined {
  try {
    return failureIn(objectIn(response, body));
  } catch {
    return undefined; // e.g. an error page of a proxy
  }
}

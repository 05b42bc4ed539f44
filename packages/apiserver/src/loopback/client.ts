/**
 * The server's client of itself. Reads of stored resources are served by the stores without encoding, so that informers share the
 * objects of the watch cache. All other requests go through the handlers as system:apiserver, which is authorized for everything.
 */
import { randomUUID } from "node:crypto";
import {
  type Client,
  type ClientObserver,
  type CreateOptions,
  type GetOptions,
  type ListOptions,
  type ListTarget,
  type NamedTarget,
  newClient,
  type Patch,
  type PatchOptions,
  type UpdateOptions,
  type WatchOptions,
} from "@coxswain/apimachinery/client/client";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeList, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { ObjectEvent } from "@coxswain/apimachinery/watch-stream/event";
import type { RegistryStore } from "../registry/generic/resource.ts";
import type { UserInfo } from "../request/context.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { apiserverUser, privilegedGroup } from "../request/user-names.ts";
import type { Entry, Selection } from "../storage/storage.ts";
import { LoopbackExchange } from "./exchange.ts";

interface LoopbackOptions {
  handle: (request: ServerRequest) => Promise<void>;
  writeError: (exchange: Exchange, err: unknown, request?: ServerRequest) => void;
  /** Returns the store of a resource whose hub version is the requested one. */
  storeOf: (ref: ResourceRef) => RegistryStore | undefined;
  /** Called for each read that is served by a store directly. */
  onRead: (verb: "GET" | "LIST" | "WATCH", ref: ResourceRef) => void;
  observer?: ClientObserver;
  turns: Turns;
}

/** The client for in-process use; requests are not rate limited. */
export function newLoopbackClient(options: LoopbackOptions): Client {
  const user: UserInfo = { name: apiserverUser, uid: randomUUID(), groups: [privilegedGroup] };
  const wire = newClient(
    { host: "http://loopback", qps: -1, userAgent: `kube-apiserver/${kubernetesRelease.gitVersion} loopback` },
    { transport: transport(options, user), ...(options.observer && { observer: options.observer }) },
  );
  return new LoopbackClient(wire, options);
}

class LoopbackClient implements Client {
  readonly #wire: Client;
  readonly #options: LoopbackOptions;

  /** @param wire a client whose requests go through the handlers */
  constructor(wire: Client, options: LoopbackOptions) {
    this.#wire = wire;
    this.#options = options;
  }

  async get<T extends object>(ref: ResourceRef, target: NamedTarget, get: GetOptions = {}): Promise<T> {
    const store = target.subresource === undefined && !get.metadataOnly ? this.#options.storeOf(ref) : undefined;
    if (store === undefined) return this.#wire.get(ref, target, get);
    this.#options.onRead("GET", ref);
    const entry = await store.get(target.namespace ?? "", target.name, {
      minimumRevision: get.resourceVersion === undefined ? undefined : Number(get.resourceVersion),
      ...(get.signal === undefined ? {} : { signal: get.signal }),
    });
    return entry.object<KubeObject & T>();
  }

  async list<T extends object>(ref: ResourceRef, target: ListTarget = {}, list: ListOptions = {}): Promise<KubeList<T>> {
    const store = list.metadataOnly || list.resourceVersionMatch !== undefined ? undefined : this.#options.storeOf(ref);
    if (store === undefined) return this.#wire.list(ref, target, list);
    this.#options.onRead("LIST", ref);
    const result = await store.list(target.namespace ?? "", {
      ...selection(list),
      revision: list.resourceVersion ? Number(list.resourceVersion) : undefined,
      ...(list.limit === undefined ? {} : { limit: list.limit }),
      ...(list.continue === undefined ? {} : { continueToken: list.continue }),
      ...(list.signal === undefined ? {} : { signal: list.signal }),
    });
    const metadata = {
      resourceVersion: String(result.revision),
      ...(result.continueToken ? { continue: result.continueToken } : {}),
    };
    return { metadata, items: await objectsOf<T>(this.#options.turns, result.entries) };
  }

  watch<T extends object>(ref: ResourceRef, target: ListTarget, options: WatchOptions): AsyncIterable<ObjectEvent<T>> {
    const store = options.metadataOnly ? undefined : this.#options.storeOf(ref);
    if (store === undefined) return this.#wire.watch(ref, target, options);
    this.#options.onRead("WATCH", ref);
    return watchStore<T>(store, ref, target.namespace ?? "", options);
  }

  create<T extends object>(ref: ResourceRef, object: T, options?: CreateOptions): Promise<T> {
    return this.#wire.create(ref, object, options);
  }

  update<T extends object>(ref: ResourceRef, object: T, options?: UpdateOptions): Promise<T> {
    return this.#wire.update(ref, object, options);
  }

  patch<T extends object>(ref: ResourceRef, target: NamedTarget, patch: Patch, options?: PatchOptions): Promise<T> {
    return this.#wire.patch(ref, target, patch, options);
  }

  delete(...call: Parameters<Client["delete"]>): ReturnType<Client["delete"]> {
    return this.#wire.delete(...call);
  }

  deleteCollection(...call: Parameters<Client["deleteCollection"]>): ReturnType<Client["deleteCollection"]> {
    return this.#wire.deleteCollection(...call);
  }

  raw(...call: Parameters<Client["raw"]>): ReturnType<Client["raw"]> {
    return this.#wire.raw(...call);
  }

  close(): void {
    this.#wire.close();
  }
}

/** Decodes the entries that were not decoded yet, in turns. */
async function objectsOf<T extends object>(turns: Turns, entries: readonly Entry[]): Promise<T[]> {
  const objects: T[] = [];
  for (const entry of entries) {
    const turn = turns.next();
    if (turn !== undefined) await turn;
    objects.push(entry.object<KubeObject & T>());
  }
  return objects;
}

function selection(options: { labelSelector?: string | undefined; fieldSelector?: string | undefined }): Selection {
  return {
    ...(options.labelSelector ? { labels: LabelSelector.parse(options.labelSelector) } : {}),
    ...(options.fieldSelector ? { fields: FieldSelector.parse(options.fieldSelector) } : {}),
  };
}

async function* watchStore<T extends object>(
  store: RegistryStore,
  ref: ResourceRef,
  namespace: string,
  options: WatchOptions,
): AsyncIterable<ObjectEvent<T>> {
  const { signal } = options;
  const stream = await store.watch(namespace, {
    ...selection(options),
    revision: options.resourceVersion ? Number(options.resourceVersion) : undefined,
    bookmarks: options.allowWatchBookmarks === true,
    signal,
  });
  try {
    while (await stream.ready()) {
      for (const event of stream.take()) {
        if (event.type === "ERROR") throw event.error;
        if (event.type === "BOOKMARK") {
          const bookmark: object = { kind: ref.kind, metadata: { resourceVersion: String(event.revision) } };
          yield { type: "BOOKMARK", object: bookmark as T }; // cast: a bookmark has no more than its kind and revision
        } else {
          yield { type: event.type, object: event.entry.object<KubeObject & T>() };
        }
      }
    }
    signal.throwIfAborted();
  } finally {
    stream.stop();
  }
}

function transport(options: LoopbackOptions, user: UserInfo): Transport {
  return {
    async request(wanted) {
      const exchange = new LoopbackExchange(wanted);
      const info = parseRequestInfo(exchange.method, exchange.url);
      const request = new ServerRequest(exchange, info, Date.now(), isLongRunning(info));
      request.user = user;
      options.handle(request).catch((err: unknown) => {
        if (exchange.headersSent) exchange.destroy();
        else options.writeError(exchange, err instanceof StatusError ? err : asError(err), request);
      });
      return exchange.response;
    },
    reconnect: () => {},
    close: () => {},
  };
}

function asError(err: unknown): Error {
  return err instanceof Error ? err : new Error(String(err));
}

/**
 * The server's client of itself. Reads of stored resources are served by the stores without encoding, so that informers share the
 * objects of the watch cache. All other requests go through the handlers as system:apiserver, which is authorized for everything.
 */
import { randomUUID } from "node:crypto";
import { type Client, type ClientObserver, newClient } from "@coxswain/apimachinery/client/client";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import { kubernetesRelease } from "@coxswain/apimachinery/meta/release";
import type { KubeList, KubeObject } from "@coxswain/apimachinery/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { ObjectEvent } from "@coxswain/apimachinery/watch-stream/event";
import type { RegistryStore } from "../registry/generic/resource.ts";
import type { UserInfo } from "../request/context.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { apiserverUser, privilegedGroup } from "../request/user-names.ts";
import type { Entry, Selection } from "../storage/storage.ts";
import { LoopbackExchange } from "./exchange.ts";

export interface LoopbackOptions {
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
  return {
    ...wire,
    async get(ref, target, get = {}) {
      const store = target.subresource === undefined && !get.metadataOnly ? options.storeOf(ref) : undefined;
      if (store === undefined) return wire.get(ref, target, get);
      options.onRead("GET", ref);
      const entry = await store.get(target.namespace ?? "", target.name, {
        minimumRevision: get.resourceVersion === undefined ? undefined : Number(get.resourceVersion),
        ...(get.signal === undefined ? {} : { signal: get.signal }),
      });
      return entry.object() as never;
    },
    async list(ref, target = {}, list = {}) {
      const store = list.metadataOnly || list.resourceVersionMatch !== undefined ? undefined : options.storeOf(ref);
      if (store === undefined) return wire.list(ref, target, list);
      options.onRead("LIST", ref);
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
      return { metadata, items: await objectsOf(options.turns, result.entries) } as KubeList<never>;
    },
    watch(ref, target, watch) {
      const store = watch.metadataOnly ? undefined : options.storeOf(ref);
      if (store === undefined) return wire.watch(ref, target, watch);
      options.onRead("WATCH", ref);
      return watchStore(store, ref, target.namespace ?? "", watch) as never;
    },
  };
}

/** Decodes the entries that were not decoded yet, in turns. */
async function objectsOf(turns: Turns, entries: readonly Entry[]): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  for (const entry of entries) {
    const turn = turns.next();
    if (turn !== undefined) await turn;
    objects.push(entry.object());
  }
  return objects;
}

function selection(options: { labelSelector?: string | undefined; fieldSelector?: string | undefined }): Selection {
  return {
    ...(options.labelSelector ? { labels: LabelSelector.parse(options.labelSelector) } : {}),
    ...(options.fieldSelector ? { fields: FieldSelector.parse(options.fieldSelector) } : {}),
  };
}

async function* watchStore(
  store: RegistryStore,
  ref: ResourceRef,
  namespace: string,
  options: Parameters<Client["watch"]>[2],
): AsyncIterable<ObjectEvent<KubeObject>> {
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
          yield { type: "BOOKMARK", object: { kind: ref.kind, metadata: { resourceVersion: String(event.revision) } } };
        } else {
          yield { type: event.type, object: event.entry.object() };
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

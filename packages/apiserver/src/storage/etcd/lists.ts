import { resourceExpired, tooLargeResourceVersion } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { decodeContinueToken, encodeContinueToken } from "../continue-token.ts";
import { isSelective, matches } from "../selection.ts";
import type { Entry, ListRequest, ListResult } from "../storage.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";
import { endOfPrefix, type KeyValue, type RangeResponse } from "./wire.ts";

/** @param fetched objects read from etcd @param evaluated of these, those that were compared with the selectors */
export type ListCounter = (fetched: number, evaluated: number, returned: number) => void;

interface EtcdListsOptions {
  client: EtcdClient;
  /** `/registry/pods/`. */
  prefix: string;
  /** @throws InternalError for a value that cannot be decoded, which is logged */
  read(kv: KeyValue): Entry | Promise<Entry>;
  /** As `read`, for an initial list: entries not expected to be read soon keep the value instead of the object. */
  readInitial(kv: KeyValue, isReadSoon: boolean): Entry | Promise<Entry>;
  /** Ignores an error of `read`, or rethrows it when the value may be readable later. */
  passOver(err: unknown): void;
  /** Records the call's metrics under `operation` and converts etcd errors to Status errors. */
  timed<T>(operation: string, call: Promise<T>): Promise<T>;
  /** Called at the end of each list. */
  listed?: ListCounter;
  turns: Turns;
}

/** Numbers of objects that a list has read from etcd, compared with its selectors, and found. */
interface ListCost {
  fetched: number;
  evaluated: number;
  returned: number;
}

/** Keys per range request of an unlimited list: a few MiB at most for typical objects. */
const pageKeys = 1_000;
/**
 * Initial lists below this length keep their objects decoded: these are mostly roles, namespaces and configuration, which informers of
 * this server read next.
 */
const shortList = 200;

/**
 * Range reads of one resource: paged lists at one revision, and the full read that fills a cache.
 * Source: k8s.io/apiserver pkg/storage/etcd3/store.go, List
 */
export class EtcdLists {
  readonly #options: EtcdListsOptions;

  constructor(options: EtcdListsOptions) {
    this.#options = options;
  }

  /** A prefix that does not end with `/` is a key, whose list has one entry or none. */
  async list(request: ListRequest): Promise<ListResult> {
    const cost: ListCost = { fetched: 0, evaluated: 0, returned: 0 };
    try {
      return request.prefix !== "" && !request.prefix.endsWith("/")
        ? await this.#listOne(request, cost)
        : await this.#listMany(request, cost);
    } finally {
      this.#options.listed?.(cost.fetched, cost.evaluated, cost.returned);
    }
  }

  async #listMany(request: ListRequest, cost: ListCost): Promise<ListResult> {
    const { prefix, timed, client, turns, read } = this.#options;
    const from = prefix + request.prefix;
    const end = endOfPrefix(from);
    const selective = isSelective(request);
    let start = from;
    /** Revision to read at; 0 until the first page determines it. */
    let revision = 0;
    let minimum: number | undefined;
    if (request.continueToken) {
      const token = decodeContinueToken(request.continueToken);
      start = from + token.start;
      if (token.revision > 0) revision = token.revision;
    } else if (request.revision) {
      if (request.match === "Exact" || (request.limit && request.match === undefined)) revision = request.revision;
      else minimum = request.revision;
    }

    const entries: Entry[] = [];
    for (;;) {
      request.signal?.throwIfAborted();
      const wanted = request.limit ? request.limit - entries.length : pageKeys;
      const limit = request.limit && selective ? Math.max(wanted, 100) : wanted;
      let page: RangeResponse;
      try {
        page = await timed("list", client.range({ key: start, end, limit, ...(revision > 0 && { revision }) }));
      } catch (err) {
        throw await this.#listFailure(err, request, start.slice(from.length), revision);
      }
      assertReached(minimum, page.revision);
      if (revision === 0) revision = page.revision;
      cost.fetched += page.kvs.length;
      for (let i = 0; i < page.kvs.length; i++) {
        const kv = page.kvs[i]!;
        const turn = turns.next();
        if (turn) await turn;
        const found = read(kv);
        const entry = found instanceof Promise ? await found : found;
        start = `${kv.key}\0`;
        cost.evaluated++;
        if (!matches(request, entry)) continue;
        entries.push(entry);
        cost.returned++;
        if (!request.limit || entries.length < request.limit) continue;
        const left = page.kvs.length - i - 1;
        if (left === 0 && !page.more) break;
        return {
          entries,
          revision,
          continueToken: encodeContinueToken({ start: start.slice(from.length), revision }),
          // Without a selector the page ends with this object.
          ...(!selective && { remainingItemCount: page.count - page.kvs.length }),
        };
      }
      if (!page.more) return { entries, revision };
    }
  }

  /**
   * Reads all objects page by page, in the order of their keys.
   * @param at revision to read at; 0: the current one
   * @param onUnreadable called with the key of each value that can never be decoded, which is left out
   * @returns the revision that was read
   */
  async readAll(onPage: (entries: Entry[]) => void, at = 0, onUnreadable?: (key: string) => void): Promise<number> {
    const cost: ListCost = { fetched: 0, evaluated: 0, returned: 0 };
    try {
      return await this.#readPages(cost, onPage, at, onUnreadable);
    } finally {
      this.#options.listed?.(cost.fetched, cost.evaluated, cost.returned);
    }
  }

  async #readPages(
    cost: ListCost,
    onPage: (entries: Entry[]) => void,
    at: number,
    onUnreadable: ((key: string) => void) | undefined,
  ): Promise<number> {
    const { timed, client, prefix, turns, readInitial, passOver } = this.#options;
    const pageFrom = (key: string, revision: number): Promise<RangeResponse> =>
      timed("list", client.range({ key, end: endOfPrefix(prefix), limit: pageKeys, ...(revision > 0 && { revision }) }));
    let page = await pageFrom(prefix, at);
    const revision = at === 0 ? page.revision : at;
    const isShort = page.count <= shortList;
    for (;;) {
      // Prefetch the next page while this one is decoded.
      const next = page.more ? pageFrom(`${page.kvs.at(-1)?.key}\0`, revision) : undefined;
      next?.catch(() => {}); // avoids an unhandled rejection; awaited below
      const entries: Entry[] = [];
      cost.fetched += page.kvs.length;
      for (const kv of page.kvs) {
        const turn = turns.next();
        if (turn) await turn;
        try {
          const found = readInitial(kv, isShort);
          entries.push(found instanceof Promise ? await found : found);
        } catch (err) {
          passOver(err);
          onUnreadable?.(kv.key.slice(prefix.length));
        }
      }
      onPage(entries);
      cost.evaluated += entries.length;
      cost.returned += entries.length;
      if (next === undefined) return revision;
      page = await next;
    }
  }

  /** A list with a single name: reads only that key. */
  async #listOne(request: ListRequest, cost: ListCost): Promise<ListResult> {
    const { timed, client, prefix, read } = this.#options;
    const exact = request.revision && (request.match === "Exact" || (request.limit && request.match === undefined));
    let answer: RangeResponse;
    try {
      answer = await timed("get", client.range({ key: prefix + request.prefix, ...(exact && { revision: request.revision }) }));
    } catch (err) {
      throw await this.#listFailure(err, request, "", request.revision ?? 0);
    }
    if (!exact && request.revision) assertReached(request.revision, answer.revision);
    const kv = answer.kvs[0];
    cost.fetched = answer.kvs.length;
    const entry = kv === undefined ? undefined : await read(kv);
    if (entry !== undefined) cost.evaluated = 1;
    const entries = entry !== undefined && matches(request, entry) ? [entry] : [];
    cost.returned = entries.length;
    return {
      entries,
      revision: exact ? request.revision! : answer.revision,
    };
  }

  async #listFailure(err: unknown, request: ListRequest, start: string, revision: number): Promise<unknown> {
    const { timed, client, prefix } = this.#options;
    const cause = err instanceof EtcdError ? err : err instanceof Error && err.cause instanceof EtcdError ? err.cause : undefined;
    if (cause?.reason === "future-revision") {
      return tooLargeResourceVersion(revision, (await timed("get", client.range({ key: prefix, keysOnly: true }))).revision, 1);
    }
    if (cause?.reason !== "compacted") return err;
    if (!request.continueToken) return resourceExpired("The resourceVersion for the provided list is too old.");
    const expired = resourceExpired(expiredToken);
    expired.status.metadata = { ...expired.status.metadata, continue: encodeContinueToken({ start, revision: -1 }) };
    return expired;
  }
}

/** @throws Timeout (Too large resource version) when etcd has not reached `minimum` */
export function assertReached(minimum: number | undefined, revision: number): void {
  if (minimum !== undefined && minimum > revision) throw tooLargeResourceVersion(minimum, revision, 0);
}

/** Source: pkg/storage/etcd3/errors.go handleCompactedErrorForPaging */
const expiredToken =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
  "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
  "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
  "between the time the first chunk was returned and now may show up in the list.";

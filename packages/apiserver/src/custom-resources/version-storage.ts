/**
 * Storage of one version of a custom resource. All versions share one underlying storage (and watch cache), which keeps each
 * object in the version it was written in. Reads convert, default and prune; writes convert to the storage version.
 * Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go crdConversionRESTOptionsGetter
 */

import { deepEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Cancellation, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type EntryCodec, newEntry } from "../storage/entry.ts";
import type {
  DeleteRequest,
  Entry,
  ListRequest,
  ListResult,
  ReadOptions,
  Storage,
  UpdateOptions,
  WatchRequest,
  WatchStream,
  WriteOptions,
} from "../storage/storage.ts";
import { ConvertedStream } from "./converted-stream.ts";

/** Conversion between a served version and the stored objects. Neither direction modifies its arguments. Ends with the request, if any. */
export interface Translation {
  /** Stored objects in the served version; an object that needs no change is returned itself. */
  show(stored: readonly KubeObject[], request?: Cancellation): KubeObject[] | Promise<KubeObject[]>;
  /** An object of the served version in the storage version. */
  store(object: KubeObject, request?: Cancellation): KubeObject | Promise<KubeObject>;
}

interface VersionStorage extends Storage {
  /** Ends all watches, because the definition changed or was deleted. */
  close(): void;
}

/** Applies `next` without a promise where possible. @returns a promise when `value` is one, or `next` returns one */
export function andThen<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function* objectsOf(entries: readonly Entry[], wanted: readonly number[]): Steps<KubeObject[]> {
  const objects: KubeObject[] = [];
  for (const i of wanted) {
    objects.push(entries[i]!.object());
    yield;
  }
  return objects;
}

/** @param codec encodes and decodes entries in the served version */
export function newVersionStorage(base: Storage, codec: EntryCodec, translation: Translation, turns: Turns): VersionStorage {
  const slot = Symbol("version");
  const closing = new AbortController();
  const shown = (entry: Entry, stored: KubeObject, object: KubeObject): Entry =>
    object === stored ? entry : newEntry(codec, entry.key, entry.revision, object, entry);
  /**
   * Converts entries. Results are memoized; all missing ones are converted together, with a single webhook call.
   * @returns a promise when a webhook is called, or when the conversions take more than a turn
   */
  const see = (entries: readonly Entry[], request?: Cancellation): Entry[] | Promise<Entry[]> => {
    const known = entries.map((entry) => entry.memo(slot, (): { seen?: Entry } => ({})));
    const missing = entries.flatMap((_, i) => (known[i]?.seen === undefined ? [i] : []));
    const all = (): Entry[] => known.map((one) => one.seen!);
    if (missing.length === 0) return all();
    const keep = (stored: readonly KubeObject[], objects: readonly KubeObject[]): Entry[] => {
      for (const [n, i] of missing.entries()) {
        known[i]!.seen = shown(entries[i]!, stored[n]!, objects[n]!);
      }
      return all();
    };
    return andThen(turns.run(objectsOf(entries, missing), 0, request), (stored) =>
      andThen(translation.show(stored, request), (objects) => keep(stored, objects)),
    );
  };
  const seeOne = async (entry: Entry, request?: Cancellation): Promise<Entry> => (await see([entry], request))[0]!;
  const below = <Options extends { suggestion?: Entry | undefined }>(options: Options): Options => ({
    ...options,
    ...(options.suggestion !== undefined && { suggestion: options.suggestion.origin ?? options.suggestion }),
  });

  return {
    ...(base.cached && { cached: base.cached }),
    async create(key: string, object: KubeObject, options?: WriteOptions) {
      const stored = await translation.store(object, options?.signal);
      const entry = await base.create(key, stored, options);
      await turns.next();
      return seeOne(entry, options?.signal);
    },
    async get(key: string, options?: ReadOptions) {
      const entry = await base.get(key, options);
      return entry && seeOne(entry, options?.signal);
    },
    async list(request: ListRequest): Promise<ListResult> {
      const result = await base.list(request);
      return { ...result, entries: await see(result.entries, request.signal) };
    },
    async guaranteedUpdate(key, change, options: UpdateOptions = {}) {
      const attempt = async (current: Entry | undefined): Promise<KubeObject> => {
        const seen = current && (await seeOne(current, options.signal));
        await turns.next();
        const next = await change(seen);
        if (current !== undefined && next === seen?.object()) return current.object();
        const stored = await translation.store(next, options.signal);
        await turns.next();
        // An object stored in another version is not rewritten as long as nothing else changes.
        const isSame = current !== undefined && (await turns.run(deepEqualInSteps(stored, current.object())));
        return isSame ? current.object() : stored;
      };
      return seeOne(await base.guaranteedUpdate(key, attempt, below(options)), options.signal);
    },
    async delete(key, options: DeleteRequest = {}) {
      const { validate } = options;
      const entry = await base.delete(key, {
        ...below(options),
        ...(validate !== undefined && { validate: async (current: Entry) => validate(await seeOne(current, options.signal)) }),
      });
      return seeOne(entry);
    },
    async watch(request: WatchRequest): Promise<WatchStream> {
      const signal = AbortSignal.any([request.signal, closing.signal]);
      return new ConvertedStream(await base.watch({ ...request, signal }), see, signal);
    },
    currentRevision: () => base.currentRevision(),
    count: () => base.count(),
    close: () => closing.abort(),
  };
}

import type { WatchOptions } from "../client/client.ts";
import { alreadyExists, conflict, gone, notFound } from "../objects/errors/status-error.ts";
import { deepClone, deepEqual } from "../objects/meta/deep-equal.ts";
import { formatGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import { generateName } from "../objects/meta/names.ts";
import { keyOf, type ObjectKey, toKey } from "../objects/meta/object-key.ts";
import { formatTime } from "../objects/meta/time.ts";
import type { DeleteOptions, KubeObject, ObjectMeta, Status, Unstructured } from "../objects/meta/types.ts";
import { builtInResources } from "../objects/schema/kinds/resources.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";

/** A stored version of an object, for watches from any version. */
interface LogEntry {
  readonly version: number;
  readonly collection: string;
  readonly event: ObjectEvent<Unstructured>;
  readonly old?: Unstructured;
}

/** The objects of a fake API server: resource versions and conflicts, generations, the status subresource, finalizers, watches. */
export class FakeStore {
  readonly #clock: Clock;
  readonly #collections = new Map<string, Map<ObjectKey, Unstructured>>();
  readonly #log: LogEntry[] = [];
  readonly #watchers = new Set<{ wake(): void; end(): void }>();
  #version = 100;
  #uids = 0;
  #compacted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get version(): string {
    return String(this.#version);
  }

  /** The stored objects themselves. */
  collection(ref: ResourceRef): Map<ObjectKey, Unstructured> {
    return this.#collections.getOrInsertComputed(collectionOf(ref), () => new Map());
  }

  /** @throws NotFound */
  find(ref: ResourceRef, target: { namespace?: string | undefined; name: string }): Unstructured {
    const found = this.collection(ref).get(toKey(ref.namespaced ? target.namespace : "", target.name));
    if (found === undefined) throw notFound(ref, target.name);
    return found;
  }

  /** Stores an object, of which it takes ownership, under a new version. */
  write(ref: ResourceRef, object: Unstructured): Unstructured {
    const objects = this.collection(ref);
    const key = keyOf(object);
    const old = objects.get(key);
    object.metadata.resourceVersion = String(++this.#version);
    objects.set(key, object);
    this.#publish(ref, old === undefined ? "ADDED" : "MODIFIED", object, old);
    return deepClone(object);
  }

  /** Removes an object regardless of finalizers. */
  erase(ref: ResourceRef, object: Unstructured): void {
    if (!this.collection(ref).delete(keyOf(object))) return;
    this.#version++;
    this.#publish(ref, "DELETED", { ...object, metadata: { ...object.metadata, resourceVersion: this.version } }, object);
  }

  /** Stores an object as if another client had written it. */
  put(ref: ResourceRef, given: KubeObject): void {
    const object = deepClone(given) as Unstructured;
    object.apiVersion ??= formatGroupVersion(ref);
    object.kind ??= ref.kind;
    object.metadata.uid ??= this.collection(ref).get(keyOf(object))?.metadata.uid ?? `uid-${++this.#uids}`;
    this.write(ref, object);
  }

  create(ref: ResourceRef, sent: KubeObject, namespace: string | undefined): Unstructured {
    const object = deepClone(sent) as Unstructured;
    const { metadata } = object;
    if (ref.namespaced) metadata.namespace ??= namespace ?? "default";
    if (!metadata.name && metadata.generateName) metadata.name = generateName(metadata.generateName);
    if (this.collection(ref).has(keyOf(object))) throw alreadyExists(ref, metadata.name ?? "");
    metadata.uid = `uid-${++this.#uids}`;
    metadata.creationTimestamp = formatTime(this.#clock.now());
    if (counted(ref, object) !== undefined) metadata.generation = 1;
    object.apiVersion ??= formatGroupVersion(ref);
    object.kind ??= ref.kind;
    return this.write(ref, object);
  }

  /** Updates an object, or what one of its subresources may change. */
  replace(ref: ResourceRef, sent: Unstructured, name: string, subresource: string): Unstructured {
    const stored = this.find(ref, { namespace: sent.metadata.namespace, name });
    checkPreconditions(ref, stored, sent.metadata);
    const object = merged(ref, stored, deepClone(sent), subresource);
    if (deepEqual(object, stored)) return deepClone(stored);
    if (!deepEqual(counted(ref, object), counted(ref, stored)))
      object.metadata.generation = (stored.metadata.generation ?? 0) + 1;
    if (!isFinished(object)) return this.write(ref, object);
    this.erase(ref, object);
    return deepClone(object);
  }

  /** Deletes an object, or marks it for deletion while it has finalizers. */
  remove(ref: ResourceRef, stored: Unstructured, options: DeleteOptions): Status | Unstructured {
    checkPreconditions(ref, stored, options.preconditions ?? {});
    const before = stored.metadata.finalizers ?? [];
    const finalizers = before.filter((f) => f !== "orphan" && f !== "foregroundDeletion");
    if (options.propagationPolicy === "Orphan" || options.orphanDependents === true) finalizers.push("orphan");
    else if (options.propagationPolicy === "Foreground") finalizers.push("foregroundDeletion");
    else if (options.propagationPolicy === undefined) finalizers.push(...before.filter((f) => !finalizers.includes(f)));
    const specFinalizers = (stored["spec"] as { finalizers?: string[] } | undefined)?.finalizers ?? [];
    if (finalizers.length === 0 && (ref.resource !== "namespaces" || specFinalizers.length === 0)) {
      this.erase(ref, stored);
      return success;
    }
    const object = deepClone(stored);
    object.metadata.finalizers = finalizers;
    object.metadata.deletionTimestamp ??= formatTime(this.#clock.now());
    object.metadata.deletionGracePeriodSeconds ??= 0;
    if (ref.resource === "namespaces") object["status"] = { ...(object["status"] as object | undefined), phase: "Terminating" };
    return deepEqual(object, stored) ? deepClone(stored) : this.write(ref, object);
  }

  /** @throws Gone when `resourceVersion` is compacted */
  async *watch(
    ref: ResourceRef,
    matches: (object: Unstructured) => boolean,
    { signal, resourceVersion }: Pick<WatchOptions, "signal" | "resourceVersion">,
  ): AsyncIterable<ObjectEvent<Unstructured>> {
    const from = Number(resourceVersion || this.#version);
    if (from < this.#compacted) throw gone(`too old resource version: ${from} (${this.#compacted})`);
    let ended = false;
    let wake: () => void = () => {};
    const watcher = {
      wake: () => wake(),
      end() {
        ended = true;
        wake();
      },
    };
    const onAbort = (): void => wake();
    signal.addEventListener("abort", onAbort);
    this.#watchers.add(watcher);
    try {
      let next = this.#log.findIndex((entry) => entry.version > from);
      if (next < 0) next = this.#log.length;
      while (!ended) {
        for (; next < this.#log.length && !signal.aborted; next++) {
          const entry = this.#log[next];
          if (entry === undefined || entry.collection !== collectionOf(ref)) continue;
          const event = seenBy(matches, entry.event, entry.old);
          if (event !== undefined) yield deepClone(event);
        }
        signal.throwIfAborted();
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      this.#watchers.delete(watcher);
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** From now on, watches from the current or an earlier version fail with 410. */
  compact(): void {
    this.#compacted = ++this.#version;
  }

  /** Ends all watches, as servers do from time to time. */
  endWatches(): void {
    for (const watcher of this.#watchers) watcher.end();
  }

  #publish(ref: ResourceRef, type: "ADDED" | "MODIFIED" | "DELETED", object: Unstructured, old?: Unstructured): void {
    const event = { type, object: deepClone(object) };
    this.#log.push({ version: this.#version, collection: collectionOf(ref), event, ...(old === undefined ? {} : { old }) });
    for (const watcher of this.#watchers) watcher.wake();
  }
}

const collectionOf = (ref: ResourceRef): string => `${ref.group}/${ref.resource}`;

/** @throws Conflict */
function checkPreconditions(
  ref: ResourceRef,
  { metadata }: Unstructured,
  { uid, resourceVersion }: Pick<ObjectMeta, "uid" | "resourceVersion">,
): void {
  const name = metadata.name ?? "";
  if (resourceVersion && resourceVersion !== metadata.resourceVersion) throw conflict(ref, name, objectModified);
  if (uid && uid !== metadata.uid)
    throw conflict(ref, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`);
}

const objectModified = "the object has been modified; please apply your changes to the latest version and try again";
export const success: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

const withStatus = new Set(
  builtInResources
    .filter(({ resource }) => resource.endsWith("/status"))
    .map(({ group, resource }) => `${group}/${resource.slice(0, -"/status".length)}`),
);

/** What a new generation is counted for: the spec; all of an EndpointSlice, which has none, with its labels. */
function counted(ref: ResourceRef, object: Unstructured): unknown {
  if (ref.resource !== "endpointslices") return object["spec"];
  const { metadata, ...content } = object;
  return { ...content, labels: metadata.labels };
}

/** Merges an update into the stored object: only what the subresource may change. */
function merged(ref: ResourceRef, stored: Unstructured, sent: Unstructured, subresource: string): Unstructured {
  const { metadata } = stored;
  const fixed = { uid: metadata.uid, creationTimestamp: metadata.creationTimestamp, resourceVersion: metadata.resourceVersion };
  const kept = { generation: metadata.generation, deletionTimestamp: metadata.deletionTimestamp };
  const known = Object.fromEntries(Object.entries({ ...fixed, ...kept }).filter(([, value]) => value !== undefined));
  if (subresource === "status" || subresource === "approval") {
    const { annotations } = sent.metadata;
    const copy = deepClone(stored);
    return {
      ...copy,
      metadata: { ...copy.metadata, ...(annotations === undefined ? {} : { annotations }) },
      status: sent["status"],
    };
  }
  if (subresource === "finalize") return { ...deepClone(stored), spec: sent["spec"] };
  if (subresource === "scale") {
    const { replicas } = sent["spec"] as { replicas: number };
    return { ...deepClone(stored), spec: { ...(deepClone(stored["spec"]) as object), replicas } };
  }
  const object: Unstructured = {
    ...sent,
    apiVersion: stored.apiVersion,
    kind: stored.kind,
    metadata: { ...sent.metadata, ...known },
  };
  if (!withStatus.has(`${ref.group}/${ref.resource}`)) return object;
  if (stored["status"] === undefined) delete object["status"];
  else object["status"] = deepClone(stored["status"]);
  return object;
}

function isFinished(object: Unstructured): boolean {
  if (!object.metadata.deletionTimestamp || (object.metadata.finalizers ?? []).length > 0) return false;
  const { finalizers = [] } = (object["spec"] ?? {}) as { finalizers?: string[] };
  return object.kind !== "Namespace" || finalizers.length === 0;
}

/** The event as a watch with selectors sees it: ADDED when the object starts to match, DELETED when it ceases to. */
function seenBy(
  matches: (object: Unstructured) => boolean,
  event: ObjectEvent<Unstructured>,
  old: Unstructured | undefined,
): ObjectEvent<Unstructured> | undefined {
  const now = matches(event.object);
  if (event.type === "DELETED") return now || (old !== undefined && matches(old)) ? event : undefined;
  const before = old !== undefined && matches(old);
  if (now) return before === (event.type === "MODIFIED") ? event : { type: before ? "MODIFIED" : "ADDED", object: event.object };
  return before ? { type: "DELETED", object: event.object } : undefined;
}

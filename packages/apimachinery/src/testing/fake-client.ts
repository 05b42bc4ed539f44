import type { Client, ListOptions, NamedTarget, Patch } from "../client/client.ts";
import { stringifyWire } from "../client/wire-json.ts";
import { type Clock, realClock } from "../clock/clock.ts";
import { alreadyExists, conflict, gone, notFound } from "../errors/status-error.ts";
import { deepClone, deepEqual } from "../meta/deep-equal.ts";
import { formatGroupVersion, type ResourceRef } from "../meta/group-version.ts";
import { generateName } from "../meta/names.ts";
import { keyOf, type ObjectKey, toKey } from "../meta/object-key.ts";
import { formatTime } from "../meta/time.ts";
import type { DeleteOptions, KubeObject, Status, Unstructured } from "../meta/types.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import { applyMergePatch } from "../patch/merge-patch.ts";
import { applyStrategicMerge } from "../patch/strategic-merge.ts";
import { builtInResources } from "../schema/kinds/resources.ts";
import { scheme } from "../schema/scheme.ts";
import { FieldSelector } from "../selectors/field-selector.ts";
import { LabelSelector } from "../selectors/label-selector.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";

/** A recorded request of the code under test. */
export interface Action {
  readonly verb: "get" | "list" | "create" | "update" | "patch" | "delete" | "deletecollection" | "watch";
  readonly resource: string;
  readonly namespace: string;
  /** `""` for collections and for creates with generateName. */
  readonly name: string;
  /** `""` for the object itself. */
  readonly subresource: string;
  /** The request body: object, patch or delete options. */
  readonly sent?: unknown;
}

/** Overrides the response to a request: returns or throws it; undefined for the default behaviour. */
export type Reaction = (action: Action) => unknown;

/**
 * An in-memory client that emulates an API server for controllers: resource versions and conflicts, generations, the
 * status subresource, finalizers, watches from any version. No validation, defaulting or admission; Pods are deleted
 * without grace period.
 */
export interface FakeClient extends Client {
  /** All requests so far, in order. */
  readonly actions: readonly Action[];
  /** The mutating requests. */
  readonly writes: readonly Action[];
  clearActions(): void;
  /** Stores objects unchanged, as if written by another client; watches receive events. */
  put<T extends KubeObject>(ref: ResourceRef, ...objects: T[]): void;
  /** Removes an object regardless of finalizers. */
  remove(ref: ResourceRef, key: ObjectKey): void;
  object<T extends KubeObject = Unstructured>(ref: ResourceRef, key: ObjectKey): T | undefined;
  objects<T extends KubeObject = Unstructured>(ref: ResourceRef, namespace?: string): T[];
  /** @param verb a verb or `*` @param resource a resource or `*` @param reaction takes precedence over earlier ones */
  react(verb: Action["verb"] | "*", resource: string, reaction: Reaction): void;
  /** From now on, watches from the current or an earlier version fail with 410. */
  compact(): void;
  /** Ends all watches, as servers do from time to time. */
  endWatches(): void;
  /** Responses of `raw` by path. */
  readonly rawAnswers: Map<string, unknown>;
}

export function newFakeClient(
  options: { clock?: Clock; objects?: readonly (readonly [ResourceRef, KubeObject])[] } = {},
): FakeClient {
  const { clock = realClock } = options;
  const collections = new Map<string, Map<ObjectKey, Unstructured>>();
  const log: { version: number; collection: string; event: ObjectEvent<Unstructured>; old?: Unstructured }[] = [];
  const watchers = new Set<{ wake(): void; end(): void }>();
  const reactions: { verb: string; resource: string; reaction: Reaction }[] = [];
  const actions: Action[] = [];
  const rawAnswers = new Map<string, unknown>();
  let version = 100;
  let uids = 0;
  let compacted = 0;

  const idOf = (ref: ResourceRef): string => `${ref.group}/${ref.resource}`;
  const collection = (ref: ResourceRef): Map<ObjectKey, Unstructured> => {
    const id = idOf(ref);
    const objects = collections.getOrInsertComputed(id, () => new Map());
    return objects;
  };
  const publish = (ref: ResourceRef, type: "ADDED" | "MODIFIED" | "DELETED", object: Unstructured, old?: Unstructured): void => {
    log.push({
      version,
      collection: idOf(ref),
      event: { type, object: deepClone(object) },
      ...(old === undefined ? {} : { old }),
    });
    for (const watcher of watchers) watcher.wake();
  };
  const write = (ref: ResourceRef, object: Unstructured): Unstructured => {
    const objects = collection(ref);
    const key = keyOf(object);
    const old = objects.get(key);
    object.metadata.resourceVersion = String(++version);
    objects.set(key, object);
    publish(ref, old === undefined ? "ADDED" : "MODIFIED", object, old);
    return deepClone(object);
  };
  const erase = (ref: ResourceRef, object: Unstructured): void => {
    if (!collection(ref).delete(keyOf(object))) return;
    version++;
    publish(ref, "DELETED", { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }, object);
  };
  const find = (ref: ResourceRef, target: { namespace?: string | undefined; name: string }): Unstructured => {
    const found = collection(ref).get(toKey(ref.namespaced ? target.namespace : "", target.name));
    if (found === undefined) throw notFound(ref, target.name);
    return found;
  };
  /** Records a request; returns the result of the first reaction that responds, else of `answer`. */
  const asked = <T>(action: Action, answer: () => T): T => {
    actions.push(action);
    for (const { verb, resource, reaction } of reactions.toReversed()) {
      if ((verb !== "*" && verb !== action.verb) || (resource !== "*" && resource !== action.resource)) continue;
      const reacted = reaction(action);
      if (reacted !== undefined) return reacted as T;
    }
    return answer();
  };
  const actionOf = (verb: Action["verb"], ref: ResourceRef, target: Partial<NamedTarget>, sent?: unknown): Action => ({
    verb,
    resource: ref.resource,
    namespace: target.namespace ?? "",
    name: target.name ?? "",
    subresource: target.subresource ?? "",
    ...(sent === undefined ? {} : { sent: deepClone(sent) }),
  });

  const create = (ref: ResourceRef, sent: KubeObject, namespace: string | undefined): Unstructured => {
    const object = deepClone(sent) as Unstructured;
    const { metadata } = object;
    if (ref.namespaced) metadata.namespace ??= namespace ?? "default";
    if (!metadata.name && metadata.generateName) metadata.name = generateName(metadata.generateName);
    if (collection(ref).has(keyOf(object))) throw alreadyExists(ref, metadata.name ?? "");
    metadata.uid = `uid-${++uids}`;
    metadata.creationTimestamp = formatTime(clock.now());
    if ("spec" in object) metadata.generation = 1;
    object.apiVersion ??= formatGroupVersion(ref);
    object.kind ??= ref.kind;
    return write(ref, object);
  };
  const replace = (ref: ResourceRef, sent: Unstructured, name: string, subresource: string): Unstructured => {
    const stored = find(ref, { namespace: sent.metadata.namespace, name });
    const { resourceVersion, uid } = sent.metadata;
    if (resourceVersion && resourceVersion !== stored.metadata.resourceVersion) throw conflict(ref, name, objectModified);
    if (uid && uid !== stored.metadata.uid)
      throw conflict(ref, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored.metadata.uid}`);
    const object = merged(ref, stored, deepClone(sent), subresource);
    if (deepEqual(object, stored)) return deepClone(stored);
    if (!deepEqual(object["spec"], stored["spec"])) object.metadata.generation = (stored.metadata.generation ?? 0) + 1;
    if (isFinished(object)) {
      erase(ref, object);
      return deepClone(object);
    }
    return write(ref, object);
  };
  const remove = (ref: ResourceRef, stored: Unstructured, options: DeleteOptions): Status | Unstructured => {
    const { uid, resourceVersion } = options.preconditions ?? {};
    const name = stored.metadata.name ?? "";
    if (uid && uid !== stored.metadata.uid)
      throw conflict(ref, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored.metadata.uid}`);
    if (resourceVersion && resourceVersion !== stored.metadata.resourceVersion) throw conflict(ref, name, objectModified);
    const finalizers = (stored.metadata.finalizers ?? []).filter((f) => f !== "orphan" && f !== "foregroundDeletion");
    if (options.propagationPolicy === "Orphan" || options.orphanDependents === true) finalizers.push("orphan");
    else if (options.propagationPolicy === "Foreground") finalizers.push("foregroundDeletion");
    else if (options.propagationPolicy === undefined)
      finalizers.push(...(stored.metadata.finalizers ?? []).filter((f) => !finalizers.includes(f)));
    const specFinalizers = (stored["spec"] as { finalizers?: string[] } | undefined)?.finalizers ?? [];
    if (finalizers.length === 0 && (ref.resource !== "namespaces" || specFinalizers.length === 0)) {
      erase(ref, stored);
      return success;
    }
    const object = deepClone(stored);
    object.metadata.finalizers = finalizers;
    object.metadata.deletionTimestamp ??= formatTime(clock.now());
    object.metadata.deletionGracePeriodSeconds ??= 0;
    if (ref.resource === "namespaces") object["status"] = { ...(object["status"] as object | undefined), phase: "Terminating" };
    return deepEqual(object, stored) ? deepClone(stored) : write(ref, object);
  };
  const matching = (
    ref: ResourceRef,
    namespace: string | undefined,
    selectors: Pick<ListOptions, "labelSelector" | "fieldSelector">,
  ) => {
    const labels = selectors.labelSelector ? LabelSelector.parse(selectors.labelSelector) : undefined;
    const fields = selectors.fieldSelector ? FieldSelector.parse(selectors.fieldSelector) : undefined;
    return (object: Unstructured): boolean =>
      (!ref.namespaced || !namespace || object.metadata.namespace === namespace) &&
      (labels === undefined || labels.matches(object.metadata.labels)) &&
      (fields === undefined ||
        fields.terms.every(({ field, op, value }) => (fieldValue(object, field) === value) === (op === "=")));
  };

  const client: FakeClient = {
    get: async (ref, target) => asked(actionOf("get", ref, target), () => viewOf(find(ref, target), target.subresource)) as never,
    list: async (ref, target = {}, options = {}) =>
      asked(actionOf("list", ref, target), () => ({
        apiVersion: formatGroupVersion(ref),
        kind: `${ref.kind}List`,
        metadata: { resourceVersion: String(version) },
        items: [...collection(ref).values()].filter(matching(ref, target.namespace, options)).map(deepClone),
      })) as never,
    async create(ref, object, options = {}) {
      const sent = object as unknown as KubeObject;
      const name = options.name ?? sent.metadata?.name ?? "";
      const namespace = options.namespace ?? sent.metadata?.namespace;
      const { subresource } = options;
      return asked(actionOf("create", ref, { namespace, name, subresource }, sent), () => {
        if (subresource === undefined) return create(ref, sent, namespace);
        const stored = find(ref, { namespace, name });
        if (subresource === "eviction") return remove(ref, stored, (sent as Unstructured)["deleteOptions"] ?? {});
        if (subresource === "binding") {
          const target = (sent as Unstructured)["target"] as { name: string };
          write(ref, { ...deepClone(stored), spec: { ...(stored["spec"] as object), nodeName: target.name } });
          return success;
        }
        return deepClone(sent);
      }) as never;
    },
    async update(ref, object, options = {}) {
      const sent = object as unknown as Unstructured;
      const name = options.name ?? sent.metadata.name ?? "";
      const { subresource = "" } = options;
      const action = actionOf("update", ref, { namespace: sent.metadata.namespace, name, subresource }, sent);
      return asked(action, () => replace(ref, sent, name, subresource)) as never;
    },
    async patch(ref, target, patch) {
      return asked(actionOf("patch", ref, target, patch.body), () => {
        const stored = find(ref, target);
        const changed = patched(ref, stored, patch);
        return replace(ref, changed, target.name, target.subresource ?? "");
      }) as never;
    },
    async delete(ref, target, options = {}) {
      const { signal: _, ...deleteOptions } = options;
      return asked(actionOf("delete", ref, target, deleteOptions), () => remove(ref, find(ref, target), deleteOptions));
    },
    async deleteCollection(ref, target, options = {}) {
      const { signal: _, labelSelector, fieldSelector, ...deleteOptions } = options;
      return asked(actionOf("deletecollection", ref, target, deleteOptions), () => {
        const chosen = [...collection(ref).values()].filter(matching(ref, target.namespace, { labelSelector, fieldSelector }));
        for (const stored of chosen) remove(ref, stored, deleteOptions);
        return success;
      });
    },
    async *watch(ref, target, { signal, resourceVersion, labelSelector, fieldSelector }) {
      signal.throwIfAborted();
      asked(actionOf("watch", ref, target), () => undefined);
      const from = Number(resourceVersion || version);
      if (from < compacted) throw gone(`too old resource version: ${from} (${compacted})`);
      const matches = matching(ref, target.namespace, { labelSelector, fieldSelector });
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
      watchers.add(watcher);
      try {
        let next = log.findIndex((entry) => entry.version > from);
        if (next < 0) next = log.length;
        while (!ended) {
          for (; next < log.length && !signal.aborted; next++) {
            const entry = log[next];
            if (entry === undefined || entry.collection !== idOf(ref)) continue;
            const event = seenBy(matches, entry.event, entry.old);
            if (event !== undefined) yield deepClone(event) as never;
          }
          signal.throwIfAborted();
          if (ended) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        watchers.delete(watcher);
        signal.removeEventListener("abort", onAbort);
      }
    },
    async raw(_method, path) {
      const answer = rawAnswers.get(path.split("?")[0] as string);
      const status = answer === undefined ? 404 : 200;
      return { status, headers: {}, body: Buffer.from(stringifyWire(answer ?? {})) };
    },
    close() {},

    get actions() {
      return actions;
    },
    get writes() {
      return actions.filter(({ verb }) => verb !== "get" && verb !== "list" && verb !== "watch");
    },
    clearActions() {
      actions.length = 0;
    },
    put(ref, ...objects) {
      for (const given of objects) {
        const object = deepClone(given) as unknown as Unstructured;
        object.apiVersion ??= formatGroupVersion(ref);
        object.kind ??= ref.kind;
        object.metadata.uid ??= collection(ref).get(keyOf(object))?.metadata.uid ?? `uid-${++uids}`;
        write(ref, object);
      }
    },
    remove(ref, key) {
      const stored = collection(ref).get(key);
      if (stored !== undefined) erase(ref, stored);
    },
    object: (ref, key) => deepClone(collection(ref).get(key)) as never,
    objects: (ref, namespace) =>
      [...collection(ref).values()].filter((o) => !namespace || o.metadata.namespace === namespace).map(deepClone) as never,
    react: (verb, resource, reaction) => void reactions.push({ verb, resource, reaction }),
    compact() {
      compacted = version + 1;
      version++;
    },
    endWatches() {
      for (const watcher of watchers) watcher.end();
    },
    rawAnswers,
  };
  for (const [ref, object] of options.objects ?? []) client.put(ref, object);
  return client;
}

const objectModified = "the object has been modified; please apply your changes to the latest version and try again";
const success: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

const withStatus = new Set(
  builtInResources
    .filter(({ resource }) => resource.endsWith("/status"))
    .map(({ group, resource }) => `${group}/${resource.slice(0, -"/status".length)}`),
);

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

function viewOf(stored: Unstructured, subresource: string | undefined): Unstructured {
  if (subresource !== "scale") return deepClone(stored);
  const { replicas, selector } = stored["spec"] as {
    replicas?: number;
    selector?: Parameters<typeof LabelSelector.fromObject>[0];
  };
  const { name, namespace, uid, resourceVersion } = stored.metadata;
  return {
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: { name, namespace, uid, resourceVersion } as never,
    spec: { replicas },
    status: {
      replicas: (stored["status"] as { replicas?: number } | undefined)?.replicas ?? 0,
      selector: String(LabelSelector.fromObject(selector)),
    },
  };
}

function isFinished(object: Unstructured): boolean {
  if (!object.metadata.deletionTimestamp || (object.metadata.finalizers ?? []).length > 0) return false;
  const { finalizers = [] } = (object["spec"] ?? {}) as { finalizers?: string[] };
  return object.kind !== "Namespace" || finalizers.length === 0;
}

function patched(ref: ResourceRef, stored: Unstructured, { type, body }: Patch): Unstructured {
  const copy = deepClone(stored);
  if (type === "json") return applyJsonPatch(copy, Buffer.from(stringifyWire(body))) as Unstructured;
  const descriptor = type === "strategic" ? scheme.kind(ref) : undefined;
  if (descriptor !== undefined) return applyStrategicMerge(copy, body as Record<string, unknown>, descriptor) as Unstructured;
  return applyMergePatch(copy, body) as Unstructured;
}

/** A field by path, e.g. `status.phase`, as a string; `""` when it is absent. */
function fieldValue(object: Unstructured, path: string): string {
  let value: unknown = object;
  for (const part of path.split("."))
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[part] : undefined;
  return value === undefined || value === null ? "" : String(value);
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

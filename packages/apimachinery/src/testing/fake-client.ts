import type {
  CallOptions,
  Client,
  CreateOptions,
  ListOptions,
  ListTarget,
  NamedTarget,
  Patch,
  RawResponse,
  UpdateOptions,
  WatchOptions,
} from "../client/client.ts";
import { stringifyWire } from "../client/wire-json.ts";
import { deepClone } from "../objects/meta/deep-equal.ts";
import { formatGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import type { ObjectKey } from "../objects/meta/object-key.ts";
import type { DeleteOptions, KubeList, KubeObject, Unstructured } from "../objects/meta/types.ts";
import { applyJsonPatch } from "../objects/patch/json-patch.ts";
import { applyMergePatch } from "../objects/patch/merge-patch.ts";
import { applyStrategicMerge } from "../objects/patch/strategic-merge.ts";
import { scheme } from "../objects/schema/scheme.ts";
import { FieldSelector } from "../objects/selectors/field-selector.ts";
import { LabelSelector } from "../objects/selectors/label-selector.ts";
import { type Clock, realClock } from "../process/clock/clock.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";
import { FakeStore, success } from "./fake-store.ts";

/** A recorded request of the code under test. */
interface Action {
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
type Reaction = (action: Action) => unknown;

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

/**
 * @param options.clock of the timestamps that the client sets; default the real one
 * @param options.objects stored as if they had been there before
 */
export function newFakeClient(
  options: { clock?: Clock; objects?: readonly (readonly [ResourceRef, KubeObject])[] } = {},
): FakeClient {
  const client = new RecordingClient(new FakeStore(options.clock ?? realClock));
  for (const [ref, object] of options.objects ?? []) client.put(ref, object);
  return client;
}

class RecordingClient implements FakeClient {
  readonly actions: Action[] = [];
  readonly rawAnswers = new Map<string, unknown>();
  readonly #store: FakeStore;
  readonly #reactions: { verb: string; resource: string; reaction: Reaction }[] = [];

  constructor(store: FakeStore) {
    this.#store = store;
  }

  async get<T extends object>(ref: ResourceRef, target: NamedTarget): Promise<T> {
    return this.#perform(actionOf("get", ref, target), () => viewOf(this.#store.find(ref, target), target.subresource)) as T;
  }

  async list<T extends object>(ref: ResourceRef, target: ListTarget = {}, options: ListOptions = {}): Promise<KubeList<T>> {
    const matches = matching(ref, target.namespace, options);
    return this.#perform<unknown>(actionOf("list", ref, target), () => ({
      apiVersion: formatGroupVersion(ref),
      kind: `${ref.kind}List`,
      metadata: { resourceVersion: this.#store.version },
      items: [...this.#store.collection(ref).values()].filter(matches).map(deepClone),
    })) as KubeList<T>;
  }

  async create<T extends object>(ref: ResourceRef, object: T, options: CreateOptions = {}): Promise<T> {
    const sent = object as Unstructured;
    const name = options.name ?? sent.metadata?.name ?? "";
    const namespace = options.namespace ?? sent.metadata?.namespace;
    const { subresource } = options;
    return this.#perform<unknown>(actionOf("create", ref, { namespace, name, subresource }, sent), () => {
      if (subresource === undefined) return this.#store.create(ref, sent, namespace);
      const stored = this.#store.find(ref, { namespace, name });
      if (subresource === "eviction") return this.#store.remove(ref, stored, sent["deleteOptions"] ?? {});
      if (subresource !== "binding") return deepClone(sent);
      const target = sent["target"] as { name: string };
      this.#store.write(ref, { ...deepClone(stored), spec: { ...(stored["spec"] as object), nodeName: target.name } });
      return success;
    }) as T;
  }

  async update<T extends object>(ref: ResourceRef, object: T, options: UpdateOptions = {}): Promise<T> {
    const sent = object as Unstructured;
    const name = options.name ?? sent.metadata.name ?? "";
    const { subresource = "" } = options;
    const action = actionOf("update", ref, { namespace: sent.metadata.namespace, name, subresource }, sent);
    return this.#perform<unknown>(action, () => this.#store.replace(ref, sent, name, subresource)) as T;
  }

  async patch<T extends object>(ref: ResourceRef, target: NamedTarget, patch: Patch): Promise<T> {
    return this.#perform<unknown>(actionOf("patch", ref, target, patch.body), () => {
      const changed = patched(ref, this.#store.find(ref, target), patch);
      return this.#store.replace(ref, changed, target.name, target.subresource ?? "");
    }) as T;
  }

  async delete(ref: ResourceRef, target: NamedTarget, options: DeleteOptions & CallOptions = {}): Promise<void> {
    const { signal: _, ...deleteOptions } = options;
    const answer = () => this.#store.remove(ref, this.#store.find(ref, target), deleteOptions);
    const answered: unknown = this.#perform(actionOf("delete", ref, target, deleteOptions), answer);
    if (answered instanceof Promise) await answered; // of a reaction
  }

  async deleteCollection(
    ref: ResourceRef,
    target: ListTarget,
    options: Parameters<Client["deleteCollection"]>[2] = {},
  ): Promise<void> {
    const { signal: _, labelSelector, fieldSelector, ...deleteOptions } = options;
    const matches = matching(ref, target.namespace, { labelSelector, fieldSelector });
    const answered: unknown = this.#perform(actionOf("deletecollection", ref, target, deleteOptions), () => {
      const chosen = [...this.#store.collection(ref).values()].filter(matches);
      for (const stored of chosen) this.#store.remove(ref, stored, deleteOptions);
    });
    if (answered instanceof Promise) await answered; // of a reaction
  }

  async *watch<T extends object>(ref: ResourceRef, target: ListTarget, options: WatchOptions): AsyncIterable<ObjectEvent<T>> {
    options.signal.throwIfAborted();
    this.#perform(actionOf("watch", ref, target), () => undefined);
    yield* this.#store.watch(ref, matching(ref, target.namespace, options), options) as AsyncIterable<ObjectEvent<T>>;
  }

  async raw(_method: string, path: string): Promise<RawResponse> {
    const answer = this.rawAnswers.get(path.split("?")[0] as string);
    const status = answer === undefined ? 404 : 200;
    return { status, headers: {}, body: Buffer.from(stringifyWire(answer ?? {})) };
  }

  close(): void {}

  get writes(): readonly Action[] {
    return this.actions.filter(({ verb }) => verb !== "get" && verb !== "list" && verb !== "watch");
  }

  clearActions(): void {
    this.actions.length = 0;
  }

  put<T extends KubeObject>(ref: ResourceRef, ...objects: T[]): void {
    for (const object of objects) this.#store.put(ref, object);
  }

  remove(ref: ResourceRef, key: ObjectKey): void {
    const stored = this.#store.collection(ref).get(key);
    if (stored !== undefined) this.#store.erase(ref, stored);
  }

  object<T extends KubeObject = Unstructured>(ref: ResourceRef, key: ObjectKey): T | undefined {
    return deepClone(this.#store.collection(ref).get(key)) as T | undefined;
  }

  objects<T extends KubeObject = Unstructured>(ref: ResourceRef, namespace?: string): T[] {
    const chosen = [...this.#store.collection(ref).values()].filter((o) => !namespace || o.metadata.namespace === namespace);
    return chosen.map(deepClone) as unknown[] as T[];
  }

  react(verb: Action["verb"] | "*", resource: string, reaction: Reaction): void {
    this.#reactions.push({ verb, resource, reaction });
  }

  compact(): void {
    this.#store.compact();
  }

  endWatches(): void {
    this.#store.endWatches();
  }

  /** Records a request; returns the result of the last reaction that responds, else of `answer`. */
  #perform<T>(action: Action, answer: () => T): T {
    this.actions.push(action);
    for (const { verb, resource, reaction } of this.#reactions.toReversed()) {
      if ((verb !== "*" && verb !== action.verb) || (resource !== "*" && resource !== action.resource)) continue;
      const reacted = reaction(action);
      if (reacted !== undefined) return reacted as T;
    }
    return answer();
  }
}

const actionOf = (verb: Action["verb"], ref: ResourceRef, target: Partial<NamedTarget>, sent?: unknown): Action => ({
  verb,
  resource: ref.resource,
  namespace: target.namespace ?? "",
  name: target.name ?? "",
  subresource: target.subresource ?? "",
  ...(sent === undefined ? {} : { sent: deepClone(sent) }),
});

function matching(
  ref: ResourceRef,
  namespace: string | undefined,
  selectors: Pick<ListOptions, "labelSelector" | "fieldSelector">,
): (object: Unstructured) => boolean {
  const labels = selectors.labelSelector ? LabelSelector.parse(selectors.labelSelector) : undefined;
  const fields = selectors.fieldSelector ? FieldSelector.parse(selectors.fieldSelector) : undefined;
  return (object) =>
    (!ref.namespaced || !namespace || object.metadata.namespace === namespace) &&
    (labels === undefined || labels.matches(object.metadata.labels)) &&
    (fields === undefined ||
      fields.terms.every(({ field, op, value }) => (fieldValue(object, field) === value) === (op === "=")));
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
    metadata: { name, namespace, uid, resourceVersion },
    spec: { replicas },
    status: {
      replicas: (stored["status"] as { replicas?: number } | undefined)?.replicas ?? 0,
      selector: String(LabelSelector.fromObject(selector)),
    },
  };
}

function patched(ref: ResourceRef, stored: Unstructured, { type, body }: Patch): Unstructured {
  const copy = deepClone(stored);
  if (type === "json") return applyJsonPatch(copy, Buffer.from(stringifyWire(body))) as Unstructured;
  const descriptor = type === "strategic" ? scheme.kind(ref) : undefined;
  if (descriptor !== undefined) return applyStrategicMerge(copy, body, descriptor) as Unstructured;
  return applyMergePatch(copy, body) as Unstructured;
}

/** A field by path, e.g. `status.phase`, as a string; `""` when it is absent. */
function fieldValue(object: Unstructured, path: string): string {
  let value: unknown = object;
  for (const part of path.split("."))
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[part] : undefined;
  return value === undefined || value === null ? "" : String(value);
}

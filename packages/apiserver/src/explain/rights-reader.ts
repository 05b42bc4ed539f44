/** Reads objects for one explanation, with the permissions of the user and within limits. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Authorizer } from "../authorization/authorizer.ts";
import type { ServedResource, ServedResources } from "../handlers/served-resources.ts";
import type { RegistryStore } from "../registry/generic/resource.ts";
import type { UserInfo } from "../request/context.ts";
import type { EventReader } from "./explainer.ts";
import { type Look, timeOfEvent } from "./rule.ts";

/** Limits of one explanation. Objects beyond a limit are treated as hidden, so that no cause is inferred from their absence. */
const mostReads = 400;
const mostObjectsOfList = 500;
const mostEvents = 2_000;

interface RightsReaderOptions {
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
  readonly user: UserInfo;
  readonly turns: Turns;
  readonly signal: AbortSignal;
  readonly now: number;
}

/** Caches decisions about permissions and the events of namespaces for the duration of one explanation. */
export class RightsReader implements EventReader {
  readonly now: number;
  readonly #options: RightsReaderOptions;
  readonly #allowed = new Map<string, Promise<boolean>>();
  readonly #events = new Map<string, Promise<readonly Event[]>>();
  #reads = 0;

  constructor(options: RightsReaderOptions) {
    this.#options = options;
    this.now = options.now;
  }

  async get<T extends KubeObject>(resource: string, group: string, namespace: string, name: string): Promise<Look<T>> {
    const served = this.#served(resource, group);
    if (served?.store === undefined) return "missing";
    if (!(await this.may("get", served, namespace, name)) || !(await this.#mayRead())) return "hidden";
    try {
      // The explained object is read consistently; those that it refers to, from the cache.
      const minimumRevision = this.#reads === 1 ? undefined : 0;
      const entry = await served.store.get(namespace, name, { minimumRevision, signal: this.#options.signal });
      return entry.object<T>();
    } catch (err) {
      if (err instanceof StatusError && err.code === 404) return "missing";
      throw err;
    }
  }

  async list<T extends KubeObject>(
    resource: string,
    group: string,
    namespace: string,
    selector?: LabelSelector,
  ): Promise<readonly T[] | undefined> {
    const served = this.#served(resource, group);
    if (served?.store === undefined) return [];
    const inNamespace = served.definition.namespaced ? namespace : "";
    if (!(await this.may("list", served, inNamespace, "")) || !(await this.#mayRead())) return undefined;
    return this.#objects<T>(served.store, inNamespace, selector, mostObjectsOfList);
  }

  /** Events about an object, the latest first; none when the user may not list events. */
  async events(ref: ObjectRef): Promise<readonly Event[]> {
    // Events about cluster-scoped objects are in the namespace `default`.
    const namespace = ref.namespace || "default";
    const all = await this.#events.getOrInsertComputed(namespace, () => this.#eventsOf(namespace));
    return all
      .filter(
        ({ involvedObject: { kind, name, uid } }) =>
          // Events from kubelets have the node's name as uid of the node.
          kind === ref.kind && name === ref.name && (!uid || uid === ref.uid || ref.kind === "Node"),
      )
      .toSorted((a, b) => ((timeOfEvent(a) ?? "") < (timeOfEvent(b) ?? "") ? 1 : -1));
  }

  resourceOf(apiVersion: string, kind: string): { resource: string; group: string } | undefined {
    const group = parseGroupVersion(apiVersion)?.group;
    const served = this.#options.resources
      .all()
      .find(({ definition, store }) => store !== undefined && definition.group === group && definition.kind === kind);
    return served && { resource: served.definition.resource, group: served.definition.group };
  }

  namespacedResources(): readonly { resource: string; group: string }[] {
    const seen = new Set<RegistryStore>();
    const found: { resource: string; group: string }[] = [];
    for (const { definition, store, isHub } of this.#options.resources.all()) {
      if (store === undefined || !definition.namespaced || seen.has(store)) continue;
      // events.k8s.io serves the same objects as the core group.
      if (!isHub && definition.hubGroup !== undefined) continue;
      seen.add(store);
      found.push({ resource: definition.resource, group: definition.group });
    }
    return found;
  }

  refOf(object: KubeObject, resource: string, group: string): ObjectRef {
    const { namespace = "", name = "", uid = "" } = object.metadata;
    const kind = this.#served(resource, group)?.definition.kind ?? object.kind ?? "";
    return { group, resource, kind, namespace, name, uid };
  }

  /** Whether the user may read this object. */
  may(verb: "get" | "list", { definition, version }: ServedResource, namespace: string, name: string): Promise<boolean> {
    const { group, resource, namespaced } = definition;
    const within = namespaced ? namespace : "";
    return this.#allowed.getOrInsertComputed(`${verb} ${resource}.${group} ${within}/${name}`, async () => {
      const decision = await this.#options.authorize({
        user: this.#options.user,
        verb,
        isResourceRequest: true,
        namespace: within,
        group,
        version: version.version,
        resource,
        subresource: "",
        name,
        path: "",
      });
      return decision.decision === "allow";
    });
  }

  /** Whether the user may read all of these. */
  async mayReadAll(refs: readonly ObjectRef[]): Promise<boolean> {
    for (const { resource, group, namespace, name } of refs) {
      const served = this.#served(resource, group);
      if (served === undefined || !(await this.may("get", served, namespace, name))) return false;
    }
    return true;
  }

  async mayReadEvents(namespace: string): Promise<boolean> {
    const served = this.#served("events", "");
    return served !== undefined && this.may("list", served, namespace, "");
  }

  #served(resource: string, group: string): ServedResource | undefined {
    const { resources } = this.#options;
    for (const version of resources.versions(group)) {
      const served = resources.find(group, version, resource);
      if (served?.store !== undefined) return served;
    }
    return undefined;
  }

  async #mayRead(): Promise<boolean> {
    this.#options.signal.throwIfAborted();
    await this.#options.turns.next();
    return ++this.#reads <= mostReads;
  }

  async #eventsOf(namespace: string): Promise<readonly Event[]> {
    const store = this.#served("events", "")?.store;
    if (store === undefined || !(await this.mayReadEvents(namespace))) return [];
    return this.#objects<Event>(store, namespace, undefined, mostEvents);
  }

  async #objects<T extends KubeObject>(
    store: RegistryStore,
    namespace: string,
    labels: LabelSelector | undefined,
    limit: number,
  ): Promise<T[]> {
    const { signal, turns } = this.#options;
    // A list at any revision (0) is answered from memory; storages without a cache read the first page only.
    const { entries } = await store.list(namespace, { ...(labels && { labels }), revision: 0, limit, signal });
    const objects: T[] = [];
    for (const entry of entries.slice(0, limit)) {
      const turn = turns.next();
      if (turn !== undefined) await turn;
      objects.push(entry.object<T>());
    }
    return objects;
  }
}

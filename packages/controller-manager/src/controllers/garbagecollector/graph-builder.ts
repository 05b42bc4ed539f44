import type { DiscoveredResource } from "@coxswain/apimachinery/client/discovery";
import { newSharedInformer, type SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { formatGroupVersion, parseGroupVersion, type ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { LongWork } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ControllerContext } from "../../controller-context.ts";
import { type Effects, OwnerGraph } from "./graph.ts";

/**
 * Watches the metadata of all deletable resources that the API server serves and maintains the owner graph. It uses the informers of other
 * controllers where they exist, so that their objects are not received, decoded and cached twice.
 * Source: pkg/controller/garbagecollector/graph_builder.go
 */
export interface GraphBuilder {
  readonly graph: OwnerGraph;
  /**
   * Repeats discovery, then starts and stops watches.
   * @throws when discovery fails completely
   */
  refresh(signal: AbortSignal): Promise<void>;
  /** True when all informers have synced; before that, an object may have unknown dependents. */
  readonly synced: boolean;
  waitForSync(signal: AbortSignal): Promise<void>;
  /** The resource of a kind; undefined when it was not served at the last refresh. */
  resourceOf(apiVersion: string, kind: string): ResourceRef | undefined;
}

interface Monitor {
  readonly informer: SharedInformer<KubeObject>;
  readonly changes: Changes;
  readonly removeHandler: () => void;
  /** Ends an informer that only the graph uses. */
  readonly stop: AbortController;
}

/** Events have no owners in practice and are too numerous. */
const ignored = new Set(["/events", "events.k8s.io/events"]);

/** @param onEffects called synchronously after each change of the graph, with the objects that it affects */
export function newGraphBuilder(ctx: ControllerContext, onEffects: (effects: Effects) => void): GraphBuilder {
  const graph = new OwnerGraph();
  const monitors = new Map<string, Monitor>();
  let known = new Map<string, DiscoveredResource>();

  const forget = ({ metadata }: KubeObject): void => onEffects(graph.forget(metadata.uid ?? ""));
  const start = (resource: DiscoveredResource, signal: AbortSignal): void => {
    const stop = new AbortController();
    const { clock, log, informers, turns } = ctx;
    const isShared = informers.hasAll(resource);
    const informer = isShared
      ? informers.for<KubeObject>(resource)
      : newSharedInformer<KubeObject>({
          client: informers.client,
          clock,
          log,
          turns: turns.ahead,
          ref: resource,
          metadataOnly: true,
          transform: ownershipMetadata,
        });
    const apiVersion = formatGroupVersion(resource);
    const observe = ({ metadata }: KubeObject): void => {
      const { namespace = "", name = "", uid = "" } = metadata;
      onEffects(graph.observe({ apiVersion, kind: resource.kind, namespace, name, uid }, metadata));
    };
    const changes = new Changes();
    const removeHandler = informer.addHandler({
      added: (object) => changes.apply(() => observe(object)),
      updated: (_old, now) => changes.apply(() => observe(now)),
      deleted: (object) => changes.apply(() => forget(object)),
    });
    changes.startWith(turns);
    monitors.set(idOf(resource), { informer, changes, removeHandler, stop });
    // A shared informer runs already.
    if (!isShared) void informer.run(AbortSignal.any([signal, stop.signal]));
  };
  return {
    graph,
    async refresh(signal) {
      const discovered = await ctx.discovery.resources(signal);
      for (const { groupVersion, error } of discovered.failed) {
        ctx.log.warn("failed to discover some groups", { groupVersion, err: String(error) });
      }
      const failedGroups = new Set(discovered.failed.map(({ groupVersion }) => parseGroupVersion(groupVersion)?.group));
      // Resources of a group whose discovery failed are kept.
      const kept = [...known.values()].filter(({ group }) => failedGroups.has(group));
      known = new Map([...kept, ...discovered.resources].map((resource) => [kindId(resource.group, resource.kind), resource]));
      const wanted = new Map(
        [...kept, ...discovered.resources].filter(isMonitored).map((resource) => [idOf(resource), resource]),
      );
      // Before the others start: the same objects may be served in another version now.
      for (const [id, monitor] of [...monitors]) {
        if (wanted.has(id)) continue;
        monitors.delete(id);
        await ctx.turns.run(endingOf(monitor, forget));
      }
      for (const [id, resource] of wanted) if (!monitors.has(id)) start(resource, signal);
    },
    get synced() {
      return [...monitors.values()].every(({ informer, changes }) => informer.synced && changes.areApplied);
    },
    async waitForSync(signal) {
      const waitForInformer = async ({ informer, changes }: Monitor): Promise<void> => {
        await informer.waitForSync(signal).catch((err) => {
          if (signal.aborted) throw err; // otherwise the watch was stopped because its resource is no longer served
        });
        await changes.applied;
      };
      await Promise.all([...monitors.values()].map(waitForInformer));
    },
    resourceOf: (apiVersion, kind) => known.get(kindId(parseGroupVersion(apiVersion)?.group ?? "", kind)),
  };
}

function* endingOf({ informer, changes, removeHandler, stop }: Monitor, forget: (object: KubeObject) => void): Steps<void> {
  removeHandler();
  changes.discard();
  stop.abort(new Error("the resource is no longer served"));
  for (const object of informer.lister.list()) {
    forget(object);
    yield;
  }
}

/**
 * Changes of one resource's objects. Those of the objects that a shared informer has when the graph begins to follow it are applied in
 * turns, later ones after them: each may name thousands of owners.
 */
class Changes {
  #waiting: (() => void)[] | undefined = [];
  applied: Promise<void> | void = undefined;

  apply(change: () => void): void {
    if (this.#waiting === undefined) change();
    else this.#waiting.push(change);
  }

  startWith(turns: LongWork): void {
    this.applied = turns.run(this.#applyWaiting());
  }

  get areApplied(): boolean {
    return this.#waiting === undefined;
  }

  discard(): void {
    this.#waiting = undefined;
  }

  *#applyWaiting(): Steps<void> {
    for (let at = 0; ; at++) {
      const change = this.#waiting?.[at];
      if (change === undefined) break;
      change();
      yield;
    }
    this.#waiting = undefined;
  }
}

function isMonitored({ group, resource, verbs }: DiscoveredResource): boolean {
  return !ignored.has(`${group}/${resource}`) && ["delete", "list", "watch"].every((verb) => verbs.includes(verb));
}

function idOf({ group, version, resource }: ResourceRef): string {
  return `${group}/${version}/${resource}`;
}

function kindId(group: string, kind: string): string {
  return `${group}/${kind}`;
}

/** Drops all other metadata, because the cache holds every object of the cluster. */
function ownershipMetadata({ metadata }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata;
  return {
    metadata: {
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ...(deletionTimestamp ? { deletionTimestamp } : {}),
    },
  };
}

import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { PodRules } from "@coxswain/testing/nodes/fake-node";
import type { FaultKind } from "../faults/strikes.ts";
import { faultKinds } from "../faults/strikes.ts";
import type { Stored, View } from "../invariants/view.ts";

/** The actions of a user and the required outcome. */
export interface Plan {
  readonly name: string;
  /** Names of the controllers to run. */
  readonly controllers: readonly string[];
  readonly faults: readonly FaultKind[];
  /** API versions besides those that every cluster has. */
  readonly apis?: readonly string[];
  /** The store may be restored to an earlier revision: invariants between successive states are not checked. */
  readonly losesHistory?: boolean;
  /** Behaviour of Pods; `random` is the simulation's generator. */
  rules(random: () => number): PodRules;
  /** Time until the outcome must be reached after the last fault, in virtual ms; shorter than timeouts of last resort. */
  readonly restMs?: number;
  /** Runs before the daemons start, without faults. */
  before?(user: User): Promise<void>;
  /** Runs while faults are injected. */
  act(user: User): Promise<void>;
  /** Additional flags of the controller managers; called before the simulation starts. */
  managerFlags?(): Promise<readonly string[]>;
  /** Responses of servers that are not simulated. */
  answers?(path: string, view: View): object | undefined;
  /** Number of controller managers; default: one or two, at random. */
  readonly managers?: number;
  /** True for plans that take longer than others; they are chosen less often. */
  readonly isLong?: boolean;
  /** Called when an object was removed from the store. @returns why this is wrong */
  deleted?(object: Stored, view: View): string | undefined;
  /** Safety invariant, checked after each change of a Pod, quota, VolumeAttachment or EndpointSlice. @param memory state of this simulation @returns the violation */
  always?(view: View, memory: Map<string, unknown>): string | undefined;
  /** Checks the final state. @returns what is missing */
  missing(view: View): string | undefined;
}

/** Default: the namespace of the plans. */
interface Target {
  readonly namespace: string;
  readonly name: string;
}

export interface User {
  /** True in a small cluster, where the user does less. */
  readonly isSmall: boolean;
  readonly random: () => number;
  pause(ms: number): Promise<void>;
  create(ref: ResourceRef, object: object): Promise<void>;
  /** Read, modify, write, repeated until it succeeds. */
  change(
    ref: ResourceRef,
    target: string | Target,
    change: (object: Stored) => void,
    subresource?: "status" | "approval",
  ): Promise<void>;
  /** Controllers may change the object's spec from now on: it is removed from `requested`. */
  expectChanges(ref: ResourceRef, name: string): void;
  /** @param uid of the only object of this name that is removed: a repeated request could otherwise remove its successor */
  remove(ref: ResourceRef, name: string, propagationPolicy?: "Foreground" | "Background", uid?: string): Promise<void>;
  /** @returns undefined when there is no such object */
  uidOf(ref: ResourceRef, name: string): Promise<string | undefined>;
  readonly client: Client;
  /** Last acknowledged specs, by resource and name, which no controller may have changed. */
  readonly requested: ReadonlyMap<string, unknown>;
}

export const namespace = "default";
/** Duration of pauses and fault intervals in small clusters, relative to large ones. */
export const smallTime = 0.6;
export const allFaults: readonly FaultKind[] = faultKinds.filter((kind) => kind !== "restore");

/** A user that repeats each request until the server has answered it. @param isSmall shortens its pauses */
export function newUser(client: Client, random: () => number, pause: (ms: number) => Promise<void>, isSmall: boolean): User {
  const requested = new Map<string, unknown>();
  const note = (ref: ResourceRef, { metadata, spec }: Stored): void => {
    if (ref.group === "apps") requested.set(`${ref.resource}/${metadata.namespace}/${metadata.name}`, spec);
  };
  /** Repeats a request until there is a response. */
  const persistently = async (act: () => Promise<unknown>, isDone: (err: unknown) => boolean): Promise<void> => {
    for (;;) {
      try {
        await act();
        return;
      } catch (err) {
        if (isDone(err)) return;
        await pause(300);
      }
    }
  };
  return {
    isSmall,
    random,
    // Small clusters do less in less time.
    pause: (ms) => pause(isSmall ? smallTime * ms : ms),
    client,
    requested,
    create: (ref, object) =>
      persistently(
        async () => note(ref, await client.create<Stored>(ref, object as never)), // cast: plans create objects of the resource they name
        (err) => (err as { status?: { reason?: string } }).status?.reason === "AlreadyExists", // cast: read from any error
      ),
    change: (ref, target, change, subresource) =>
      persistently(
        async () => {
          const object = await client.get<Stored>(ref, typeof target === "string" ? { namespace, name: target } : target);
          change(object);
          note(ref, await client.update<Stored>(ref, object, subresource && { subresource }));
        },
        (err) => isNotFound(err) && !isConflict(err),
      ),
    expectChanges: (ref, name) => void requested.delete(`${ref.resource}/${namespace}/${name}`),
    remove: (ref, name, propagationPolicy = "Background", uid = undefined) => {
      requested.delete(`${ref.resource}/${namespace}/${name}`);
      const options = { propagationPolicy, ...(uid !== undefined && { preconditions: { uid } }) };
      return persistently(
        () => client.delete(ref, { namespace, name }, options),
        (err) => isNotFound(err) || (uid !== undefined && isConflict(err)),
      );
    },
    async uidOf(ref, name) {
      let uid: string | undefined;
      await persistently(async () => {
        uid = (await client.get<Stored>(ref, { namespace, name })).metadata.uid;
      }, isNotFound);
      return uid;
    },
  };
}

/** Pods that start within 1.55 s, stop within 1.5 s, and never end by themselves. */
export const lasting = (random: () => number): PodRules => ({
  startMs: () => 50 + Math.floor(random() * 1_500),
  stopMs: () => Math.floor(random() * 1_500),
  ends: () => undefined,
});

export const podTemplate = (labels: Record<string, string>, image = "app:1", restartPolicy = "Always"): object => ({
  metadata: { labels },
  spec: { restartPolicy, containers: [{ name: "app", image, resources: { requests: { cpu: "100m" } } }] },
});

import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { PodRules } from "@coxswain/testing/nodes/fake-node";
import type { FaultKind } from "../faults/faults.ts";
import { faultKinds } from "../faults/faults.ts";
import type { Stored, View } from "../invariants/view.ts";

/** What a user does, and what has to come of it. */
export interface Plan {
  readonly name: string;
  /** Names of the controllers that run. */
  readonly controllers: readonly string[];
  readonly faults: readonly FaultKind[];
  /** API versions besides those that every cluster has. */
  readonly apis?: readonly string[];
  /** Pods must be placed by the scheduler, in small clusters, too. */
  readonly needsScheduler?: boolean;
  /** The store may go back: what holds from one moment to the next is not looked at. */
  readonly losesHistory?: boolean;
  /** Of pods; `random` belongs to the world. */
  rules(random: () => number): PodRules;
  /** How long it may take until all has come right, in virtual ms; less than what timeouts of last resort would repair. */
  readonly restMs?: number;
  /** Runs while things go wrong. */
  act(user: User): Promise<void>;
  /** More flags of the controller managers; made before the life begins. */
  managerFlags?(): Promise<readonly string[]>;
  /** Answers of servers that are not simulated. */
  answers?(path: string, view: View): object | undefined;
  /** How many controller managers there are, when not one or two. */
  readonly managers?: number;
  /** One that takes longer than others comes less often. */
  readonly isLong?: boolean;
  /** Called when an object is gone from the store. @returns why that must not be */
  deleted?(object: Stored, view: View): string | undefined;
  /** Looked at after each change of a pod, a quota or an attachment of a volume. @param memory of this life @returns what must never be */
  always?(view: View, memory: Map<string, unknown>): string | undefined;
  /** Of the end. @returns what is still missing */
  missing(view: View): string | undefined;
}

/** By default in the namespace of the plans. */
interface Target {
  readonly namespace: string;
  readonly name: string;
}

export interface User {
  /** In a small cluster, where it does less. */
  readonly isSmall: boolean;
  readonly random: () => number;
  pause(ms: number): Promise<void>;
  create(ref: ResourceRef, object: object): Promise<void>;
  /** Read, change, write, as often as it takes. */
  change(ref: ResourceRef, target: string | Target, change: (object: Stored) => void, subresource?: "status"): Promise<void>;
  /** Controllers may change it from now on. */
  letGo(ref: ResourceRef, name: string): void;
  remove(ref: ResourceRef, name: string, propagationPolicy?: "Foreground" | "Background"): Promise<void>;
  readonly client: Client;
  /** What was requested last, by resource and name: no controller may have changed it. */
  readonly requested: ReadonlyMap<string, unknown>;
}

export const namespace = "default";
/** How long things take in small clusters, as a share of that. */
export const smallTime = 0.6;
export const allFaults: readonly FaultKind[] = faultKinds.filter((kind) => kind !== "restore");

export function newUser(client: Client, random: () => number, pause: (ms: number) => Promise<void>, isSmall: boolean): User {
  const requested = new Map<string, unknown>();
  const note = (ref: ResourceRef, { metadata, spec }: Stored): void => {
    if (ref.group === "apps") requested.set(`${ref.resource}/${metadata.namespace}/${metadata.name}`, spec);
  };
  /** A user who gets no answer repeats the request. */
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
    // Less happens in small clusters, in less time.
    pause: (ms) => pause(isSmall ? smallTime * ms : ms),
    client,
    requested,
    create: (ref, object) =>
      persistently(
        async () => note(ref, await client.create<Stored>(ref, object as never)),
        (err) => (err as { status?: { reason?: string } }).status?.reason === "AlreadyExists",
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
    letGo: (ref, name) => void requested.delete(`${ref.resource}/${namespace}/${name}`),
    remove: (ref, name, propagationPolicy = "Background") => {
      requested.delete(`${ref.resource}/${namespace}/${name}`);
      return persistently(() => client.delete(ref, { namespace, name }, { propagationPolicy }), isNotFound);
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

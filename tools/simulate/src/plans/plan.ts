import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
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
  /** The store may go back: what holds from one moment to the next is not looked at. */
  readonly losesHistory?: boolean;
  /** Of pods; `random` belongs to the world. */
  rules(random: () => number): PodRules;
  /** How long it may take until all has come right, in virtual ms; less than what timeouts of last resort would repair. */
  readonly restMs?: number;
  /** Runs while things go wrong. */
  act(user: User): Promise<void>;
  /** Looked at after each change of a pod or a quota. @param memory of this life @returns what must never be */
  always?(view: View, memory: Map<string, unknown>): string | undefined;
  /** Of the end. @returns what is still missing */
  missing(view: View): string | undefined;
}

export interface User {
  readonly random: () => number;
  pause(ms: number): Promise<void>;
  create(ref: ResourceRef, object: object): Promise<void>;
  /** Read, change, write, as often as it takes. */
  change(ref: ResourceRef, name: string, change: (object: Stored) => void): Promise<void>;
  remove(ref: ResourceRef, name: string, propagationPolicy?: "Foreground" | "Background"): Promise<void>;
  readonly client: Client;
  /** What was asked for last, by resource and name: no controller may have changed it. */
  readonly asked: ReadonlyMap<string, unknown>;
}

export const namespace = "default";
export const allFaults: readonly FaultKind[] = faultKinds.filter((kind) => kind !== "restore");

export function newUser(client: Client, random: () => number, pause: (ms: number) => Promise<void>): User {
  const asked = new Map<string, unknown>();
  const note = (ref: ResourceRef, { metadata, spec }: Stored): void => {
    if (ref.group === "apps") asked.set(`${ref.resource}/${metadata.namespace}/${metadata.name}`, spec);
  };
  /** A user who gets no answer asks again. */
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
    random,
    pause,
    client,
    asked,
    create: (ref, object) =>
      persistently(
        async () => note(ref, await client.create<Stored>(ref, object as never)),
        (err) => (err as { status?: { reason?: string } }).status?.reason === "AlreadyExists",
      ),
    change: (ref, name, change) =>
      persistently(
        async () => {
          const object = await client.get<Stored>(ref, { namespace, name });
          change(object);
          note(ref, await client.update<Stored>(ref, object));
        },
        (err) => isNotFound(err) && !isConflict(err),
      ),
    remove: (ref, name, propagationPolicy = "Background") => {
      asked.delete(`${ref.resource}/${namespace}/${name}`);
      return persistently(() => client.delete(ref, { namespace, name }, { propagationPolicy }), isNotFound);
    },
  };
}

export const lasting = (random: () => number): PodRules => ({
  startMs: () => 50 + Math.floor(random() * 1_500),
  stopMs: () => Math.floor(random() * 1_500),
  ends: () => undefined,
});

export const podTemplate = (labels: Record<string, string>, image = "app:1", restartPolicy = "Always"): object => ({
  metadata: { labels },
  spec: { restartPolicy, containers: [{ name: "app", image, resources: { requests: { cpu: "100m" } } }] },
});

import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { repeat } from "./repeat.ts";

/** Simulated kubelet behaviour: none, Pods become ready, or Pods succeed. */
type PodFate = "none" | "ready" | "succeeded";

/** Watches all Pods of a cluster and writes the status that a kubelet would report. */
export class PodView {
  fate: PodFate = "none";
  readonly #client: Client;
  readonly #ended = new AbortController();
  readonly #pods = new Map<string, Pod>();
  /** UIDs of Pods whose status was written. */
  readonly #done = new Set<string>();
  #watch: Promise<void> | undefined;
  #failure: unknown;
  /** Gives each Pod a different IP address. */
  #sequence = 1;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Lists the Pods and follows their changes; a failure of the watch is thrown by `until`. */
  async start(): Promise<void> {
    const { metadata } = await this.#client.list<Pod>(pods);
    this.#watch = this.#follow(metadata.resourceVersion ?? "").catch((err) => {
      if (!this.#ended.signal.aborted) this.#failure = err;
    });
  }

  async #follow(resourceVersion: string): Promise<void> {
    const { signal } = this.#ended;
    let seen = resourceVersion;
    // The server ends the watch of a slow reader; the next watch resumes at its revision.
    while (!signal.aborted) {
      const events = this.#client.watch<Pod>(pods, {}, { resourceVersion: seen, signal, timeoutSeconds: 36_000 });
      for await (const { type, object } of events) {
        seen = object.metadata.resourceVersion ?? seen;
        this.#take(type, object);
      }
    }
  }

  #take(type: string, object: Pod): void {
    const { uid = "" } = object.metadata;
    if (type === "DELETED") {
      this.#pods.delete(uid);
      this.#done.delete(uid);
    } else if (type === "ADDED" || type === "MODIFIED") {
      this.#pods.set(uid, object);
      if (this.fate !== "none" && !this.#done.has(uid)) void this.#write(object, this.fate);
    }
  }

  async #write({ metadata: { name = "", namespace, uid = "" } }: Pod, fate: PodFate): Promise<void> {
    this.#done.add(uid);
    const body = { status: statusOf(fate, this.#sequence++) };
    try {
      await this.#client.patch(pods, { name, namespace, subresource: "status" }, { type: "strategic", body });
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) this.#failure = err; // deleted or changed in the meantime
    }
  }

  /** Writes this status to all Pods that exist now, as fast as the server takes it from a few clients at a time. */
  async writeAll(fate: PodFate): Promise<void> {
    const all = [...this.#pods.values()];
    await repeat(all.length, async (index) => {
      const pod = all[index];
      if (pod !== undefined) await this.#write(pod, fate);
    });
  }

  all(): Iterable<Pod> {
    return this.#pods.values();
  }

  count(matches: (pod: Pod) => boolean): number {
    let count = 0;
    for (const pod of this.#pods.values()) if (matches(pod)) count++;
    return count;
  }

  /** Resolves when `count` Pods match. @throws the error that ended the watch */
  async until(what: string, count: number, matches: (pod: Pod) => boolean): Promise<void> {
    await waitFor(
      (seen) => {
        if (this.#failure !== undefined) throw this.#failure;
        return seen(this.count(matches)) === count;
      },
      { what, timeoutMs: 600_000, intervalMs: 10 },
    );
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#watch;
  }
}

export function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true;
}

function statusOf(fate: PodFate, sequence: number): object {
  const now = new Date().toISOString();
  const isReady = fate === "ready";
  const podIP = `10.${(sequence >> 16) % 256}.${(sequence >> 8) % 256}.${sequence % 256}`;
  return {
    phase: isReady ? "Running" : "Succeeded",
    conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: now }],
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: now,
  };
}

import type { Client } from "@coxswain/apimachinery/client/client";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { benchPod } from "../daemons/cluster-objects.ts";
import type { ScaleSizes } from "./options.ts";

/** Namespace of the Pod with this number. Numbers, which are also the Pods' names, are not reused. */
export const namespaceOf = (index: number, { namespaces }: Pick<ScaleSizes, "namespaces">): string =>
  `scale-${index % namespaces}`;
const podName = (index: number): string => `pod-${index}`;

/** A Pod of `podBytes` bytes in JSON. @param nodeName undefined: the scheduler chooses the node */
export function keptPod(index: number, { podBytes }: Pick<ScaleSizes, "podBytes">, nodeName?: string): Pod {
  const pod = benchPod({
    name: podName(index),
    labels: { pod: String(index) },
    spec: nodeName === undefined ? {} : { nodeName },
  });
  const padding = Math.max(0, podBytes - JSON.stringify(pod).length);
  return { ...pod, metadata: { ...pod.metadata, annotations: { "example.com/padding": "x".repeat(padding) } } };
}

/** Replaces the oldest Pods by new, unscheduled ones, and records when a watch shows them bound. */
export class Churn {
  readonly #client: Client;
  readonly #sizes: ScaleSizes;
  #oldest = 0;
  #next: number;
  readonly #createdAt = new Map<string, number>();
  /** Time from the create request to the watch event with a node name, in ms. */
  readonly scheduleMs: number[] = [];

  constructor(client: Client, sizes: ScaleSizes) {
    this.#client = client;
    this.#sizes = sizes;
    this.#next = sizes.pods;
  }

  /** Creates a new Pod and deletes the oldest one at the same time. */
  async replaceOne(): Promise<void> {
    const [gone, index] = [this.#oldest++, this.#next++];
    this.#createdAt.set(podName(index), performance.now());
    await Promise.all([
      this.#client.create(pods, keptPod(index, this.#sizes), {
        namespace: namespaceOf(index, this.#sizes),
        readsMetadataOnly: true,
      }),
      this.#client.delete(pods, { namespace: namespaceOf(gone, this.#sizes), name: podName(gone) }),
    ]);
  }

  /** Number of Pods whose replacement has begun. */
  get begun(): number {
    return this.#oldest;
  }

  get unbound(): number {
    return this.#createdAt.size;
  }

  /** Watches bound pods until `signal` is aborted. */
  async follow(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const options = { resourceVersion, fieldSelector: "spec.nodeName!=", signal, timeoutSeconds: 100_000 };
    for await (const { type, object } of this.#client.watch<Pod>(pods, {}, options)) {
      if (type === "ADDED") this.#bound(object.metadata.name ?? "");
    }
  }

  #bound(name: string): void {
    const at = this.#createdAt.get(name);
    if (at === undefined) return;
    this.#createdAt.delete(name);
    this.scheduleMs.push(performance.now() - at);
  }

  /** A Pod that will not be replaced soon. */
  get middle(): { readonly namespace: string; readonly name: string } {
    const index = Math.floor((this.#oldest + this.#next) / 2);
    return { namespace: namespaceOf(index, this.#sizes), name: podName(index) };
  }
}

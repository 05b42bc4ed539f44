import type { Client } from "@coxswain/apimachinery/client/client";
import type { Impersonation } from "@coxswain/apimachinery/client/config";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { applyObjects, type Manifests, objectsOf } from "./cluster/apply.ts";
import { ClusterParts } from "./cluster/cluster.ts";
import type { ClusterOptions } from "./cluster/options.ts";
import type { SocketOptions } from "./cluster/socket.ts";
import type { SettleOptions, WaitOptions } from "./cluster/wait-options.ts";
import { Waiting } from "./cluster/waiting.ts";
import type { Faults } from "./faults/faults.ts";
import type { ObjectTarget } from "./history/target.ts";
import type { FakeNodes } from "./nodes/fake-nodes.ts";
import { type Duration, durationMs } from "./time/duration.ts";
import type { WebListener } from "./tls/in-process-tls.ts";

/** A Kubernetes cluster in this process. */
export interface Cluster extends AsyncDisposable {
  /** As administrator, without rate limits. */
  readonly client: Client;
  /** A client of another user. @param userAgent names the program in histories */
  clientFor(user: Partial<Impersonation> & { readonly userAgent?: string }): Client;
  /** Opens a port, unless it has one. @throws Error when it is taken */
  listen(options?: SocketOptions): Promise<{ readonly url: string; readonly ca: string }>;
  /** For programs and libraries that need an address; opens a port, unless there is one. JSON, which is YAML. */
  kubeconfig(): Promise<string>;
  /**
   * Serves HTTPS in this process, without a port, at a host that the API server can reach: webhooks of admission and conversion.
   * @param host a name that need not exist: `hook.test`
   * @returns for `clientConfig`: the URL, to which a path may be added, and the bundle
   */
  serve(host: string, listener: WebListener): Promise<{ readonly url: string; readonly caBundle: string }>;
  /** Milliseconds since the epoch, by the cluster's clock. */
  now(): number;
  /** Waits in the cluster's time: programs that a test runs follow it by this. @throws the signal's reason; never resolves after `stop` */
  sleep(time: Duration, signal?: AbortSignal): Promise<void>;
  /** Moves virtual time on, through all that happens meanwhile. @throws Error in real time */
  advance(by: Duration): Promise<void>;
  /** Waits until nothing more is written; virtual time moves on meanwhile. @throws Error that says what keeps the cluster busy */
  settle(options?: SettleOptions): Promise<void>;
  /** Waits until the condition is truthy. @returns its value @throws what the condition throws; Error with its last value */
  waitFor<T>(condition: () => T | Promise<T>, options?: WaitOptions): Promise<NonNullable<T>>;
  /** Waits until an object is as wanted. @returns it @throws Error with the object's history */
  eventually<T extends object = Unstructured>(
    ref: ResourceRef,
    target: ObjectTarget,
    isAsWanted: (object: T) => boolean,
    options?: WaitOptions,
  ): Promise<T>;
  /** Waits until an object is gone. @throws Error with the object's history */
  eventuallyGone(ref: ResourceRef, target: ObjectTarget, options?: WaitOptions): Promise<void>;
  /** What happened to an object: writes and by whom, events, and what the server says is wrong with it. */
  story(ref: ResourceRef, target: ObjectTarget): Promise<string>;
  /**
   * Applies YAML documents or objects, server-side; definitions are established before their objects are applied.
   * @param options.namespace of objects without one; default `default`
   */
  apply(manifests: Manifests, options?: { readonly namespace?: string; readonly fieldManager?: string }): Promise<Unstructured[]>;
  readonly faults: Faults;
  /** @throws Error when the cluster has none */
  readonly nodes: FakeNodes;
  /**
   * A copy with separate servers: what happens in one is not seen in the other. Parts that are not given are those of this cluster.
   * @throws Error with a real etcd
   */
  fork(options?: Omit<ClusterOptions, "etcd" | "etcdPrefix" | "clock">): Promise<Cluster>;
  /** Ends all of it; may be called again. */
  stop(): Promise<void>;
}

/** @throws Error for options that cannot be, and when a part does not start */
export async function createCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const parts = new ClusterParts(options);
  await parts.start();
  return new RunningCluster(parts);
}

class RunningCluster implements Cluster {
  readonly client: Client;
  readonly #parts: ClusterParts;
  readonly #waiting: Waiting;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    this.client = parts.testClient({});
    this.#waiting = new Waiting(parts, parts.client("admin", { userAgent: "assertions" }));
  }

  async sleep(time: Duration, signal?: AbortSignal): Promise<void> {
    await this.#parts.clock.sleep(durationMs(time), signal);
  }

  advance(by: Duration): Promise<void> {
    return this.#waiting.advance(by);
  }

  settle(options?: SettleOptions): Promise<void> {
    return this.#waiting.settle(options);
  }

  waitFor<T>(condition: () => T | Promise<T>, options?: WaitOptions): Promise<NonNullable<T>> {
    return this.#waiting.waitFor(condition, options);
  }

  eventually<T extends object = Unstructured>(
    ref: ResourceRef,
    target: ObjectTarget,
    isAsWanted: (object: T) => boolean,
    options?: WaitOptions,
  ): Promise<T> {
    return this.#waiting.eventually(ref, target, isAsWanted, options);
  }

  eventuallyGone(ref: ResourceRef, target: ObjectTarget, options?: WaitOptions): Promise<void> {
    return this.#waiting.eventuallyGone(ref, target, options);
  }

  story(ref: ResourceRef, target: ObjectTarget): Promise<string> {
    return this.#waiting.story(ref, target);
  }

  apply(
    manifests: Manifests,
    { namespace = "default", fieldManager = "test" }: { readonly namespace?: string; readonly fieldManager?: string } = {},
  ): Promise<Unstructured[]> {
    const waitFor = (what: string, isSo: () => Promise<boolean>) => this.#waiting.waitFor(isSo, { what });
    return applyObjects(this.client, objectsOf(manifests), { namespace, fieldManager, waitFor });
  }

  get faults(): Faults {
    return this.#parts.faults;
  }

  get nodes(): FakeNodes {
    return this.#parts.nodes;
  }

  clientFor({ userAgent, ...impersonate }: Partial<Impersonation> & { readonly userAgent?: string }): Client {
    const { user } = impersonate;
    return this.#parts.testClient({
      ...(userAgent !== undefined && { userAgent }),
      ...(user !== undefined && { impersonate: { ...impersonate, user } }),
    });
  }

  async listen(options?: SocketOptions): Promise<{ url: string; ca: string }> {
    const { url, ca } = await this.#parts.socket(options);
    return { url, ca };
  }

  serve(host: string, listener: WebListener): Promise<{ url: string; caBundle: string }> {
    return this.#parts.serve(host, listener);
  }

  kubeconfig(): Promise<string> {
    return this.#parts.kubeconfig();
  }

  now(): number {
    return this.#parts.clock.now();
  }

  async fork(options: ClusterOptions = {}): Promise<Cluster> {
    if (this.#parts.etcd === undefined) throw new Error("a cluster over a real etcd cannot be forked: leave out `etcd`");
    // A write that is under way belongs to both or to neither.
    await this.#parts.idle();
    const parts = new ClusterParts({ ...this.#parts.options, ...options }, this.#parts);
    await parts.start("server");
    return new RunningCluster(parts);
  }

  stop(): Promise<void> {
    return this.#parts.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

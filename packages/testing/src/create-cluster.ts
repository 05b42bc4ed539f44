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
  /** Has the administrator's rights and no rate limits. */
  readonly client: Client;
  /** A client for another user. @param userAgent name of the program in object histories */
  clientFor(user: Partial<Impersonation> & { readonly userAgent?: string }): Client;
  /** Opens a port unless there is one already. @throws Error when it is in use */
  listen(options?: SocketOptions): Promise<{ readonly url: string; readonly ca: string }>;
  /** For programs and libraries that need an address; opens a port unless there is one already. In JSON, which is valid YAML. */
  kubeconfig(): Promise<string>;
  /**
   * Starts an HTTPS server in this process, without a port, on a host that the API server can reach: for admission and conversion webhooks.
   * @param host a name that need not exist: `hook.test`
   * @returns values for `clientConfig`: the URL, to which a path may be appended, and the CA bundle
   */
  serve(host: string, listener: WebListener): Promise<{ readonly url: string; readonly caBundle: string }>;
  /** Milliseconds since the epoch on the cluster's clock. */
  now(): number;
  /** Waits on the cluster's clock, for programs run by a test. @throws the signal's reason; never resolves after `stop` */
  sleep(time: Duration, signal?: AbortSignal): Promise<void>;
  /** Advances virtual time and runs everything that becomes due. @throws Error in real time */
  advance(by: Duration): Promise<void>;
  /** Waits until nothing is written any more; virtual time advances meanwhile. @throws Error that names what keeps the cluster busy */
  settle(options?: SettleOptions): Promise<void>;
  /** Waits until the condition is truthy. @returns its value @throws the condition's error; Error with its last value on timeout */
  waitFor<T>(condition: () => T | Promise<T>, options?: WaitOptions): Promise<NonNullable<T>>;
  /** Waits until an object satisfies a condition. @returns the object @throws Error with the object's history on timeout */
  eventually<T extends object = Unstructured>(
    ref: ResourceRef,
    target: ObjectTarget,
    isAsWanted: (object: T) => boolean,
    options?: WaitOptions,
  ): Promise<T>;
  /** Waits until an object does not exist. @throws Error with the object's history on timeout */
  eventuallyGone(ref: ResourceRef, target: ObjectTarget, options?: WaitOptions): Promise<void>;
  /** History of an object: its writes with their authors, its events, and the problems that the server's explanation finds. */
  story(ref: ResourceRef, target: ObjectTarget): Promise<string>;
  /**
   * Applies YAML documents or objects, server-side; definitions are established before their objects are applied.
   * @param options.namespace namespace of objects that have none; default `default`
   */
  apply(manifests: Manifests, options?: { readonly namespace?: string; readonly fieldManager?: string }): Promise<Unstructured[]>;
  readonly faults: Faults;
  /** @throws Error when the cluster has none */
  readonly nodes: FakeNodes;
  /**
   * A copy with its own servers, independent of this cluster. Options that are not given are taken from this cluster.
   * @throws Error with a real etcd
   */
  fork(options?: Omit<ClusterOptions, "etcd" | "etcdPrefix" | "clock">): Promise<Cluster>;
  /** Stops all parts; further calls do nothing. */
  stop(): Promise<void>;
}

/** @throws Error for invalid options, and when a part does not start */
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
    // Waits for writes in progress, so that each is in both clusters or in neither.
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

import type { Duplex } from "node:stream";
import type { Client } from "@coxswain/apimachinery/client/client";
import { type EventRecorder, newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { type InformerFactory, type InformerFactoryOptions, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatMicroTime, formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { AddressPool } from "./address-pool.ts";
import { FakePod } from "./fake-pod.ts";
import { FakeKubelet } from "./kubelet/fake-kubelet.ts";
import { FakeMetrics } from "./metrics/fake-metrics.ts";
import { checkRules, type PodRule, ruleOf } from "./pod-rules.ts";
import { StagedPod } from "./staged-pod.ts";

export interface NodeSpec {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Default: 8 CPUs, 16 GiB, 110 pods. */
  readonly capacity?: Readonly<Record<string, string>>;
}

interface FakeNodesOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly nodes: readonly NodeSpec[];
  readonly rules: readonly PodRule[];
  /** Registers a kubelet at `host:port` with the API server's dialer; absent: kubelets are unreachable. */
  readonly serve?: (host: string, accept: (connection: Duplex) => void) => void;
  /** Address of one listener for all nodes, which passes its connections to `answer`. Default: each node has its own address, without a listener. */
  readonly kubelet?: { readonly address: string; readonly port: number };
  /** Strips Nodes and Pods before they are kept, for nodes whose rules need less of them. */
  readonly transform?: InformerFactoryOptions["transform"] & object;
}

const heartbeatMs = 10_000;
/** Spreads lease renewals over the period: thousands at the same moment would be a burst that real clusters do not have. */
const mostBeatsInPeriod = 100;
const leaseSeconds = 40;
const retryMs = 500;
const kubeletPort = 10250;
/** The last address is before that of the metrics server. */
const newNodeAddresses = () => new AddressPool("10.128.0.1", "10.128.255.253");
const newPodAddresses = () => new AddressPool("10.129.0.1", "10.255.255.254");

/** Nodes without containers: each has a Node, a lease, and Pods that behave by rules. All of them share one watch. */
export class FakeNodes {
  readonly #options: FakeNodesOptions;
  readonly #informers: InformerFactory;
  readonly #bound: SharedInformer<Pod>;
  readonly #registered: SharedInformer<Node>;
  readonly #addresses = new Map<string, string>();
  readonly #podAddresses = newPodAddresses();
  /** By Pod UID. */
  readonly #pods = new Map<string, { readonly fake: FakePod | StagedPod; readonly podIP: string }>();
  readonly #recorder: EventRecorder;
  /** By node name, as of the last renewal. */
  readonly #leases = new Map<string, Lease>();
  readonly #silent = new Set<string>();
  readonly #kubelet: FakeKubelet;
  /** undefined until a rule states resource usage. */
  #metrics: FakeMetrics | undefined;
  /** Callbacks of those waiting for a change of any Pod. */
  readonly #waiting = new Set<() => void>();
  #rules: readonly PodRule[];
  #heartbeat: Timer | undefined;

  /** @throws Error for an invalid rule, and for more than 65,533 nodes */
  constructor(options: FakeNodesOptions) {
    checkRules(options.rules);
    this.#options = options;
    this.#rules = options.rules;
    const { client, log, clock, transform } = options;
    this.#recorder = newEventRecorder({ client, component: "kubelet", log, clock });
    this.#informers = newInformerFactory(client, { log, clock, ...(transform && { transform }) });
    this.#bound = this.#informers.for<Pod>(pods, { fieldSelector: "spec.nodeName!=" });
    this.#registered = this.#informers.for<Node>(nodes);
    const addresses = newNodeAddresses();
    for (const { name } of options.nodes) this.#addresses.set(name, options.kubelet?.address ?? addresses.take());
    this.#kubelet = this.#newKubelet();
  }

  /** Serves a connection to the kubelets, without TLS. */
  answer(connection: Duplex): void {
    this.#kubelet.answer(connection);
  }

  /** Resolves when all Nodes are ready and the watch of Pods has started. */
  async start(): Promise<void> {
    const { signal, clock, nodes: specs, serve } = this.#options;
    if (serve !== undefined) this.#serveKubelets(serve);
    await Promise.all(specs.map((spec) => this.#register(spec)));
    // A failed patch is retried with the node's next lease renewal.
    this.#registered.addHandler({
      added: (node) => void this.#allocate(node).catch(() => {}),
      updated: (_, node) => void this.#allocate(node).catch(() => {}),
    });
    this.#informers.start(signal);
    await this.#informers.waitForSync(signal);
    // Before addresses are allocated: Pods from before this start, or of the copied cluster, keep theirs.
    for (const { status } of this.#bound.lister.list()) if (status?.podIP) this.#podAddresses.keep(status.podIP);
    this.#bound.addHandler({
      added: (pod) => this.#changed(pod),
      updated: (_, pod) => this.#changed(pod),
      deleted: (pod) => this.#gone(pod),
    });
    const beats = Math.max(1, Math.min(specs.length, mostBeatsInPeriod));
    let beat = 0;
    this.#heartbeat = clock.every(Math.floor(heartbeatMs / beats), () => {
      this.#beat(specs.filter((_, index) => index % beats === beat).map(({ name }) => name));
      beat = (beat + 1) % beats;
    });
    await this.#serveMetrics();
  }

  stop(): void {
    this.#heartbeat?.cancel();
    for (const { fake } of this.#pods.values()) fake.stop();
    this.#pods.clear();
    this.#tellWaiting();
  }

  get rules(): readonly PodRule[] {
    return this.#rules;
  }

  /** Applies to Pods that start from now on. @throws Error for an invalid rule */
  setRules(rules: readonly PodRule[]): void {
    checkRules(rules);
    this.#rules = rules;
    this.#serveMetrics().catch((err) => {
      if (!this.#options.signal.aborted) this.#options.log.error("cannot serve the metrics of fake pods", err);
    });
  }

  /** Does nothing until a rule states resource usage. */
  async #serveMetrics(): Promise<void> {
    const { client, clock, signal, serve } = this.#options;
    if (serve === undefined || this.#metrics !== undefined || !this.#rules.some(({ usage }) => usage !== undefined)) return;
    const inventory = { nodes: this.#registered.lister, pods: this.#bound.lister };
    this.#metrics = new FakeMetrics(inventory, (pod) => ruleOf(pod, this.#rules).usage, clock);
    await this.#metrics.register(client, serve, signal);
  }

  /** A silent node renews no lease and reports no pod status, like one that has lost its network. */
  setSilent(name: string, isSilent: boolean): void {
    if (!this.#addresses.has(name)) throw new Error(`there is no fake node ${JSON.stringify(name)}`);
    if (isSilent) this.#silent.add(name);
    else {
      this.#silent.delete(name);
      this.#beat([name]);
      for (const pod of this.#bound.lister.list()) if (pod.spec.nodeName === name) this.#changed(pod);
    }
  }

  #newKubelet(): FakeKubelet {
    return new FakeKubelet(
      {
        podOf: (namespace, name) => {
          const pod = this.#bound.lister.get(`${namespace}/${name}`);
          return pod !== undefined && this.#addresses.has(pod.spec.nodeName ?? "") ? pod : undefined;
        },
        answersOf: (pod) => {
          const { logs = [], exec } = ruleOf(pod, this.#rules);
          return { logs, exec };
        },
        changed: (signal) => this.#nextChange(signal),
      },
      this.#options.clock,
    );
  }

  #serveKubelets(serve: FakeNodesOptions["serve"] & object): void {
    for (const [name, address] of this.#addresses) {
      serve(`${address}:${kubeletPort}`, (connection) => {
        if (this.#silent.has(name)) throw new Error(`dial tcp ${address}:${kubeletPort}: connect: no route to host`);
        this.#kubelet.accept(connection);
      });
    }
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener("abort", stopped);
        resolve();
      };
      const stopped = (): void => {
        this.#waiting.delete(done);
        reject(signal.reason);
      };
      this.#waiting.add(done);
      signal.addEventListener("abort", stopped, { once: true });
    });
  }

  #tellWaiting(): void {
    for (const done of [...this.#waiting]) done();
  }

  #changed(pod: Pod): void {
    this.#tellWaiting();
    const { uid = "" } = pod.metadata;
    const { nodeName = "" } = pod.spec;
    const hostIP = this.#addresses.get(nodeName);
    if (hostIP === undefined || this.#silent.has(nodeName)) return;
    let known = this.#pods.get(uid);
    if (known === undefined) {
      const podIP = pod.status?.podIP ? this.#podAddresses.keep(pod.status.podIP) : this.#podAddresses.take();
      known = { fake: this.#newPod(pod, nodeName, hostIP, podIP), podIP };
      this.#pods.set(uid, known);
    }
    known.fake.changed(pod);
  }

  #newPod(pod: Pod, nodeName: string, hostIP: string, podIP: string): FakePod | StagedPod {
    const { client, clock, log } = this.#options;
    const isSilent = () => this.#silent.has(nodeName);
    const { stages } = ruleOf(pod, this.#rules);
    if (stages === undefined) return new FakePod({ client, clock, log, rules: () => this.#rules, isSilent }, pod, hostIP, podIP);
    return new StagedPod({ client, clock, log, recorder: this.#recorder, stages, isSilent, hostIP, podIP }, pod);
  }

  #gone(pod: Pod): void {
    this.#tellWaiting();
    const { uid = "" } = pod.metadata;
    const known = this.#pods.get(uid);
    if (known === undefined) return;
    known.fake.stop();
    this.#podAddresses.giveBack(known.podIP);
    this.#pods.delete(uid);
  }

  #beat(names: readonly string[]): void {
    for (const name of names) {
      if (this.#silent.has(name)) continue;
      void this.#renew(name).catch(() => {});
      const node = this.#registered.lister.get(name);
      if (node !== undefined) void this.#allocate(node).catch(() => {});
    }
  }

  /** Like a kubelet: updates the lease as it was after the last renewal, and reads it only when that fails. */
  async #renew(name: string): Promise<void> {
    const { client, clock, signal } = this.#options;
    const target = { namespace: "kube-node-lease", name };
    const known = this.#leases.get(name);
    const renewTime = formatMicroTime(clock.now());
    try {
      const lease = known ?? (await client.get<Lease>(leases, target, { signal }));
      const renewed = { ...lease, spec: { ...lease.spec, holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime } };
      this.#leases.set(name, await client.update<Lease>(leases, renewed, { signal }));
    } catch (err) {
      this.#leases.delete(name);
      if (known !== undefined && (isConflict(err) || isNotFound(err))) return this.#renew(name);
      if (!isNotFound(err)) throw err;
      const spec = { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime };
      this.#leases.set(name, await client.create<Lease>(leases, { metadata: target, spec }, { signal }));
    }
  }

  /** Makes extended resources, which other clients add to a node's capacity, allocatable. Source: pkg/kubelet/nodestatus/setters.go, MachineInfo */
  async #allocate({ metadata, status }: Node): Promise<void> {
    const { client, signal } = this.#options;
    const { name = "" } = metadata;
    if (!this.#addresses.has(name) || this.#silent.has(name)) return;
    const allocatable = extendedChanges(status?.capacity, status?.allocatable);
    if (Object.keys(allocatable).length === 0) return;
    await client.patch(nodes, { name, subresource: "status" }, { type: "merge", body: { status: { allocatable } } }, { signal });
  }

  async #register(spec: NodeSpec): Promise<void> {
    const { client, clock, log, signal } = this.#options;
    for (;;) {
      try {
        const node = await this.#create(spec);
        const { port = kubeletPort } = this.#options.kubelet ?? {};
        const status = nodeStatus(spec, this.#addresses.get(spec.name) as string, port, formatTime(clock.now()));
        const { name } = spec;
        await client.patch(nodes, { name, subresource: "status" }, { type: "strategic", body: { status } }, { signal });
        if (node.spec?.taints?.some(({ key }) => key === "node.kubernetes.io/not-ready")) {
          await client.patch(nodes, { name }, { type: "merge", body: { spec: { taints: spec.taints ?? null } } }, { signal });
        }
        return await this.#renew(name);
      } catch (err) {
        signal.throwIfAborted();
        if (!isConflict(err) && !isNotFound(err))
          log.warn("cannot register a fake node yet", { node: spec.name, err: String(err) });
        await clock.sleep(retryMs, signal);
      }
    }
  }

  async #create({ name, labels, taints }: NodeSpec): Promise<Node> {
    const { client, signal } = this.#options;
    const usual = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" };
    try {
      const metadata = { name, labels: { ...usual, ...labels } };
      return await client.create<Node>(nodes, { metadata, spec: { ...(taints && { taints: [...taints] }) } }, { signal });
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
      return client.get<Node>(nodes, { name }, { signal });
    }
  }
}

type Resources = Readonly<Record<string, unknown>>;

/** A merge patch that copies the extended resources of `capacity` to `allocatable`. */
function extendedChanges(capacity: Resources = {}, allocatable: Resources = {}): Record<string, unknown> {
  const isExtended = (resource: string): boolean => resource.includes("/");
  const added = Object.keys(capacity).filter((one) => isExtended(one) && String(capacity[one]) !== String(allocatable[one]));
  const removed = Object.keys(allocatable).filter((one) => isExtended(one) && !Object.hasOwn(capacity, one));
  return Object.fromEntries([...added.map((one) => [one, capacity[one]]), ...removed.map((one) => [one, null])]);
}

function nodeStatus({ name, capacity }: NodeSpec, address: string, port: number, at: string): object {
  const resources = { cpu: "8", memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi", ...capacity };
  const times = { lastHeartbeatTime: at, lastTransitionTime: at };
  return {
    capacity: resources,
    allocatable: resources,
    addresses: [
      { type: "InternalIP", address },
      { type: "Hostname", address: name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      architecture: "amd64",
      operatingSystem: "linux",
      kubeletVersion: kubernetesRelease.gitVersion,
      kubeProxyVersion: kubernetesRelease.gitVersion,
      containerRuntimeVersion: "fake://1.0",
      osImage: "fake",
      kernelVersion: "fake",
      machineID: name,
      systemUUID: name,
      bootID: name,
    },
    conditions: [
      { type: "MemoryPressure", status: "False", reason: "KubeletHasSufficientMemory", ...times },
      { type: "DiskPressure", status: "False", reason: "KubeletHasNoDiskPressure", ...times },
      { type: "PIDPressure", status: "False", reason: "KubeletHasSufficientPID", ...times },
      { type: "Ready", status: "True", reason: "KubeletReady", message: "fake node", ...times },
    ],
  };
}

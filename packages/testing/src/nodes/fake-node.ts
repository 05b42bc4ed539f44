import type { Client } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** State of a node's running Pods, which survives a crash of its agent. */
export interface Machine {
  readonly name: string;
  /** By Pod UID. */
  readonly running: Map<string, { readonly key: string; readonly uid: string }>;
  /** Outcome of Pods that ended by themselves, by UID. */
  readonly finished: Map<string, "Succeeded" | "Failed">;
  /** Pod IPs by UID. */
  readonly addresses: Map<string, string>;
}

/** A machine without Pods. */
export const newMachine = (name: string): Machine => ({ name, running: new Map(), finished: new Map(), addresses: new Map() });

/** Behaviour of Pods on a node. Times in ms. */
export interface PodRules {
  startMs(pod: Pod): number;
  stopMs(pod: Pod): number;
  /** When and how the Pod ends by itself; undefined: never. */
  ends(pod: Pod): { afterMs: number; phase: "Succeeded" | "Failed" } | undefined;
}

/** Dependencies of an agent until it crashes or stops. */
interface AgentLife {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The agent of a node without containers: moves the Pods bound to it through their phases, by rules. Level-triggered like a kubelet. */
export async function runFakeNode(life: AgentLife, machine: Machine, rules: PodRules): Promise<void> {
  const { client, clock, log, signal } = life;
  await register(client, machine.name, (ms) => clock.sleep(ms));
  const informers = newInformerFactory(client, { log, clock });
  const bound = informers.for<Pod>(pods, { fieldSelector: `spec.nodeName=${machine.name}` });
  const agent = new FakeAgent(life, machine, rules, bound.lister);
  const stop = bound.addHandler({
    added: (pod) => void agent.work(keyOf(pod)),
    updated: (_, pod) => void agent.work(keyOf(pod)),
    deleted: (pod) => void agent.work(keyOf(pod)),
  });
  informers.start(signal);
  await informers.waitForSync(signal);
  // Pods that an earlier incarnation started and that were deleted meanwhile.
  for (const { key } of machine.running.values()) void agent.work(key);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  stop();
}

class FakeAgent {
  readonly #life: AgentLife;
  readonly #machine: Machine;
  readonly #rules: PodRules;
  readonly #bound: Pick<Lister<Pod>, "get">;
  /** Keys of Pods that are being worked on. */
  readonly #busy = new Set<string>();
  /** Keys that are busy and have to be looked at again. */
  readonly #due = new Set<string>();

  constructor(life: AgentLife, machine: Machine, rules: PodRules, bound: Pick<Lister<Pod>, "get">) {
    this.#life = life;
    this.#machine = machine;
    this.#rules = rules;
    this.#bound = bound;
  }

  /** Syncs the Pod until there is nothing left to do; errors are retried until the agent ends. */
  async work(key: string): Promise<void> {
    if (this.#busy.has(key)) return void this.#due.add(key);
    const { clock, log, signal } = this.#life;
    this.#busy.add(key);
    try {
      for (let tries = 0; !signal.aborted; tries++) {
        this.#due.delete(key);
        try {
          await this.#sync(key);
          if (!this.#due.has(key)) return;
        } catch (err) {
          if (!isNotFound(err) && !isConflict(err)) log.v(2)?.info("cannot read a pod's state", { key, err: String(err) });
          if (isNotFound(err) && !this.#due.has(key)) return;
          await clock.sleep(Math.min(100 * 2 ** tries, 2_000));
        }
      }
    } finally {
      this.#busy.delete(key);
    }
  }

  async #sync(key: string): Promise<void> {
    const { running, finished } = this.#machine;
    const pod = this.#bound.get(key);
    for (const [uid, held] of running) if (held.key === key && uid !== pod?.metadata.uid) running.delete(uid);
    if (pod === undefined) return;
    const { uid = "", deletionTimestamp } = pod.metadata;
    if (deletionTimestamp) return this.#end(pod, uid);
    const { phase } = pod.status ?? {};
    if (phase === "Succeeded" || phase === "Failed") return void running.delete(uid);
    const ended = finished.get(uid);
    if (ended !== undefined) return this.#report(pod, ended, false);
    if (!running.has(uid)) {
      await this.#life.clock.sleep(this.#rules.startMs(pod));
      const current = this.#bound.get(key)?.metadata;
      if (current?.uid !== uid || current.deletionTimestamp) return void this.#due.add(key);
      running.set(uid, { key, uid });
    }
    if (phase !== "Running") await this.#report(pod, "Running", true);
    const end = this.#rules.ends(pod);
    if (end === undefined) return;
    await this.#life.clock.sleep(end.afterMs);
    if (running.delete(uid)) finished.set(uid, end.phase);
    this.#due.add(key);
  }

  /** Ends the Pod, and deletes its object. */
  async #end(pod: Pod, uid: string): Promise<void> {
    const { client, clock } = this.#life;
    const { namespace, name = "" } = pod.metadata;
    if (this.#machine.running.has(uid)) await clock.sleep(this.#rules.stopMs(pod));
    this.#machine.running.delete(uid);
    await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } });
  }

  async #report(pod: Pod, phase: string, isReady: boolean): Promise<void> {
    const { client, clock } = this.#life;
    const { namespace, name = "", uid } = pod.metadata;
    const status = isReady ? "True" : "False";
    const at = formatTime(clock.now());
    const { addresses, name: node } = this.#machine;
    const podIP = addresses.getOrInsertComputed(uid ?? "", () => `10.1.${node.slice(-1)}.${addresses.size + 1}`);
    const conditions = ["Initialized", "Ready", "ContainersReady"].map((type) => ({ type, status, lastTransitionTime: at }));
    await client.patch(
      pods,
      { namespace, name, subresource: "status" },
      {
        type: "strategic",
        body: {
          metadata: { uid },
          status: { phase, conditions, podIP, podIPs: [{ ip: podIP }], startTime: pod.status?.startTime ?? at },
        },
      },
    );
  }
}

/** Creates the Node or sets it to ready, unless it is. */
export async function register(client: Client, name: string, pause: (ms: number) => Promise<void>): Promise<void> {
  const capacity = { cpu: "8", memory: "16Gi", pods: "110" } as never;
  const ready = { type: "Ready", status: "True", reason: "KubeletReady" };
  for (;;) {
    try {
      let node: Node;
      try {
        node = await client.get<Node>(nodes, { name });
      } catch (err) {
        if (!isNotFound(err)) throw err;
        const labels = { "kubernetes.io/hostname": name };
        node = await client.create<Node>(nodes, { metadata: { name, labels }, spec: {} });
      }
      const isReady = node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      if (isReady && node.spec?.taints === undefined) return;
      node = await client.update<Node>(
        nodes,
        { ...node, status: { ...node.status, capacity, allocatable: capacity, conditions: [ready] } } as Node,
        {
          subresource: "status",
        },
      );
      if (node.spec?.taints !== undefined)
        await client.update<Node>(nodes, { ...node, spec: { ...node.spec, taints: undefined } });
      return;
    } catch {
      await pause(500);
    }
  }
}

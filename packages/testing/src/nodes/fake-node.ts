import type { Client } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
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
export async function runFakeNode({ client, clock, log, signal }: AgentLife, machine: Machine, rules: PodRules): Promise<void> {
  await register(client, machine.name, (ms) => clock.sleep(ms));
  const informers = newInformerFactory(client, { log, clock });
  const bound = informers.for<Pod>(pods, { fieldSelector: `spec.nodeName=${machine.name}` });
  const busy = new Set<string>();
  const due = new Map<string, number>();
  let isStopped = false;

  const worked = async (key: string): Promise<void> => {
    if (busy.has(key)) return void due.set(key, 1);
    busy.add(key);
    try {
      for (let tries = 0; !isStopped; tries++) {
        due.delete(key);
        try {
          await sync(key);
          if (!due.has(key)) return;
        } catch (err) {
          if (!isNotFound(err) && !isConflict(err)) log.v(2)?.info("cannot read a pod's state", { key, err: String(err) });
          if (isNotFound(err) && !due.has(key)) return;
          await clock.sleep(Math.min(100 * 2 ** tries, 2_000));
        }
      }
    } finally {
      busy.delete(key);
    }
  };

  const sync = async (key: string): Promise<void> => {
    const pod = bound.lister.get(key);
    for (const [uid, held] of machine.running) if (held.key === key && uid !== pod?.metadata.uid) machine.running.delete(uid);
    if (pod === undefined) return;
    const uid = pod.metadata.uid as string;
    const { namespace, name = "" } = pod.metadata;
    if (pod.metadata.deletionTimestamp) {
      if (machine.running.has(uid)) await clock.sleep(rules.stopMs(pod));
      machine.running.delete(uid);
      await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } });
      return;
    }
    const { phase } = pod.status ?? {};
    if (phase === "Succeeded" || phase === "Failed") return void machine.running.delete(uid);
    const ended = machine.finished.get(uid);
    if (ended !== undefined) return report(pod, ended, false);
    if (!machine.running.has(uid)) {
      await clock.sleep(rules.startMs(pod));
      if (bound.lister.get(key)?.metadata.uid !== uid || bound.lister.get(key)?.metadata.deletionTimestamp)
        return void due.set(key, 1);
      machine.running.set(uid, { key, uid });
    }
    if (phase !== "Running") await report(pod, "Running", true);
    const end = rules.ends(pod);
    if (end === undefined) return;
    await clock.sleep(end.afterMs);
    if (!machine.running.delete(uid)) return void due.set(key, 1);
    machine.finished.set(uid, end.phase);
    due.set(key, 1);
  };

  const report = async (pod: Pod, phase: string, isReady: boolean): Promise<void> => {
    const { namespace, name = "", uid } = pod.metadata;
    const status = isReady ? "True" : "False";
    const at = formatTime(clock.now());
    const { addresses } = machine;
    const podIP = addresses.getOrInsertComputed(uid ?? "", () => `10.1.${machine.name.slice(-1)}.${addresses.size + 1}`);
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
  };

  const stop = bound.addHandler({
    added: (pod) => void worked(keyOf(pod)),
    updated: (_, pod) => void worked(keyOf(pod)),
    deleted: (pod) => void worked(keyOf(pod)),
  });
  informers.start(signal);
  await informers.waitForSync(signal);
  // Pods that an earlier incarnation started and that were deleted meanwhile.
  for (const { key } of machine.running.values()) void worked(key);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  isStopped = true;
  stop();
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

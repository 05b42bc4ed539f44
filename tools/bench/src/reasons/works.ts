import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isForbidden } from "@coxswain/apimachinery/objects/errors/predicates";
import { namespaces, nodes, pods, replicaSets, resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { closedLoop } from "../load.ts";

const namespace = "default";
const image = "busybox:1.35";

/** A load on the daemons of a cluster, and the daemon that is profiled during it. */
export interface Work {
  readonly daemon: string;
  readonly what: string;
  readonly pods: number;
  run(client: Client): Promise<void>;
  /** Not measured. */
  clean(client: Client): Promise<void>;
}

const everywhere = [{ operator: "Exists" }];
const fakeNodes = 20;

/** Pods for nodes without a kubelet; every fifth is unschedulable. */
export function scheduling(count: number): Work {
  const fits = Math.ceil(count * 0.8);
  const cpu = `${Math.ceil(fits / fakeNodes)}`;
  return {
    daemon: "kube-scheduler",
    pods: count,
    what: `${count} pods over ${fakeNodes} nodes, of which ${fits} fit`,
    async run(client) {
      for (let i = 0; i < fakeNodes; i++) {
        await client.create(nodes, {
          metadata: { name: `fake-${i}`, labels: { bench: "fake" } },
          status: { capacity: { cpu, memory: "64Gi", pods: "500" }, allocatable: { cpu, memory: "64Gi", pods: "500" } },
        } as never); // cast: objects to create have no common type
      }
      await createAll(
        count,
        (i) =>
          client.create(pods, {
            metadata: { name: `scheduled-${i}`, namespace, labels: { bench: "scheduled" } },
            spec: {
              ...{ nodeSelector: { bench: "fake" }, tolerations: everywhere },
              containers: [{ name: "main", image, resources: { requests: { cpu: "1" } } }],
            },
          } as never), // cast: objects to create have no common type
      );
      const isDecided = async (): Promise<boolean> => {
        const { items } = await client.list<{ status?: { conditions?: { type: string }[] } }>(
          pods,
          { namespace },
          { labelSelector: "bench=scheduled" },
        );
        return items.every(({ status }) => status?.conditions?.some(({ type }) => type === "PodScheduled") === true);
      };
      await until(isDecided, "all pods to be scheduled or refused");
    },
    async clean(client) {
      await removePods(client, "bench=scheduled");
      for (let i = 0; i < fakeNodes; i++) await client.delete(nodes, { name: `fake-${i}` });
    },
  };
}

/** A ReplicaSet whose Pods are never scheduled. */
export function replicas(count: number): Work {
  return {
    daemon: "kube-controller-manager",
    pods: count,
    what: `a ReplicaSet of ${count} pods, created and deleted`,
    async run(client) {
      const name = "set";
      const labels = { bench: name };
      await client.create(replicaSets, {
        metadata: { name, namespace },
        spec: {
          ...{ replicas: count, selector: { matchLabels: labels } },
          template: { metadata: { labels }, spec: { schedulerName: "none", containers: [{ name: "main", image }] } },
        },
      } as never); // cast: objects to create have no common type
      const hasAll = async (): Promise<boolean> => {
        const { status } = await client.get<{ status?: { replicas?: number } }>(replicaSets, { namespace, name });
        return status?.replicas === count;
      };
      await until(hasAll, "all replicas");
      await client.delete(replicaSets, { namespace, name }, { propagationPolicy: "Background" });
      await untilNone(client, `bench=${name}`);
    },
    async clean() {},
  };
}

/** A quota rejects every second Pod. */
export function refusals(count: number): Work {
  const full = "full";
  return {
    daemon: "kube-apiserver",
    pods: count,
    what: `${count} pods, of which every second is refused by a quota`,
    async run(client) {
      await client.create(namespaces, { metadata: { name: full } } as never).catch(ignoreExisting); // cast: objects to create have no common type
      const spec = { hard: { pods: "0" } };
      await client.create(resourceQuotas, { metadata: { name: "none", namespace: full }, spec } as never).catch(ignoreExisting); // cast: objects to create have no common type
      const hasQuota = async (): Promise<boolean> => {
        const quota = await client.get<{ status?: { hard?: object } }>(resourceQuotas, { namespace: full, name: "none" });
        return quota.status?.hard !== undefined;
      };
      await until(hasQuota, "the quota");
      await createAll(count, (i) =>
        client
          .create(pods, {
            metadata: { name: `asked-${i}`, namespace: i % 2 === 0 ? full : namespace, labels: { bench: "asked" } },
            spec: { schedulerName: "none", containers: [{ name: "main", image }] },
          } as never) // cast: objects to create have no common type
          .catch((err) => {
            if (!isForbidden(err)) throw err;
          }),
      );
    },
    async clean(client) {
      await removePods(client, "bench=asked");
    },
  };
}

const podsOfNode = 20;

/** Pods on the node: most run, some crash, some have no image, some refer to a missing volume. */
export function containers(): Work {
  const kinds = [
    { args: ["sleep", "3600"] },
    { args: ["sleep", "3600"] },
    { args: ["sleep", "3600"] },
    { args: ["false"] },
    { image: "cox.local/not-there:1", imagePullPolicy: "Never" },
  ];
  return {
    daemon: "kubelet",
    pods: podsOfNode,
    what: `${podsOfNode} pods, of which some cannot start, created and deleted`,
    async run(client) {
      await createAll(
        podsOfNode,
        (i) =>
          client.create(pods, {
            metadata: { name: `run-${i}`, namespace, labels: { bench: "run" } },
            spec: {
              ...{ tolerations: everywhere, terminationGracePeriodSeconds: 0 },
              containers: [{ name: "main", image, imagePullPolicy: "IfNotPresent", ...kinds[i % kinds.length] }],
            },
          } as never), // cast: objects to create have no common type
      );
      const hasStarted = async (): Promise<boolean> => {
        const { items } = await client.list<{ status?: { containerStatuses?: { state?: { running?: object } }[] } }>(
          pods,
          { namespace },
          { labelSelector: "bench=run" },
        );
        const running = items.filter(({ status }) => status?.containerStatuses?.every(({ state }) => state?.running));
        return running.length >= (podsOfNode * 3) / 5;
      };
      await until(hasStarted, "the pods to run");
      // Time in which the kubelet retries the failing Pods.
      await sleep(15_000);
      await removePods(client, "bench=run");
    },
    async clean() {},
  };
}

const atOnce = 16;

async function createAll(count: number, create: (index: number) => Promise<unknown>): Promise<void> {
  const operation = async (index: number) => {
    await patiently(() => create(index).catch(ignoreExisting));
    return { totalMs: 0 };
  };
  await closedLoop(operation, { concurrency: atOnce, seconds: 600, maxOperations: count });
}

/** Ignores AlreadyExists, which follows an attempt whose answer was lost. */
function ignoreExisting(err: unknown): void {
  if (!isAlreadyExists(err)) throw err;
}

/** Retries up to four times: on a loaded machine requests exceed the server's time limit. */
async function patiently<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request();
    } catch (err) {
      if (attempt === 5) throw err;
      await sleep(1000);
    }
  }
}

async function removePods(client: Client, labelSelector: string): Promise<void> {
  await patiently(() => client.deleteCollection(pods, { namespace }, { labelSelector, gracePeriodSeconds: 0 }));
  await untilNone(client, labelSelector);
}

async function untilNone(client: Client, labelSelector: string): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await client.list(pods, { namespace }, { labelSelector })).items.length === 0;
  await until(isEmpty, "the pods to be gone");
}

const until = (condition: () => Promise<boolean>, what: string): Promise<unknown> =>
  waitFor(condition, { timeoutMs: 300_000, what, retry: () => true });

import { setTimeout as delay } from "node:timers/promises";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { events, leases, namespaces, nodes, pods, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { ApiServers } from "./apiservers.ts";
import { residentMb } from "./resident.ts";

/**
 * Typical cluster load at a fixed rate: the oldest pod is deleted; another one is created, bound, marked ready and reported by
 * an event. Nodes renew their leases, informers watch, and a client lists pods, unpaged, in pages and as a table.
 */
export interface ChurnOptions {
  apis: ApiServers;
  pods: number;
  writesPerSecond: number;
  minutes: number;
}

export interface Churned {
  samples: readonly Sample[];
  writes: number;
  failed: number;
  /** Final content of each informer, as sorted `name@version`, and of a list. */
  held: readonly string[][];
  listed: readonly string[];
}

export interface Sample {
  second: number;
  residentMb: number;
}

const informers = 5;
const nodeCount = 10;
const namespace = "churn";
/** Gives a pod a realistic size. */
const fillingBytes = 1_500;
/** Delete, create, bind, status, event. */
const writesPerPod = 5;
const batchMs = 100;
/** Limit for catching up after a delay, to keep the rate even. */
const mostAtOnce = 20;
const sampleMs = 30_000;
const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };

/**
 * Creates `pods` pods, then replaces the oldest ones at an even rate for `minutes`, while leases are renewed and pods are
 * listed. Failed writes are counted, not thrown.
 */
export async function churn({ apis, pods: count, writesPerSecond, minutes }: ChurnOptions): Promise<Churned> {
  const [server] = apis.servers;
  if (server === undefined) throw new Error("no API server");
  const clients: Client[] = [];
  const clientOf = (userAgent: string): Client => {
    const client = newClient({ host: server.url, ca: apis.ca, token: apis.token, qps: -1, burst: 0, userAgent });
    clients.push(client);
    return client;
  };
  const writer = clientOf("writer");
  const reader = clientOf("reader");
  let writes = 0;
  let failed = 0;
  const counted = async (write: Promise<unknown>): Promise<void> => {
    writes++;
    await write.catch(() => {
      failed++;
    });
  };

  await writer.create(namespaces, named(namespace));
  await writer.create(serviceAccounts, named("default", namespace));
  for (let i = 0; i < nodeCount; i++) {
    await writer.create(nodes, named(nodeName(i)));
    await writer.create(leases, named(nodeName(i), namespace));
  }
  const watching = new AbortController();
  const listers = Array.from({ length: informers }, (_, i) => {
    const factory = newInformerFactory(clientOf(`informer-${i}`), { log: discardLogger, clock: realClock });
    const { lister } = factory.for<KubeObject>(pods);
    factory.start(watching.signal);
    return lister;
  });

  let made = 0;
  let deleted = 0;
  async function makePod(): Promise<void> {
    const n = made++;
    const name = podName(n);
    const target = { kind: "Node", name: nodeName(n) };
    const status = { phase: "Running", startTime: now(), conditions: [{ type: "Ready", status: "True" }] };
    await counted(writer.create(pods, aPod(name)));
    await counted(writer.create(pods, { ...named(name, namespace), target } as KubeObject, { name, subresource: "binding" }));
    await counted(writer.patch(pods, { namespace, name, subresource: "status" }, { type: "strategic", body: { status } }));
    await counted(writer.create(events, anEvent(name, n)));
  }
  async function replacePod(): Promise<void> {
    await counted(writer.delete(pods, { namespace, name: podName(deleted++) }, { gracePeriodSeconds: 0 }));
    await makePod();
  }
  while (made < count) await Promise.all(Array.from({ length: Math.min(10, count - made) }, makePod));

  const started = performance.now();
  const end = started + minutes * 60_000;
  const every = async (periodMs: number, act: (turn: number) => Promise<void>): Promise<void> => {
    for (let turn = 0; performance.now() < end; turn++) {
      await act(turn);
      await delay(Math.max(started + (turn + 1) * periodMs - performance.now(), 0));
    }
  };
  const samples: Sample[] = [];
  let replaced = 0;
  await Promise.all([
    every(batchMs, async () => {
      const due = Math.floor(((performance.now() - started) / 1_000) * (writesPerSecond / writesPerPod));
      await Promise.all(Array.from({ length: Math.min(due - replaced, mostAtOnce) }, replacePod));
      replaced = due;
    }),
    every(1_000, async (turn) => {
      const spec = { renewTime: now().replace("Z", ".000000Z") };
      await counted(writer.patch(leases, { namespace, name: nodeName(turn) }, { type: "merge", body: { spec } }));
    }),
    every(2_000, async (turn) => {
      let token: string | undefined;
      do {
        const page = await reader.list(pods, { namespace }, { limit: 250, continue: token });
        token = page.metadata.continue;
      } while (token);
      await reader.list(pods, {}, { fieldSelector: `spec.nodeName=${nodeName(turn)}` });
      await reader.raw("GET", `/api/v1/namespaces/${namespace}/pods`, { headers: table });
    }),
    every(sampleMs, async () => {
      samples.push({ second: Math.round((performance.now() - started) / 1_000), residentMb: residentMb(server.pid) });
    }),
  ]);

  const { items } = await reader.list<KubeObject>(pods, { namespace });
  const listed = versionsOf(items);
  let held: string[][] = [];
  for (let tries = 0; tries < 100; tries++) {
    held = listers.map((lister) => versionsOf(lister.list()));
    if (held.every((versions) => versions.join() === listed.join())) break;
    await delay(100);
  }
  watching.abort();
  for (const client of clients) client.close();
  return { samples, writes, failed, held, listed };
}

/**
 * Slope of the regression line through the samples: its rise from the first to the last one relative to their mean. Single
 * samples depend on the time of the last garbage collection.
 */
export function trendOf(samples: readonly Sample[]): number {
  const mean = (value: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + value(sample), 0) / samples.length;
  const [second, resident] = [mean((s) => s.second), mean((s) => s.residentMb)];
  const slope = mean((s) => (s.second - second) * (s.residentMb - resident)) / mean((s) => (s.second - second) ** 2);
  const span = (samples.at(-1)?.second ?? 0) - (samples[0]?.second ?? 0);
  return (slope * span) / resident;
}

const versionsOf = (objects: readonly KubeObject[]): string[] =>
  objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort();
const now = (): string => `${new Date().toISOString().slice(0, 19)}Z`;
const nodeName = (n: number): string => `node-${n % nodeCount}`;
/** Unique names that are not in alphabetical order. */
const podName = (n: number): string => `pod-${(n * 7919) % 1000}-${n}`;
const named = (name: string, inNamespace?: string): KubeObject => ({
  metadata: { name, ...(inNamespace !== undefined && { namespace: inNamespace }) },
});

function aPod(name: string): KubeObject {
  const metadata = { name, namespace, labels: { app: "churn" }, annotations: { filling: "x".repeat(fillingBytes) } };
  const containers = [{ name: "main", image: "busybox:1.35", command: ["sleep", "3600"] }];
  return { metadata, spec: { automountServiceAccountToken: false, containers } } as KubeObject;
}

function anEvent(podName: string, n: number): KubeObject {
  return {
    metadata: { name: `${podName}.${n.toString(16)}`, namespace },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name: podName },
    ...{ type: "Normal", reason: "Scheduled", message: `Successfully assigned ${namespace}/${podName}` },
    ...{ firstTimestamp: now(), lastTimestamp: now(), count: 1, source: { component: "churn" } },
  } as KubeObject;
}

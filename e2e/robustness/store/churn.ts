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
  const writer = new ChurnWriter(clientOf("writer"));
  const reader = clientOf("reader");
  await writer.prepare();
  const watching = new AbortController();
  const listers = Array.from({ length: informers }, (_, i) => {
    const factory = newInformerFactory(clientOf(`informer-${i}`), { log: discardLogger, clock: realClock });
    const { lister } = factory.for<KubeObject>(pods);
    factory.start(watching.signal);
    return lister;
  });
  await writer.createPods(count);

  const schedule = new Schedule(minutes);
  const samples: Sample[] = [];
  let replaced = 0;
  await Promise.all([
    schedule.every(batchMs, async () => {
      const due = Math.floor((schedule.elapsedMs() / 1_000) * (writesPerSecond / writesPerPod));
      await writer.replacePods(Math.min(due - replaced, mostAtOnce));
      replaced = due;
    }),
    schedule.every(1_000, (turn) => writer.renewLease(turn)),
    schedule.every(2_000, (turn) => readAll(reader, turn)),
    schedule.every(sampleMs, async () => {
      samples.push({ second: Math.round(schedule.elapsedMs() / 1_000), residentMb: residentMb(server.pid) });
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
  return { samples, writes: writer.writes, failed: writer.failed, held, listed };
}

/** Creates and replaces pods, and counts its writes after `prepare`. */
class ChurnWriter {
  writes = 0;
  failed = 0;
  readonly #client: Client;
  #created = 0;
  #deleted = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Creates what the pods need. @throws Error when a write fails */
  async prepare(): Promise<void> {
    await this.#client.create(namespaces, named(namespace));
    await this.#client.create(serviceAccounts, named("default", namespace));
    for (let i = 0; i < nodeCount; i++) {
      await this.#client.create(nodes, named(nodeName(i)));
      await this.#client.create(leases, named(nodeName(i), namespace));
    }
  }

  async createPods(count: number): Promise<void> {
    while (this.#created < count) {
      const batch = Math.min(10, count - this.#created);
      await Promise.all(Array.from({ length: batch }, () => this.#createPod()));
    }
  }

  /** Replaces the oldest pods. */
  async replacePods(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#replacePod()));
  }

  async renewLease(n: number): Promise<void> {
    const spec = { renewTime: now().replace("Z", ".000000Z") };
    await this.#count(this.#client.patch(leases, { namespace, name: nodeName(n) }, { type: "merge", body: { spec } }));
  }

  async #replacePod(): Promise<void> {
    const name = podName(this.#deleted++);
    await this.#count(this.#client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 }));
    await this.#createPod();
  }

  async #createPod(): Promise<void> {
    const client = this.#client;
    const n = this.#created++;
    const name = podName(n);
    const binding: KubeObject & { target: object } = { ...named(name, namespace), target: { kind: "Node", name: nodeName(n) } };
    const status = { phase: "Running", startTime: now(), conditions: [{ type: "Ready", status: "True" }] };
    await this.#count(client.create(pods, aPod(name)));
    await this.#count(client.create(pods, binding, { name, subresource: "binding" }));
    await this.#count(client.patch(pods, { namespace, name, subresource: "status" }, { type: "strategic", body: { status } }));
    await this.#count(client.create(events, anEvent(name, n)));
  }

  async #count(write: Promise<unknown>): Promise<void> {
    this.writes++;
    await write.catch(() => {
      this.failed++;
    });
  }
}

/** Periodic work from its creation on, for some minutes. */
class Schedule {
  readonly #started = performance.now();
  readonly #end: number;

  constructor(minutes: number) {
    this.#end = this.#started + minutes * 60_000;
  }

  elapsedMs(): number {
    return performance.now() - this.#started;
  }

  /** @param act gets the number of earlier calls */
  async every(periodMs: number, act: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = 0; performance.now() < this.#end; turn++) {
      await act(turn);
      await delay(Math.max((turn + 1) * periodMs - this.elapsedMs(), 0));
    }
  }
}

/** Lists the pods in pages, those of one node, and all as a table. */
async function readAll(reader: Client, turn: number): Promise<void> {
  let token: string | undefined;
  do {
    const page = await reader.list(pods, { namespace }, { limit: 250, continue: token });
    token = page.metadata.continue;
  } while (token);
  await reader.list(pods, {}, { fieldSelector: `spec.nodeName=${nodeName(turn)}` });
  await reader.raw("GET", `/api/v1/namespaces/${namespace}/pods`, { headers: table });
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

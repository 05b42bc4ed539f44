/**
 * A well-behaved client: it reads one object every 5 ms, renews a lease every 2 s, and watches its own writes, each on a separate
 * connection.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@coxswain/apimachinery/client/client";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "../framework/wait-for.ts";
import type { Figures } from "./limits.ts";
import type { RunQueue } from "./run-queue.ts";

export type Seen = Pick<Figures, "latenciesMs" | "failures" | "longestRenewalMs" | "watched" | "written">;

export interface Bystander {
  /** Measurements since the last call, after waiting for its watch to receive all its writes. */
  seen(): Promise<Seen>;
  stop(): Promise<void>;
}

const readEveryMs = 5;
const writeEveryMs = 50;
const renewEveryMs = 2000;
/** Servers end a watch after half an hour to an hour. */
const leastWatchMs = 25 * 60_000;
const home = "/api/v1/namespaces/bystander/configmaps";
const leasePath = "/apis/coordination.k8s.io/v1/namespaces/bystander/leases";

/** Resolves when its objects exist; it reads, writes and watches until `stop`. @param client opens each of its four connections */
export async function startBystander(client: () => Client, queue: RunQueue): Promise<Bystander> {
  const bystander = new ConfigMapBystander(client, queue);
  await bystander.start();
  return bystander;
}

class ConfigMapBystander implements Bystander {
  readonly #queue: RunQueue;
  readonly #reader: Client;
  readonly #writer: Client;
  readonly #renewer: Client;
  readonly #watcher: Client;
  readonly #stopping = new AbortController();
  #work: Promise<void>[] = [];
  #reading: Promise<void> = Promise.resolve();

  #latenciesMs: number[] = [];
  #failures: string[] = [];
  /** Numbers that it wrote, and that its watch showed. */
  #written: number[] = [];
  #watched: number[] = [];
  /** Numbers whose writes failed: they may be stored or not. */
  readonly #unclear = new Set<number>();
  #longestRenewalMs = 0;

  constructor(client: () => Client, queue: RunQueue) {
    this.#queue = queue;
    [this.#reader, this.#writer, this.#renewer, this.#watcher] = [client(), client(), client(), client()];
  }

  async start(): Promise<void> {
    await this.#send(this.#writer, "POST", home, { metadata: { name: "counter" }, data: { at: "0" } });
    const spec = { holderIdentity: "bystander", leaseDurationSeconds: 15 };
    await this.#send(this.#renewer, "POST", leasePath, { metadata: { name: "held" }, spec });
    const { metadata } = await this.#watcher.list(configMaps, { namespace: "bystander" });
    this.#work = [this.#read(), this.#write(), this.#renew(), this.#watch(metadata.resourceVersion ?? "")];
  }

  async seen(): Promise<Seen> {
    await this.#reading.catch(() => {}); // its latency counts for this case, however long it takes
    const written = this.#written.splice(0);
    const last = written.at(-1);
    const hasCome = async (): Promise<boolean> => last === undefined || this.#failures.length > 0 || this.#watched.includes(last);
    await waitFor("the bystander's watch to show its last write", hasCome);
    const shown = this.#watched.splice(0, last === undefined ? 0 : this.#watched.indexOf(last) + 1);
    const watched = shown.filter((number) => !this.#unclear.has(number));
    const [latenciesMs, failures] = [this.#latenciesMs.splice(0), this.#failures.splice(0)];
    const longestRenewalMs = this.#longestRenewalMs;
    this.#longestRenewalMs = 0;
    return { latenciesMs, failures, written, watched, longestRenewalMs };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const client of [this.#reader, this.#writer, this.#renewer, this.#watcher]) client.close();
    await Promise.all(this.#work);
  }

  #read(): Promise<void> {
    return this.#every(readEveryMs, "GET", () => {
      this.#reading = this.#send(this.#reader, "GET", `${home}/counter`).then((ms) => void this.#latenciesMs.push(ms));
      return this.#reading;
    });
  }

  #write(): Promise<void> {
    let at = 0;
    return this.#every(writeEveryMs, "PUT", async () => {
      const next = ++at;
      this.#unclear.add(next);
      const body = { metadata: { name: "counter" }, data: { at: String(next) } };
      await this.#send(this.#writer, "PUT", `${home}/counter`, body);
      this.#unclear.delete(next);
      this.#written.push(next);
    });
  }

  #renew(): Promise<void> {
    let renewed = performance.now();
    let renewedWaited = this.#queue.waitedMs();
    return this.#every(renewEveryMs, "lease", async () => {
      const spec = { renewTime: new Date().toISOString().replace("Z", "000Z") };
      await this.#send(this.#renewer, "PATCH", `${leasePath}/held`, { spec });
      const [now, waited] = [performance.now(), this.#queue.waitedMs()];
      this.#longestRenewalMs = Math.max(this.#longestRenewalMs, now - renewed - (waited - renewedWaited));
      [renewed, renewedWaited] = [now, waited];
    });
  }

  async #watch(from: string): Promise<void> {
    const { signal } = this.#stopping;
    let resourceVersion = from;
    try {
      while (!signal.aborted) {
        const began = performance.now();
        const events = this.#watcher.watch(configMaps, { namespace: "bystander" }, { signal, resourceVersion });
        for await (const { type, object } of events) {
          resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
          if (type === "MODIFIED") this.#watched.push(Number((object as { data?: { at?: string } }).data?.at));
        }
        if (performance.now() - began < leastWatchMs) this.#fail("the watch has ended");
      }
    } catch (err) {
      this.#fail(`the watch: ${(err as Error).message}`);
    }
  }

  async #every(periodMs: number, what: string, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const next = performance.now() + periodMs;
      await work().catch((err: Error) => this.#fail(`${what}: ${err.message}`));
      await sleep(Math.max(0, next - performance.now()), undefined, { signal }).catch(() => {});
    }
  }

  /** @returns its duration without the time spent waiting for a CPU, see RunQueue @throws Error for a status of 300 and above */
  async #send(from: Client, method: string, path: string, body?: object): Promise<number> {
    const [began, waited] = [performance.now(), this.#queue.waitedMs()];
    const headers = { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
    const answer = await from.raw(method, path, body === undefined ? {} : { headers, body: JSON.stringify(body) });
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.body.toString("utf8", 0, 300)}`);
    const tookMs = performance.now() - began;
    return Math.max(0, tookMs - (this.#queue.waitedMs() - waited));
  }

  #fail(what: string): void {
    if (!this.#stopping.signal.aborted) this.#failures.push(what);
  }
}

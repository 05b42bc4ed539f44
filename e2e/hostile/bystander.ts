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
  const stop = new AbortController();
  const { signal } = stop;
  const clients = [client(), client(), client(), client()] as const;
  const [reader, writer, renewer, watcher] = clients;
  const all = { latenciesMs: [] as number[], failures: [] as string[], written: [] as number[], watched: [] as number[] };
  /** Numbers whose writes failed: they may be stored or not. */
  const unclear = new Set<number>();
  let longestRenewalMs = 0;
  const fail = (what: string): void => void (signal.aborted || all.failures.push(what));
  /** @returns its duration without the time spent waiting for a CPU, see RunQueue @throws Error for a status of 300 and above */
  const send = async (from: Client, method: string, path: string, body?: object): Promise<number> => {
    const [began, waited] = [performance.now(), queue.waitedMs()];
    const headers = { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
    const answer = await from.raw(method, path, body === undefined ? {} : { headers, body: JSON.stringify(body) });
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.body.toString("utf8", 0, 300)}`);
    const tookMs = performance.now() - began;
    return Math.max(0, tookMs - (queue.waitedMs() - waited));
  };
  const every = async (periodMs: number, what: string, work: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) {
      const next = performance.now() + periodMs;
      await work().catch((err: Error) => fail(`${what}: ${err.message}`));
      await sleep(Math.max(0, next - performance.now()), undefined, { signal }).catch(() => {});
    }
  };

  await send(writer, "POST", home, { metadata: { name: "counter" }, data: { at: "0" } });
  const spec = { holderIdentity: "bystander", leaseDurationSeconds: 15 };
  await send(renewer, "POST", leasePath, { metadata: { name: "held" }, spec });
  const start = await watcher.list(configMaps, { namespace: "bystander" });
  let at = 0;
  let reading: Promise<void> = Promise.resolve();
  let renewed = performance.now();
  let renewedWaited = queue.waitedMs();

  const work = [
    every(readEveryMs, "GET", () => {
      reading = send(reader, "GET", `${home}/counter`).then((ms) => void all.latenciesMs.push(ms));
      return reading;
    }),
    every(writeEveryMs, "PUT", async () => {
      const next = ++at;
      unclear.add(next);
      const body = { metadata: { name: "counter" }, data: { at: String(next) } };
      await send(writer, "PUT", `${home}/counter`, body);
      unclear.delete(next);
      all.written.push(next);
    }),
    every(renewEveryMs, "lease", async () => {
      await send(renewer, "PATCH", `${leasePath}/held`, { spec: { renewTime: new Date().toISOString().replace("Z", "000Z") } });
      const [now, waited] = [performance.now(), queue.waitedMs()];
      longestRenewalMs = Math.max(longestRenewalMs, now - renewed - (waited - renewedWaited));
      [renewed, renewedWaited] = [now, waited];
    }),
    (async () => {
      let { resourceVersion = "" } = start.metadata;
      try {
        while (!signal.aborted) {
          const began = performance.now();
          for await (const { type, object } of watcher.watch(
            configMaps,
            { namespace: "bystander" },
            { signal, resourceVersion },
          )) {
            resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
            if (type === "MODIFIED") all.watched.push(Number((object as { data?: { at?: string } }).data?.at));
          }
          if (performance.now() - began < leastWatchMs) fail("the watch has ended");
        }
      } catch (err) {
        fail(`the watch: ${(err as Error).message}`);
      }
    })(),
  ];

  return {
    async seen() {
      await reading.catch(() => {}); // its latency counts for this case, however long it takes
      const written = all.written.splice(0);
      const last = written.at(-1);
      const hasCome = async (): Promise<boolean> => last === undefined || all.failures.length > 0 || all.watched.includes(last);
      await waitFor("the bystander's watch to show its last write", hasCome);
      const shown = all.watched.splice(0, last === undefined ? 0 : all.watched.indexOf(last) + 1);
      const watched = shown.filter((number) => !unclear.has(number));
      const [latenciesMs, failures] = [all.latenciesMs.splice(0), all.failures.splice(0)];
      const renewal = longestRenewalMs;
      longestRenewalMs = 0;
      return { latenciesMs, failures, written, watched, longestRenewalMs: renewal };
    },
    async stop() {
      stop.abort();
      for (const one of clients) one.close();
      await Promise.all(work);
    },
  };
}

import { isIPv6 } from "node:net";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import { type NodeSamples, parseSamples } from "./samples.ts";
import type { UsageStore } from "./usage-store.ts";

/** Where a node's kubelet answers: `https://192.0.2.1:10250`. @returns undefined while the Node does not say so */
function kubeletUrl({ status }: Node): string | undefined {
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
  const addresses = status?.addresses ?? [];
  const address = preferred.map((wanted) => addresses.find(({ type }) => type === wanted)?.address).find(Boolean);
  if (!port || address === undefined) return undefined;
  return `https://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** Source: metrics-server's --kubelet-preferred-address-types in its manifest */
const preferred = ["InternalIP", "ExternalIP", "Hostname"];

interface ScraperOptions {
  readonly nodes: () => readonly Node[];
  readonly newClient: (url: string) => Pick<Client, "raw" | "close">;
  readonly store: UsageStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/** Time between two rounds, as in the manifest of metrics-server. */
export const periodMs = 15_000;
const timeoutMs = 10_000;
/** Kubelets that are queried at the same time. */
const mostAtOnce = 50;

interface Scraper {
  /** Asks all kubelets once. */
  round(signal: AbortSignal): Promise<void>;
  /** Rounds until `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** When the last round ended, monotonic; undefined before. */
  readonly lastRound: number | undefined;
}

export function newScraper(options: ScraperOptions): Scraper {
  const { store, clock, log, metrics } = options;
  const clients = new Map<string, Pick<Client, "raw" | "close">>();
  const failing = new Set<string>();
  let lastRound: number | undefined;
  const duration = metrics.histogram(definitions.metrics_server_kubelet_request_duration_seconds);
  const requests = metrics.counter(definitions.metrics_server_kubelet_request_total);

  const scrape = async (url: string, signal: AbortSignal): Promise<NodeSamples> => {
    const client = clients.getOrInsertComputed(url, () => options.newClient(url));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const { status, body } = await client.raw("GET", "/metrics/resource", { signal: limit });
    if (status !== 200) throw new Error(`${url} answers ${status}: ${body.toString("utf8", 0, 200)}`);
    return parseSamples(body.toString("utf8"), clock.now());
  };
  const scrapeNode = async (node: Node, signal: AbortSignal): Promise<void> => {
    const name = node.metadata.name ?? "";
    const started = clock.monotonic();
    try {
      const url = kubeletUrl(node);
      if (url === undefined) throw new Error("the Node has no address or kubelet port");
      store.put(name, await scrape(url, signal));
      if (failing.delete(name)) log.info("a node reports metrics again", { node: name });
      requests.labels("true").inc();
    } catch (err) {
      if (signal.aborted) return;
      store.put(name, undefined);
      requests.labels("false").inc();
      // Once for each time it fails, not every round.
      if (!failing.has(name)) log.error("cannot get metrics of a node", err, { node: name });
      failing.add(name);
    } finally {
      duration.labels(name).observe((clock.monotonic() - started) / 1000);
    }
  };
  const forgetOthers = (nodes: readonly Node[]): void => {
    const names = new Set(nodes.map(({ metadata }) => metadata.name ?? ""));
    const urls = new Set(nodes.map(kubeletUrl));
    store.keep(names);
    for (const name of failing) if (!names.has(name)) failing.delete(name);
    for (const [url, client] of clients) {
      if (urls.has(url)) continue;
      clients.delete(url);
      client.close();
    }
  };
  const round = async (signal: AbortSignal): Promise<void> => {
    const nodes = options.nodes();
    forgetOthers(nodes);
    await forEachLimited(nodes, mostAtOnce, async (node) => {
      if (!signal.aborted) await scrapeNode(node, signal);
    });
    lastRound = clock.monotonic();
  };
  return {
    round,
    get lastRound() {
      return lastRound;
    },
    async run(signal) {
      while (!signal.aborted) {
        const started = clock.monotonic();
        await round(signal);
        await clock.sleep(Math.max(0, started + periodMs - clock.monotonic()), signal).catch(() => {});
      }
      for (const client of clients.values()) client.close();
    },
  };
}

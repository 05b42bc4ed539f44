import type { NodeSamples, Sample } from "./samples.ts";

/** What something used over a window. */
export interface Usage {
  /** End of the window, in ms since the epoch. */
  readonly at: number;
  readonly windowMs: number;
  /** Cores, on average over the window. */
  readonly cpuCores: number;
  /** At the end of the window. */
  readonly memoryBytes: number;
}

export interface PodUsage {
  /** Of the container that was measured first, as metrics-server reports it for the pod. */
  readonly at: number;
  readonly windowMs: number;
  readonly containers: ReadonlyMap<string, Usage>;
}

/** The last two samples of every node and container. */
export interface UsageStore {
  /** Takes a node's samples; undefined: the node could not be queried, or is gone, so nothing on it is known any longer. */
  put(nodeName: string, samples: NodeSamples | undefined): void;
  /** Forgets nodes that are not named. */
  keep(nodeNames: ReadonlySet<string>): void;
  node(name: string): Usage | undefined;
  /** @param key `namespace/name` */
  pod(key: string): PodUsage | undefined;
}

interface Pair {
  readonly last: Sample;
  readonly previous: Sample | undefined;
}

interface NodePairs {
  readonly node: Pair | undefined;
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Pair>>;
}

/** A container that runs for this long at least has a usage since its start. Source: metrics-server pkg/storage/types.go */
const youngestMs = 10_000;
/** Containers beyond this age are compared with their previous sample only. */
const oldestFreshMs = 60_000;

/** Source: metrics-server pkg/storage/node.go, pod.go */
export function newUsageStore(): UsageStore {
  const nodes = new Map<string, NodePairs>();
  const nodeOfPod = new Map<string, string>();

  const forget = (nodeName: string): void => {
    for (const key of nodes.get(nodeName)?.pods.keys() ?? []) if (nodeOfPod.get(key) === nodeName) nodeOfPod.delete(key);
    nodes.delete(nodeName);
  };
  return {
    put(nodeName, samples) {
      const before = nodes.get(nodeName);
      forget(nodeName);
      if (samples === undefined) return;
      const pods = new Map<string, Map<string, Pair>>();
      for (const [key, containers] of samples.pods) {
        const known = before?.pods.get(key);
        pods.set(key, new Map([...containers].map(([name, sample]) => [name, nextPair(known?.get(name), sample)])));
        nodeOfPod.set(key, nodeName);
      }
      nodes.set(nodeName, { node: samples.node && nextPair(before?.node, samples.node), pods });
    },
    keep(names) {
      for (const name of [...nodes.keys()]) if (!names.has(name)) forget(name);
    },
    node(name) {
      const pair = nodes.get(name)?.node;
      return pair && usageOf(pair);
    },
    pod(key) {
      const containers = nodes.get(nodeOfPod.get(key) ?? "")?.pods.get(key);
      return containers && podUsageOf(containers);
    },
  };
}

/** Pure: the pair after another sample. */
function nextPair(known: Pair | undefined, sample: Sample): Pair {
  const { startedAt } = sample;
  const age = startedAt === undefined ? Number.POSITIVE_INFINITY : sample.at - startedAt;
  const sinceStart = startedAt !== undefined && age >= youngestMs && age < oldestFreshMs;
  const start = sinceStart ? { at: startedAt, cpuSeconds: 0, memoryBytes: 0, startedAt } : undefined;
  if (known === undefined) return { last: sample, previous: start };
  // The kubelet measures less often than requested.
  if (sample.at === known.last.at) return known;
  // The node's clock was set back: what was measured before says nothing about a window of the new time.
  if (sample.at < known.last.at) return { last: sample, previous: undefined };
  // After the clock was set back, a container's start time may lie in the future.
  const isStartedSince = startedAt !== known.last.startedAt && (startedAt ?? 0) > known.last.at;
  const isRestarted = sample.cpuSeconds < known.last.cpuSeconds || isStartedSince;
  return { last: sample, previous: isRestarted ? start : known.last };
}

function usageOf({ last, previous }: Pair): Usage | undefined {
  if (previous === undefined) return undefined;
  const windowMs = last.at - previous.at;
  const cpuCores = (last.cpuSeconds - previous.cpuSeconds) / (windowMs / 1000);
  return { at: last.at, windowMs, cpuCores, memoryBytes: last.memoryBytes };
}

function podUsageOf(pairs: ReadonlyMap<string, Pair>): PodUsage | undefined {
  const containers = new Map<string, Usage>();
  let earliest: Usage | undefined;
  for (const [name, pair] of pairs) {
    const usage = usageOf(pair);
    if (usage === undefined) return undefined;
    containers.set(name, usage);
    if (earliest === undefined || usage.at < earliest.at) earliest = usage;
  }
  return earliest && { at: earliest.at, windowMs: earliest.windowMs, containers };
}

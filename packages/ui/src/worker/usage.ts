/** Usage of nodes and pods from the metrics API, if it is served. */
import { type Api, ApiError, pause } from "../api.ts";
import { amount } from "../model/kinds.ts";
import type { FromWorker, Usage } from "../model/protocol.ts";

const api = "/apis/metrics.k8s.io/v1beta1";
const everyMs = 15_000;
/** Retry interval when the metrics API is not served or not permitted. */
const withoutMs = 60_000;
/** Above this number of pods metrics are requested less often: a response has several megabytes. */
const manyPods = 5_000;
const manyEveryMs = 60_000;

interface Metrics {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly usage?: Amounts;
  readonly containers?: readonly { readonly usage: Amounts }[];
}
interface Amounts {
  readonly cpu?: string;
  readonly memory?: string;
}

export async function followUsage(
  client: Api,
  post: (message: FromWorker) => void,
  podCount: () => number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = podCount() > manyPods ? manyEveryMs : everyMs;
    try {
      const [nodes, pods] = await Promise.all([read(client, "nodes", signal), read(client, "pods", signal)]);
      post({ type: "usage", nodes: nodes.map(usageOf), pods: pods.map(usageOf) });
      if (nodes.length + pods.length === 0) waitMs = withoutMs;
    } catch (err) {
      if (!(err instanceof ApiError)) throw err;
    }
    await pause(waitMs, signal);
  }
}

/** @returns an empty list when the resource is not served or the user may not read it */
async function read(client: Api, resource: string, signal: AbortSignal): Promise<readonly Metrics[]> {
  try {
    return (await client.get<{ readonly items: readonly Metrics[] }>(`${api}/${resource}`, signal)).items;
  } catch (err) {
    if (signal.aborted || !(err instanceof ApiError)) return [];
    if (err.code === 403 || err.code === 404 || err.code === 503) return [];
    throw err;
  }
}

function usageOf({ metadata: { name, namespace }, usage, containers }: Metrics): Usage {
  const all = usage === undefined ? (containers ?? []).map((one) => one.usage) : [usage];
  const sum = (of: (amounts: Amounts) => string | undefined): number => all.reduce((total, one) => total + amount(of(one)), 0);
  const key = namespace === undefined ? name : `${namespace}/${name}`;
  return [key, Math.round(sum(({ cpu }) => cpu) * 1000), Math.round(sum(({ memory }) => memory))];
}

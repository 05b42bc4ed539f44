import { Agent, request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";

interface Pod {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  spec: { nodeName?: string };
  status: { conditions?: { type: string; status: string }[] };
}
interface Answer {
  code: number;
  body: unknown;
}

/** In the time of `performance.now()`. */
export interface Moved {
  readonly evictedAt: number;
  readonly readyAt: number;
}

/** Finds out when the pod of a Deployment of one replica is evicted, and another one is ready, which takes both leaders and a kubelet. */
export class Moves {
  readonly #options: { servers: readonly string[]; ca: string; token: string; timeoutMs: number };
  readonly #agent: Agent;
  #server = 0;

  /** @param options `timeoutMs`: after which it uses another server */
  constructor(options: { servers: readonly string[]; ca: string; token: string; timeoutMs: number }) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, ca: options.ca });
  }

  /**
   * Sends the request to one server after the other until one answers, so it may be executed several times. 401 is no answer: a
   * server whose clock is an hour ahead refuses the client's token.
   */
  async request(method: string, path: string, body?: unknown, type = "application/json"): Promise<Answer> {
    for (;;) {
      const answer = await this.#ask(method, path, body, type).catch(() => undefined);
      if (answer !== undefined && answer.code < 500 && answer.code !== 401) return answer;
      this.#server = (this.#server + 1) % this.#options.servers.length;
      await delay(20);
    }
  }

  /** Resolves when one pod is ready and there is no other. */
  async settled(timeoutMs: number): Promise<void> {
    await waitFor(async (seen) => seen(await this.#pods()).filter((pod) => !isReady(pod)).length === 0, {
      ...{ timeoutMs, intervalMs: 100, what: "the pod to be ready" },
    });
  }

  /** @param options `evict`: by a taint, which is removed in the end */
  async next({ evict, timeoutMs }: { evict: boolean; timeoutMs: number }): Promise<Moved> {
    const before = await this.#pods();
    const uids = new Set(before.map(({ metadata }) => metadata.uid));
    const node = before[0]?.spec.nodeName;
    const taint = (taints: unknown[]): Promise<unknown> =>
      this.request("PATCH", `/api/v1/nodes/${node}`, { spec: { taints } }, "application/merge-patch+json");
    if (evict) await taint([{ key: "ha", effect: "NoExecute" }]);
    const options = { timeoutMs, intervalMs: 100 };
    const isLeaving = (pods: Pod[]): boolean =>
      !pods.some(({ metadata: { uid, deletionTimestamp } }) => uids.has(uid) && !deletionTimestamp);
    const hasSuccessor = (pods: Pod[]): boolean => pods.some((pod) => !uids.has(pod.metadata.uid) && isReady(pod));
    try {
      await waitFor(async (seen) => isLeaving(seen(await this.#pods())), { ...options, what: "an eviction" });
      const evictedAt = performance.now();
      await waitFor(async (seen) => hasSuccessor(seen(await this.#pods())), { ...options, what: "its successor" });
      return { evictedAt, readyAt: performance.now() };
    } finally {
      if (evict) await taint([]);
    }
  }

  async #pods(): Promise<Pod[]> {
    const { body } = await this.request("GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dmoving");
    return (body as { items: Pod[] }).items;
  }

  #ask(method: string, path: string, body: unknown, type: string): Promise<Answer> {
    const { servers, token, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const sent = request(servers[this.#server] + path, {
        ...{ method, agent: this.#agent, signal: AbortSignal.timeout(timeoutMs) },
        headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": type }) },
      });
      sent.on("error", reject);
      sent.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("error", reject);
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          try {
            resolve({ code: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) });
          } catch (err) {
            reject(err);
          }
        });
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

const isReady = ({ metadata, status }: Pod): boolean =>
  !metadata.deletionTimestamp && (status.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { internalError, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { createServer } from "@coxswain/apimachinery/transport/node-http";
import { answerResource, targetOf } from "@coxswain/cluster-services/metrics-api/api";
import { serviceName, serviceNamespace } from "@coxswain/cluster-services/metrics-api/names";
import { register } from "@coxswain/cluster-services/metrics-api/register";
import type { PodUsage, Usage } from "@coxswain/cluster-services/metrics-api/usage-store";
import { InProcessTls } from "../../tls/in-process-tls.ts";
import { amountsOf, type ContainerUsages } from "./usage.ts";

interface Inventory {
  readonly nodes: Pick<Lister<Node>, "get" | "list">;
  readonly pods: Pick<Lister<Pod>, "get" | "list" | "inNamespace">;
}

/** Default of metrics-server. */
const windowMs = 15_000;
/** Not a listening address: the API server's connections to the Service's address are handled in this process. */
const nominalAddress = "10.128.255.254";
const port = 443;

/** Serves `metrics.k8s.io` for fake nodes: usage of Pods is taken from their rules; usage of a node is the sum of its Pods. */
export class FakeMetrics {
  readonly #inventory: Inventory;
  readonly #usageOf: (pod: Pod) => ContainerUsages | undefined;
  readonly #clock: Clock;
  readonly #tls: InProcessTls;

  constructor(inventory: Inventory, usageOf: (pod: Pod) => ContainerUsages | undefined, clock: Clock) {
    this.#inventory = inventory;
    this.#usageOf = usageOf;
    this.#clock = clock;
    const server = createServer((request, response) => this.#answer(request, response));
    this.#tls = new InProcessTls(server, [`${serviceName}.${serviceNamespace}.svc`]);
  }

  /** Registers the APIService. @throws Error when another server is registered; errors of the API server */
  async register(
    client: Client,
    serve: (host: string, accept: (connection: Duplex) => void) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await register(client, { address: nominalAddress, port, caPem: await this.#tls.ca() }, signal);
    const { spec } = await client.get<Service>(services, { namespace: serviceNamespace, name: serviceName }, { signal });
    serve(`${spec?.clusterIP}:${port}`, this.#tls.accept);
  }

  /** The API server has authorized the request; only it can connect. */
  #answer(request: IncomingMessage, response: ServerResponse): void {
    const send = (code: number, body: unknown): void => {
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    try {
      send(200, this.#bodyOf(request));
    } catch (err) {
      const { code, status } = err instanceof StatusError ? err : internalError(err);
      send(code, status);
    }
  }

  /** @throws StatusError */
  #bodyOf({ url = "/", headers: { accept = "" } }: IncomingMessage): unknown {
    const { pathname, searchParams: query } = new URL(url, "http://metrics");
    const target = targetOf(pathname);
    if (target === undefined) throw notFound({ group: "", resource: "" }, "");
    if (target.kind === "document") return target.body();
    const store = { pod: (key: string) => this.#podUsage(key), node: (name: string) => this.#nodeUsage(name) };
    return answerResource({ target, query, accept }, this.#inventory, store, this.#clock.now());
  }

  #podUsage(key: string): PodUsage | undefined {
    const pod = this.#inventory.pods.get(key);
    return pod && this.#usageOfPod(pod);
  }

  /** Usage of the running containers. */
  #usageOfPod(pod: Pod): PodUsage | undefined {
    const rule = this.#usageOf(pod);
    const now = this.#clock.now();
    const containers = new Map<string, Usage>();
    for (const { name: container, state } of pod.status?.containerStatuses ?? []) {
      if (rule === undefined || state?.running === undefined) continue;
      const usage = typeof rule === "function" ? rule({ pod, container, now }) : rule;
      if (usage !== undefined) containers.set(container, { at: now, windowMs, ...amountsOf(usage) });
    }
    return containers.size === 0 ? undefined : { at: now, windowMs, containers };
  }

  #nodeUsage(name: string): Usage {
    const all = this.#inventory.pods
      .list()
      .filter(({ spec }) => spec.nodeName === name)
      .flatMap((pod) => [...(this.#usageOfPod(pod)?.containers.values() ?? [])]);
    const sum = (figure: "cpuCores" | "memoryBytes"): number => all.reduce((total, usage) => total + usage[figure], 0);
    return { at: this.#clock.now(), windowMs, cpuCores: sum("cpuCores"), memoryBytes: sum("memoryBytes") };
  }
}

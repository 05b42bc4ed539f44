import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { isServerAway } from "../server-away.ts";
import { type Assignment, assigningAddresses, type Cluster, statusAddresses } from "./assign.ts";
import type { LoadBalancerMetrics } from "./metrics.ts";

interface StatusWriterOptions {
  readonly client: Client;
  readonly reconnection: Reconnection;
  /** As the caches show it now. */
  readonly cluster: () => Cluster;
  readonly recorder: EventRecorder;
  readonly metrics: LoadBalancerMetrics;
  readonly turns: Turns;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Gathers changes that come together, such as those of many Services of a chart. */
const gatherMs = 200;
const retryBackoff = { initialMs: 500, maxMs: 30_000, resetAfterMs: 60_000, factor: 2, jitter: 0.2 };

/** Keeps `status.loadBalancer` of Services as `assignAddresses` says, and empty where the type is another one now. */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  #reported = new Map<ObjectKey, string>();
  #failure: string | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /** Services, endpoints or Nodes have changed. */
  changed(): void {
    this.#wake.resolve();
  }

  /** @throws Error while statuses cannot be written */
  check(): void {
    if (this.#failure !== undefined) throw new Error(this.#failure);
  }

  /** Until `signal` is aborted. Failures are retried; does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, reconnection } = this.#options;
    const backoff = newBackoff({ ...retryBackoff, clock });
    const stop = (): void => this.#wake.resolve();
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      let pauseMs = gatherMs;
      try {
        await this.sync(signal);
        this.#failure = undefined;
      } catch (err) {
        if (signal.aborted) break;
        if (isServerAway(err)) {
          this.#failure = causesOf(err);
          await reconnection.wait(signal).catch(() => {});
          continue;
        }
        pauseMs = backoff.next();
        this.#failure = causesOf(err);
        this.#wake.resolve();
        log.error("cannot write the addresses of Services; trying again", err, { afterMs: Math.round(pauseMs) });
      }
      if (signal.aborted) break;
      await this.#wake.promise;
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
    signal.removeEventListener("abort", stop);
  }

  /** Writes every status that differs. @throws the first error of the API server, after all were tried if it answers */
  async sync(signal: AbortSignal): Promise<void> {
    const { cluster, metrics, turns } = this.#options;
    const now = cluster();
    const assignments = await turns.run(assigningAddresses(now));
    const served = new Set(assignments.map(({ service }) => service));
    let failure: unknown;
    const write = async (service: Service, addresses: readonly string[]): Promise<void> => {
      const turn = turns.next();
      if (turn !== undefined) await turn;
      if (statusAddresses(service).join() === addresses.join()) return;
      await this.#write(service, addresses, signal).catch((err: unknown) => {
        if (isServerAway(err)) throw err; // the API server is unreachable: the other writes would fail too
        failure ??= err;
      });
    };
    for (const assignment of assignments) {
      this.#report(assignment);
      await write(assignment.service, assignment.addresses);
    }
    for (const service of now.services) {
      if (!served.has(service) && service.spec.type !== "LoadBalancer") await write(service, []);
    }
    const keys = new Set(assignments.map(({ service }) => keyOf(service)));
    for (const key of this.#reported.keys()) if (!keys.has(key)) this.#reported.delete(key);
    metrics.services.set(assignments.length);
    metrics.without.set(assignments.filter(({ problem }) => problem !== undefined).length);
    if (failure !== undefined) throw failure;
  }

  async #write(service: Service, addresses: readonly string[], signal: AbortSignal): Promise<void> {
    const { client, log, metrics } = this.#options;
    const loadBalancer = addresses.length === 0 ? {} : { ingress: addresses.map((ip) => ({ ip })) };
    try {
      const changed: Service = { ...service, status: { ...service.status, loadBalancer } };
      await client.update<Service>(services, changed, { signal, subresource: "status" });
      log.info("set the addresses of a Service", { service: keyOf(service), addresses: addresses.join() });
    } catch (err) {
      // It has changed or is gone: the caches will say so.
      if (isNotFound(err) || isConflict(err)) return;
      metrics.failures.inc();
      throw err;
    }
  }

  #report({ service, addresses, problem }: Assignment): void {
    const key = keyOf(service);
    const text = problem === undefined ? "" : `${problem.reason} ${problem.message}`;
    const before = this.#reported.get(key) ?? "";
    this.#reported.set(key, text);
    const object = { ...service, apiVersion: "v1", kind: "Service" };
    const { recorder } = this.#options;
    if (problem !== undefined && text !== before) recorder.event(object, "Warning", problem.reason, problem.message);
    if (problem === undefined && addresses.length > 0 && statusAddresses(service).join() !== addresses.join())
      recorder.event(object, "Normal", "AddressAssigned", `the load balancer's address is ${addresses.join(", ")}`);
  }
}

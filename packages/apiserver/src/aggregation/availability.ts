/**
 * Maintains the condition Available of APIServices: true when the service exists, has endpoints, and answers discovery.
 * Requests are proxied to available ones only.
 * Source: kube-aggregator pkg/controllers/status/available_controller.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import {
  type Controller,
  done,
  newController,
  type QueueMetrics,
  type Result,
} from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { APIServiceCondition } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices as apiServicesRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { exponentialBackoff } from "@coxswain/apimachinery/workqueue/rate-limiters";
import { type ApiService, availableCondition, isAvailable, nameOf, serviceOf } from "./api-services.ts";
import type { Probe } from "./discovery-probe.ts";
import type { AggregatorMetrics } from "./metrics.ts";

interface AvailabilityOptions {
  readonly client: Client;
  readonly apiServices: SharedInformer<ApiService>;
  readonly services: SharedInformer<Service & KubeObject>;
  readonly endpoints: SharedInformer<Endpoints & KubeObject>;
  readonly probe: Probe;
  readonly metrics: AggregatorMetrics;
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Resync interval, because network failures cause no watch events. */
const recheckMs = 30_000;
const workers = 5;

export function newAvailabilityController(options: AvailabilityOptions): Controller {
  const { apiServices, services, endpoints, clock, log } = options;
  apiServices.addIndex(byService, (apiService) => {
    const service = serviceOf(apiService);
    return service === undefined ? [] : [`${service.namespace}/${service.name}`];
  });
  const behind = ({ metadata }: KubeObject): string[] =>
    apiServices.lister.byIndex(byService, `${metadata.namespace}/${metadata.name}`).map(nameOf);
  return newController({
    name: "AvailableConditionController",
    sources: [enqueueSelf(apiServices), enqueueMapped(services, behind), enqueueMapped(endpoints, behind)],
    reconcile: (name, signal) => reconcile(options, name, signal),
    workers,
    limiter: exponentialBackoff(5, recheckMs),
    metrics: options.queues,
    turns: options.turns,
    clock,
    log,
  });
}

const byService = "service";

async function reconcile(options: AvailabilityOptions, name: string, signal: AbortSignal): Promise<Result> {
  const { apiServices, metrics, clock } = options;
  const apiService = apiServices.lister.get(name);
  if (apiService === undefined) {
    metrics.unavailable.remove(name);
    return done;
  }
  const verdict = verdictOnObjects(options, apiService) ?? (await verdictOfProbe(options, apiService, signal));
  const next = withCondition(apiService, verdict, clock.now());
  metrics.unavailable.labels(name).set(isAvailable(next) ? 0 : 1);
  if (!semanticEqual(apiService.status, next.status)) {
    await options.client.update<ApiService>(apiServicesRef, next, { subresource: "status", signal });
    if (isAvailable(apiService) && !isAvailable(next)) metrics.becameUnavailable.labels(name, verdict.reason).inc();
  }
  // Requeued with backoff.
  if (verdict.reason === failedProbe) throw new Error(verdict.message);
  return serviceOf(apiService) === undefined ? done : { requeueAfterMs: recheckMs };
}

interface Verdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

const failedProbe = "FailedDiscoveryCheck";

const no = (reason: string, message: string): Verdict => ({ status: "False", reason, message });

/** Checks that need no request; undefined when the server must be probed. */
function verdictOnObjects(
  { services, endpoints }: { services: Pick<Listed<Service>, "lister">; endpoints: Pick<Listed<Endpoints>, "lister"> },
  apiService: ApiService,
): Verdict | undefined {
  const reference = serviceOf(apiService);
  if (reference === undefined) {
    return { status: "True", reason: "Local", message: "Local APIServices are always available" };
  }
  const { namespace, name, port } = reference;
  const key = `${namespace}/${name}`;
  const where = `service/${name} in ${goQuote(namespace)}`;
  const service = services.lister.get(key);
  if (service === undefined) return no("ServiceNotFound", `${where} is not present`);
  if ((service.spec?.type ?? "ClusterIP") !== "ClusterIP") return undefined;
  const servicePort = service.spec?.ports?.find((candidate) => candidate.port === port);
  if (servicePort === undefined) return no("ServicePortError", `${where} is not listening on port ${port}`);
  const found = endpoints.lister.get(key);
  if (found === undefined) return no("EndpointsNotFound", `cannot find endpoints for ${where}`);
  const portName = servicePort.name ?? "";
  const isServed = found.subsets?.some(
    ({ addresses = [], ports = [] }) => addresses.length > 0 && ports.some(({ name: own = "" }) => own === portName),
  );
  if (isServed) return undefined;
  return no("MissingEndpoints", `endpoints for ${where} have no addresses with port name ${goQuote(portName)}`);
}

type Listed<T> = { readonly lister: { get(key: string): T | undefined } };

async function verdictOfProbe({ probe }: AvailabilityOptions, apiService: ApiService, signal: AbortSignal): Promise<Verdict> {
  const problem = await probe(apiService, signal);
  if (problem === undefined) return { status: "True", reason: "Passed", message: "all checks passed" };
  return no(failedProbe, problem);
}

/** lastTransitionTime changes with the status only, not with reason or message. */
function withCondition(apiService: ApiService, { status, reason, message }: Verdict, nowMs: number): ApiService {
  const before = availableCondition(apiService);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : formatTime(nowMs);
  const condition: APIServiceCondition = {
    type: "Available",
    status,
    ...(lastTransitionTime ? { lastTransitionTime } : {}),
    reason,
    message,
  };
  const conditions = apiService.status?.conditions ?? [];
  const next = before === undefined ? [...conditions, condition] : conditions.map((one) => (one === before ? condition : one));
  return { ...apiService, status: { ...apiService.status, conditions: next } };
}

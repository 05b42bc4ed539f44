/**
 * The aggregation layer: serves the APIs of other servers below this server's paths. Each APIService assigns a group version
 * to a server; those with a service are proxied, and all of them appear in discovery.
 * Source: kube-aggregator pkg/apiserver/apiserver.go, cmd/kube-apiserver/app/aggregator.go
 */

import type { QueueMetrics } from "@coxswain/apimachinery/controller/controller";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  apiServices as apiServicesRef,
  endpoints as endpointsRef,
  services as servicesRef,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { RequestContext } from "../request/context.ts";
import {
  type AnnouncedGroup,
  type ApiService,
  aggregatorGroup,
  announcedGroups,
  legacyName,
  nameOf,
  serviceOf,
} from "./api-services.ts";
import { type Autoregistration, newAutoregistration } from "./autoregistration.ts";
import { newAvailabilityController } from "./availability.ts";
import { newBackends } from "./backends.ts";
import { newProbe } from "./discovery-probe.ts";
import { newAggregatorMetrics } from "./metrics.ts";
import { AggregatedOpenApi } from "./openapi/aggregated.ts";
import { newFetch } from "./openapi/download.ts";
import { newProxy } from "./proxy.ts";
import type { ProxyCertificate } from "./proxy-certificate.ts";
import type { ServiceResolver } from "./service-resolver.ts";

interface AggregatorOptions {
  readonly informers: InformerFactory;
  /** Dialer for servers behind services; undefined: direct. */
  readonly tunnel: Connect | undefined;
  readonly certificate: Pick<ProxyCertificate, "current">;
  readonly resolve: ServiceResolver;
  /** Group versions served by this server itself. */
  readonly builtIn: readonly GroupVersion[];
  /** Called for requests rejected here, without reaching the aggregated server. */
  readonly refused: (ctx: RequestContext, code: number) => void;
  /** Feature gate OpenAPIV3. */
  readonly openApiV3: boolean;
  readonly metrics: MetricsRegistry;
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Aggregator {
  /** The APIServices with a Service: those that other servers answer for. */
  readonly remote: { readonly size: number };
  /** @returns undefined when this server serves the request itself; else resolves when the request is answered. */
  handle(ctx: RequestContext): Promise<void> | undefined;
  /** Groups listed in `/apis`, in order. */
  groups(): readonly AnnouncedGroup[];
  /** True when the APIService informer has synced; until then a 404 for an unknown path would be wrong. */
  readonly synced: boolean;
  waitForSync(signal: AbortSignal): Promise<void>;
  readonly autoregistration: Autoregistration;
  readonly openApi: AggregatedOpenApi;
  /** Runs availability checks and OpenAPI downloads of aggregated servers until `signal` is aborted. */
  checkAvailability(signal: AbortSignal): Promise<void>;
}

export function newAggregator(options: AggregatorOptions): Aggregator {
  const { informers, resolve, queues, turns, clock, log } = options;
  const apiServices = informers.for<ApiService>(apiServicesRef);
  const metrics = newAggregatorMetrics(options.metrics);
  const missingSan = () => metrics.missingSan.inc();
  const backends = newBackends(options.certificate, options.tunnel, missingSan);
  const probed = newBackends(options.certificate, options.tunnel, missingSan);
  const proxy = newProxy({ resolve, refused: options.refused, clock, log });
  let groups: readonly AnnouncedGroup[] | undefined;
  /** APIServices with a service; kept apart because most clusters have few and every request looks here. */
  const remote = new Map<string, ApiService>();
  const changed = (apiService: ApiService): void => {
    groups = undefined;
    if (serviceOf(apiService) === undefined) remote.delete(nameOf(apiService));
    else remote.set(nameOf(apiService), apiService);
  };
  apiServices.addHandler({
    added: changed,
    updated: (_old, now) => changed(now),
    deleted(apiService) {
      groups = undefined;
      remote.delete(nameOf(apiService));
      backends.forget(nameOf(apiService));
      probed.forget(nameOf(apiService));
    },
  });
  const availability = newAvailabilityController({
    client: informers.client,
    apiServices,
    services: informers.for<Service & KubeObject>(servicesRef),
    endpoints: informers.for<Endpoints & KubeObject>(endpointsRef),
    probe: newProbe({ resolve, backendOf: (apiService) => probed.of(unverified(apiService)), clock }),
    metrics,
    queues,
    turns,
    clock,
    log,
  });
  return {
    remote,
    handle(ctx) {
      const apiService = remote.get(apiServiceOf(ctx.info.path) ?? "");
      const backend = apiService === undefined ? undefined : backends.of(apiService);
      return backend === undefined ? undefined : proxy(ctx, apiService!, backend);
    },
    groups() {
      groups ??= [
        ...ownGroup(options.builtIn),
        ...announcedGroups(apiServices.lister.list()).filter(({ name }) => name !== aggregatorGroup),
      ];
      return groups;
    },
    get synced() {
      return apiServices.synced;
    },
    waitForSync: (signal) => apiServices.waitForSync(signal),
    autoregistration: newAutoregistration({
      client: informers.client,
      apiServices,
      builtIn: options.builtIn,
      queues,
      turns,
      clock,
      log,
    }),
    openApi: new AggregatedOpenApi({
      apiServices,
      fetch: newFetch({ backends, resolve, clock }),
      metrics,
      v3: options.openApiV3,
      queues,
      turns,
      clock,
      log,
    }),
    checkAvailability: (signal) => availability.run(signal),
  };
}

/** Name of the APIService for a path: `/apis/group/version` and below; a single one covers `/api` and below. */
function apiServiceOf(path: string): string | undefined {
  const [empty, prefix, group, version] = path.split("/", 4);
  if (empty !== "") return undefined;
  if (prefix === "api") return legacyName;
  // The aggregator's own group is always served locally.
  if (prefix !== "apis" || !group || !version || group === aggregatorGroup) return undefined;
  return `${version}.${group}`;
}

function ownGroup(builtIn: readonly GroupVersion[]): AnnouncedGroup[] {
  const versions = builtIn.filter(({ group }) => group === aggregatorGroup).map(({ version }) => version);
  return versions.length === 0 ? [] : [{ name: aggregatorGroup, versions }];
}

/** Availability probes do not verify the server: they send no confidential data. */
function unverified(apiService: ApiService): ApiService {
  return { ...apiService, spec: { ...apiService.spec, caBundle: "", insecureSkipTLSVerify: true } };
}

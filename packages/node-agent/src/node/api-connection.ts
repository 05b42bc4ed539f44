import type { Client } from "@coxswain/apimachinery/client/client";
import { newClient } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import { type EventRecorder, newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { type InformerFactory, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures } from "@coxswain/apimachinery/informers/metrics";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { csiDrivers, nodes, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AgentConfig } from "../agent-config.ts";

/** Clients and informers for the API server. */
export interface ApiConnection {
  client: Client;
  /** Without rate limit: heartbeats and reviews must not queue behind other requests. */
  heartbeat: Client;
  informers: InformerFactory;
  /** The agent's own Node. */
  node: SharedInformer<Node>;
  /** Pods bound to this node. */
  pods: SharedInformer<Pod>;
  services: SharedInformer<Service>;
  csiDrivers: SharedInformer<CSIDriver>;
  recorder: EventRecorder;
  /** The client certificate file, if configured. */
  certFile: string | undefined;
  close(): void;
}

interface ApiConnectionOptions {
  api: ClientConfig;
  config: AgentConfig;
  nodeName: string;
  metrics: MetricsRegistry;
  clock: Clock;
  log: Logger;
}

/** Creates clients and informers; sends no request until they are used or started. */
export function newApiConnection({ api, config, nodeName, metrics, clock, log }: ApiConnectionOptions): ApiConnection {
  const observer = clientMetrics(metrics);
  const { contentType } = config;
  /** 0 selects the client's default; negative means no limit. */
  const limited = (qps: number, burst?: number): Client =>
    newClient(
      { ...api, contentType, qps, ...(burst !== undefined && { burst }), userAgent: userAgentOf("kubelet") },
      { observer, clock },
    );
  const client = limited(config.kubeApiQps, config.kubeApiBurst);
  const heartbeat = limited(-1);
  const events = limited(config.eventQps, config.eventBurst);
  const informers = newInformerFactory(client, { log, clock, onFailure: informerFailures(metrics) });
  return {
    client,
    heartbeat,
    informers,
    node: informers.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` }),
    pods: informers.for<Pod>(pods, { fieldSelector: `spec.nodeName=${nodeName}` }),
    services: informers.for<Service>(services),
    csiDrivers: informers.for<CSIDriver>(csiDrivers),
    recorder: newEventRecorder({ client: events, component: "kubelet", host: nodeName, log, clock }),
    certFile: api.certFile,
    close() {
      for (const each of [client, heartbeat, events]) each.close();
    },
  };
}

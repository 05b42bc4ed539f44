/** Dependencies of admission plugins. */
import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Authorizer } from "../authorization/authorizer.ts";
import type { PluginConfigurations } from "./configuration.ts";
import type { WebhookDialers } from "./webhooks/caller.ts";
import type { ResolveService } from "./webhooks/endpoint.ts";
import type { ResourceVersion } from "./webhooks/matcher.ts";

/** Dependencies of admission plugins: they read through informers and write through the loopback client. */
export interface PluginContext {
  readonly informers: InformerFactory;
  readonly client: Client;
  readonly authorize: Authorizer;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly log: Logger;
  readonly featureEnabled: (gate: string) => boolean;
  readonly defaultNotReadyTolerationSeconds: number;
  readonly defaultUnreachableTolerationSeconds: number;
  readonly versions: ObjectVersions;
  readonly webhookMetrics: WebhookMetrics;
  /** Registry for plugin-specific metrics. */
  readonly metrics: MetricsRegistry;
  /** Resolves the address of webhooks that are referenced by service. */
  readonly resolveService: ResolveService;
  readonly webhookDialers?: WebhookDialers;
  /** Client certificate (PEM) for webhooks without configured credentials: --proxy-client-cert-file and its key. */
  readonly proxyCertificate: { readonly current: { readonly cert: string; readonly key: string } | undefined };
  /** The plugin's section of --admission-control-config-file; undefined when it has none. */
  readonly configurationOf: PluginConfigurations;
}

/** Conversion between the versions of a resource, for webhooks whose rules match another version than the request's. */
export interface ObjectVersions {
  /** All served versions of the resource; the version given is ignored. */
  of(resource: { readonly group: string; readonly resource: string }): readonly ResourceVersion[];
  /** The resources that serve a kind in one version; empty when the version is not served. */
  ofKind(kind: GroupVersionKind): readonly { readonly resource: string; readonly namespaced: boolean }[];
  /** @returns a new object in that version. */
  fromHub(object: KubeObject, version: ResourceVersion): KubeObject | Promise<KubeObject>;
  /**
   * Applies defaults and converts to the hub version; takes ownership of its argument.
   * @param apiVersion that of the hub object; custom resources have no hub version and return to the version they arrived in
   */
  toHub(object: KubeObject, version: ResourceVersion, apiVersion: string | undefined): KubeObject | Promise<KubeObject>;
}

export interface WebhookMetrics {
  called(
    name: string,
    type: string,
    operation: string,
    outcome: { readonly seconds: number; readonly code: number; readonly rejected: boolean },
  ): void;
  rejected(name: string, type: string, operation: string, errorType: string, code: number): void;
}

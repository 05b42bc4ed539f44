import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Steps } from "@coxswain/apimachinery/event-loop/steps";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { OpenApiDocument } from "@coxswain/apimachinery/schema/openapi/document";
import type { AdmissionChain } from "../admission/plugin.ts";
import type { NodeProxy } from "../node-proxy/upstream.ts";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import type { RegistryServices } from "../registry/generic/subresource.ts";
import type { RequestContext } from "../request/context.ts";
import type { ServedResource, ServedResources } from "./served-resources.ts";

/** What the handlers are made of; `server.ts` fills it in. */
export interface HandlerEnv {
  readonly resources: ServedResources;
  readonly admission: AdmissionChain;
  readonly services: RegistryServices;
  readonly nodeProxy: NodeProxy;
  readonly log: Logger;
  readonly metrics?: MetricsRegistry;
  readonly clock?: Clock;
  /** Limit of a request body; 3 MiB unless given. */
  readonly maxBodyBytes?: number;
  /** The least time of a watch without timeoutSeconds; a random value up to its double is taken. */
  readonly minRequestTimeoutMs: number;
  /** What discovery and OpenAPI say of other servers; without it they speak of this one alone. */
  readonly aggregated?: AggregatedApis;
}

/** Group versions that other servers answer for; the requests themselves do not get here. */
export interface AggregatedApis {
  /** All groups that are announced, with those of this server, in order; the first version is the preferred one. */
  groups(): readonly { readonly name: string; readonly versions: readonly string[] }[];
  /** False while it is not known yet who answers for what. */
  readonly synced: boolean;
  readonly openApi: {
    /** Another number whenever `merge` gives another document. */
    readonly generation: number;
    merge(own: OpenApiDocument): Steps<OpenApiDocument>;
    v3Roots(): string[];
    /** @returns undefined when no other server has the document. */
    v3(root: string, accept: string): Promise<{ code: number; contentType: string; body: Buffer; etag: string } | undefined>;
  };
}

/** One request for one resource, as the path names it. */
export interface Call {
  readonly env: HandlerEnv;
  readonly ctx: RequestContext;
  readonly served: ServedResource;
  /** `""` for cluster-scoped resources and for requests across all namespaces. */
  readonly namespace: string;
  /** `""` for requests on the collection. */
  readonly name: string;
  readonly subresource: string;
}

export const defaultMaxBodyBytes = 3 * 1024 * 1024;

export function strategyContext(call: Call, dryRun: boolean): StrategyContext {
  return {
    user: call.ctx.user,
    namespace: call.namespace,
    dryRun,
    now: call.env.services.now(),
    requestVersion: call.served.kind.version,
    featureEnabled: call.env.services.featureEnabled,
    warn: (text) => call.ctx.warn(text),
  };
}

import type { OpenApiDocument } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AdmissionChain } from "../admission/plugin.ts";
import type { NodeProxy } from "../node-proxy/upstream.ts";
import type { RegistryServices } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { ListBodies } from "./list-body.ts";
import type { ServedResource, ServedResources } from "./served-resources.ts";

/** Dependencies of the handlers, assembled at startup. */
export interface HandlerEnv {
  readonly resources: ServedResources;
  readonly admission: AdmissionChain;
  readonly services: RegistryServices;
  readonly gates: HandlerGates;
  readonly nodeProxy: NodeProxy;
  readonly listBodies: ListBodies;
  /** Memory share of the encoded OpenAPI documents. */
  readonly documents: ByteShare;
  readonly log: Logger;
  readonly metrics?: MetricsRegistry;
  readonly clock?: Clock;
  /** Minimum duration of a watch without timeoutSeconds; the actual one is random between this and its double. */
  readonly minRequestTimeoutMs: number;
  /** Discovery and OpenAPI of aggregated servers; undefined: none. */
  readonly aggregated?: AggregatedApis;
}

/** The feature gates that decide how requests are handled; they do not change after the start. */
interface HandlerGates {
  readonly compressesResponses: boolean;
  readonly allowsDryRun: boolean;
  readonly validatesFields: boolean;
  readonly tracksFields: boolean;
  readonly chunksLists: boolean;
  readonly countsRemaining: boolean;
  /** For clients older than 1.16: objects and lists are returned with `metadata.selfLink`, which is never stored. */
  readonly namesLinks: boolean;
}

/** Reads the gates once. @param enabled by the name of the gate */
export function handlerGates(enabled: (gate: string) => boolean): HandlerGates {
  return {
    compressesResponses: enabled("APIResponseCompression"),
    allowsDryRun: enabled("DryRun"),
    validatesFields: enabled("ServerSideFieldValidation"),
    tracksFields: enabled("ServerSideApply"),
    chunksLists: enabled("APIListChunking"),
    countsRemaining: enabled("RemainingItemCount"),
    namesLinks: !enabled("RemoveSelfLink"),
  };
}

/** Group versions served by aggregated servers; their requests do not reach the handlers. */
export interface AggregatedApis {
  /** The APIServices that other servers answer for; empty in most clusters. */
  readonly remote: { readonly size: number };
  /** @returns undefined when this server answers the request */
  handle(ctx: RequestContext): Promise<void> | undefined;
  /** All published groups including this server's, in order; the preferred version comes first. */
  groups(): readonly { readonly name: string; readonly versions: readonly string[] }[];
  /** False until all API services are known. */
  readonly synced: boolean;
  readonly openApi: {
    /** Changes when the result of `merge` changes. */
    readonly generation: number;
    merge(own: OpenApiDocument): Steps<OpenApiDocument>;
    v3Roots(): string[];
    /** @returns undefined when no aggregated server has the document */
    v3(root: string, accept: string): Promise<{ code: number; contentType: string; body: Buffer; etag: string } | undefined>;
  };
}

/** One request for one resource, as addressed by its path. */
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

export const maxBodyBytes = 3 * 1024 * 1024;

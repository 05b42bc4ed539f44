import type { KubeObject, Unstructured } from "@coxswain/apimachinery/meta/types";
import type { RequestContext } from "../../request/context.ts";
import type { RegistryStore } from "./store.ts";

/** What a subresource may reach: the stores of every resource, and what the process knows. Filled in `server.ts`. */
export interface RegistryServices {
  /** @throws when the resource is not in the catalogue. */
  store(group: string, resource: string): RegistryStore;
  readonly now: () => number;
  readonly featureEnabled: (gate: string) => boolean;
  /** Signs service-account tokens; undefined without --service-account-signing-key-file. */
  readonly tokenIssuer?: TokenIssuer;
  /** Is this user allowed? For escalation checks and access reviews. */
  readonly authorize?: import("../../authorization/authorizer.ts").Authorizer;
  /** For token reviews. */
  readonly authenticateToken?: (
    token: string,
    audiences: readonly string[],
  ) => Promise<import("@coxswain/apimachinery/serving/authentication/authenticator").AuthenticationResult | undefined>;
  readonly resolveRules?: import("../../authorization/authorizer.ts").RuleResolver;
  /** What RBAC alone gives, whatever the modes: nobody may grant more of it. */
  readonly rbacRules?: import("../../authorization/authorizer.ts").RuleResolver;
}

export interface TokenIssuer {
  readonly issuer: string;
  readonly defaultAudiences: readonly string[];
  readonly maxExpirationSeconds: number | undefined;
  readonly extendExpiration: boolean;
  sign(claims: Record<string, unknown>): Promise<string>;
}

export interface SubresourceCall {
  readonly ctx: RequestContext;
  readonly services: RegistryServices;
  readonly namespace: string;
  readonly name: string;
  /** The decoded body in the subresource's kind, defaults filled; undefined for get. */
  readonly body: Unstructured | undefined;
  readonly dryRun: boolean;
  readonly fieldManager: string;
  /** Runs admission for an object this subresource writes; the handlers give it. */
  readonly admit: (object: KubeObject, old: KubeObject | undefined) => Promise<void>;
}

/** Where a connection is to be tunnelled; `node-proxy/` does it. */
export interface ConnectTarget {
  readonly url: URL;
  /** True: with the API server's own client certificate, to a kubelet. */
  readonly toNode: boolean;
  /** Takes whatever certificate the kubelet shows: the client asked for it. */
  readonly skipVerify?: boolean;
  /** `text`: a GET, its answer streamed as text. `tunnel`: an upgrade and nothing else. `proxy`: the request as it came. */
  readonly as: "text" | "tunnel" | "proxy";
}

export type SubresourceHandler =
  | {
      readonly type: "object";
      get?(call: SubresourceCall): Promise<KubeObject>;
      /** For a virtual resource that can be listed (componentstatuses). */
      list?(call: SubresourceCall): Promise<KubeObject[]>;
      create?(call: SubresourceCall): Promise<KubeObject>;
      update?(call: SubresourceCall): Promise<KubeObject> /** HTTP status of a create; default 201. */;
      readonly createStatus?: number;
    }
  /** Update of a part of the parent: a strategy of its own over the parent's store (status is made this way). */
  | { readonly type: "strategy"; readonly strategy: import("./strategy.ts").Strategy }
  | { readonly type: "scale" }
  /** undefined: there is nothing to connect to yet, and the answer is 204 (the log of a pod without a node). */
  | { readonly type: "connect"; connect(call: SubresourceCall, path: string): Promise<ConnectTarget | undefined> };

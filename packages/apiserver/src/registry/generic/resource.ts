import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ApplyType } from "@coxswain/apimachinery/objects/patch/apply/apply-type";
import type { CustomKind } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Cancellation, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RequestContext } from "../../request/context.ts";
import type { Entry, ListRequest, ListResult, ReadOptions, Storage, WatchRequest, WatchStream } from "../../storage/storage.ts";
import type { Strategy, StrategyContext, TableColumns } from "./strategy.ts";

/**
 * Declares one served resource; `catalogue.ts` lists them all. Handlers, discovery and stores are driven by this data alone.
 */
export interface ResourceDefinition extends GroupResource {
  readonly kind: string;
  readonly listKind: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs: readonly string[];
  /** Verbs in discovery, in this order, in place of `verbs`. Used by custom resources. */
  readonly announcedVerbs?: () => readonly string[];
  /** Error of a verb that is temporarily unavailable, e.g. while a CRD is terminating; undefined when it is available. */
  readonly refusal?: (verb: string) => Error | undefined;
  /** Served versions, preferred first, each with its defaults and conversion. */
  readonly versions: readonly ResourceVersionDefinition[];
  /** The version that strategies, stores and caches see. */
  readonly hub: string;
  /** Group of the hub when it is not this resource's own: events.k8s.io events are core v1 Events in memory and in etcd. */
  readonly hubGroup?: string;
  /** Storage version; defaults to the hub. It need not be a served version. */
  readonly storage?: { readonly group: string; readonly version: string };
  /** Versions that are no longer served but may still be in etcd, written by older API servers. */
  readonly formerVersions?: readonly FormerVersionDefinition[];
  /** Path segment below the etcd prefix (`services/specs`, `minions`, `leases`); defaults to `resource`. */
  readonly storageFolder?: string;
  /** undefined for virtual resources (reviews), which are not stored. */
  readonly strategy?: Strategy;
  /** Strategy of `/status`; undefined when there is no such subresource. */
  readonly statusStrategy?: Strategy;
  /** Field paths behind `/scale`; undefined when there is no such subresource. */
  readonly scale?: ScalePaths;
  readonly table: TableColumns;
  /** Values of the fields supported in field selectors besides metadata.name and metadata.namespace. */
  selectableFields?(object: KubeObject): Record<string, string>;
  /** Error text for an unsupported selector field; set where it differs from the generic text. */
  readonly unknownFieldText?: (field: string) => string;
  /** Lease in seconds after which etcd drops the object. Used by events. */
  readonly ttlSeconds?: (flags: { eventTtlSeconds: number }) => number;
  /**
   * Subresources with their own logic (binding, eviction, log, exec), by name. `""` is the resource itself, for a POST that
   * stores nothing (reviews).
   */
  readonly subresources?: Readonly<Record<string, SubresourceDefinition>>;
  /** DELETE returns the last state of the removed object instead of a Status (pods, services, persistent volume claims). */
  readonly returnDeletedObject?: boolean;
  /**
   * Defined by a CustomResourceDefinition. Upstream serves these by a separate handler, with other routes, media types and
   * error texts than those of built-in resources.
   */
  readonly custom?: boolean;
  /** List items carry kind and apiVersion. */
  readonly itemsKeepKind?: boolean;
  /** Selectable fields that the watch cache indexes, e.g. `spec.nodeName`. */
  readonly cacheIndexes?: readonly string[];
}

/**
 * One version of a resource: defaulting, conversion to and from the hub, and how it is served. Defaults and conversions are methods,
 * so that a function for the kind of this version fits.
 */
export interface ResourceVersionDefinition {
  readonly version: string;
  /** false: served only when --runtime-config enables it. Default true. */
  readonly servedByDefault?: boolean;
  /** Sets the defaults of release 1.23, in place. Source: pkg/apis/<group>/<version>/defaults.go */
  defaults?(object: KubeObject): void;
  /** Same as `defaults`, but yields between passes over the object; for custom resources, whose defaulting can be slow. */
  defaultsInSteps?(object: KubeObject): Steps<void>;
  /** Converts to the hub version. Default: only apiVersion changes. May modify its argument. */
  toHub?(object: KubeObject): KubeObject;
  fromHub?(object: KubeObject): KubeObject;
  /** Same as `toHub` and `fromHub`, in steps for many values; `inGroup` adds them. */
  toHubInSteps?(object: KubeObject): Steps<KubeObject>;
  fromHubInSteps?(object: KubeObject): Steps<KubeObject>;
  /** Asynchronous conversion to another version, e.g. by a conversion webhook (custom resources). Takes ownership of `object`. */
  readonly convert?: (object: KubeObject, apiVersion: string) => Promise<KubeObject>;
  /** Paths of unknown fields that pruning removes, for field validation. Built-in kinds derive them from the descriptor. */
  readonly unknownFields?: (object: KubeObject) => readonly string[];
  /** Type used by server-side apply; derived from the descriptor unless given (custom resources). */
  readonly applyType?: () => ApplyType;
  /** OpenAPI schema of a kind without a descriptor (custom resources). */
  readonly published?: () => Steps<CustomKind>;
  /** false: this version has no `/status` although another one has. */
  readonly statusServed?: false;
  /** Text for the Warning header of a deprecated version. */
  readonly deprecation?: string;
}

/** A version that is read from etcd but not served. */
export interface FormerVersionDefinition extends ResourceVersionDefinition {
  /** Set when it differs from the resource's group: ingresses were in `extensions`. */
  readonly group?: string;
}

/** How `/scale` maps to fields of the object. */
export interface ScalePaths {
  readonly version: "autoscaling/v1" | "extensions/v1beta1";
  readonly specReplicas: string;
  readonly statusReplicas: string;
  selector(object: KubeObject): string;
  /** @throws when a scale cannot be read from the object */
  readonly checkRead?: (object: KubeObject) => void;
  /**
   * Skips the check for negative replicas and leaves it to the resource's validation. An update whose scale has no
   * resourceVersion keeps the one of the object it was read from (custom resources).
   */
  readonly leavesRules?: true;
  /** Resource named in the NotFound of a missing scale, where it is not the parent resource. */
  readonly unknownAs?: GroupResource;
}

/** A subresource or virtual resource: the kind of its body, its verbs and its handler. */
export interface SubresourceDefinition {
  readonly kind: string;
  /** Group and version of `kind`, when they differ from the parent's. */
  readonly kindGroupVersion?: { readonly group: string; readonly version: string };
  /** Further versions of that group accepted in a body; the shape is the same. */
  readonly otherVersions?: readonly string[];
  readonly verbs: readonly string[];
  readonly handler: import("./resource.ts").SubresourceHandler;
}

/**
 * create, get, list, update, delete and watch for any strategy, in the resource's hub version. Called by handlers and
 * subresources; independent of HTTP and of etcd.
 * Source: k8s.io/apiserver pkg/registry/generic/registry/store.go
 */
export interface RegistryStore {
  readonly definition: ResourceDefinition;
  readonly storage: Storage;
  /** A store over the same keys that writes through another strategy (status, scale, binding). */
  withStrategy(strategy: Strategy): RegistryStore;

  /**
   * Stores a new object. `options.validateAdmission` runs after the strategy's validation, before the write.
   * @param object owned by the store from now on; changed in place
   * @throws AlreadyExists, BadRequest, Invalid
   */
  create(ctx: StrategyContext, object: KubeObject, options: StoreCreateOptions): Promise<Entry>;
  /** @throws NotFound */
  get(namespace: string, name: string, options?: ReadOptions): Promise<Entry>;
  list(namespace: string, request: Omit<ListRequest, "prefix">): Promise<ListResult>;
  watch(namespace: string, request: Omit<WatchRequest, "prefix">): Promise<WatchStream>;

  /**
   * Read-modify-write of one object; PUT, patch and apply all use it.
   * @param change returns the new state for the stored object (undefined: absent, create on update). May run several
   *   times and must not modify its argument.
   * @returns `created`: true when the object did not exist
   * @throws NotFound, Conflict, Invalid
   */
  update(
    ctx: StrategyContext,
    name: string,
    change: (current: KubeObject | undefined) => Promise<KubeObject> | KubeObject,
    options: StoreUpdateOptions,
  ): Promise<{ entry: Entry; created: boolean }>;

  /**
   * @returns `deleted`: true and the last state when the object was removed; false and the state with deletionTimestamp when
   *   finalizers or a grace period keep it
   * @throws NotFound; Conflict when preconditions fail
   */
  delete(
    ctx: StrategyContext,
    name: string,
    options: DeleteOptions,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<{ entry: Entry; deleted: boolean }>;

  /** Deletes the matching objects with --delete-collection-workers workers. @returns the list as it was before the deletions */
  deleteCollection(
    ctx: StrategyContext,
    options: DeleteOptions,
    request: Omit<ListRequest, "prefix">,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<ListResult>;
}

/** Options of both creates and updates. */
interface StoreWriteOptions {
  /** Writes once more, without `metadata.managedFields`, when the object is too large for etcd. */
  untrackedWhenTooLarge?: boolean;
  signal?: Cancellation;
}

export interface StoreCreateOptions extends StoreWriteOptions {
  /** Validating admission; runs before the write. A throw aborts the create. */
  validateAdmission?: (object: KubeObject) => Promise<void>;
}

export interface StoreUpdateOptions extends StoreWriteOptions {
  /** Mutating admission; runs on the new state before the strategy. */
  mutateAdmission?: (next: KubeObject, current: KubeObject | undefined) => Promise<void>;
  validateAdmission?: (next: KubeObject, current: KubeObject | undefined) => Promise<void>;
  preconditions?: { uid?: string; resourceVersion?: string };
  /** Creates an absent object regardless of `allowCreateOnUpdate` (server-side apply). */
  forceAllowCreate?: boolean;
}

/** Dependencies of subresource handlers, assembled in `server.ts`. */
export interface RegistryServices {
  /** @throws when the resource is not in the catalogue */
  store(group: string, resource: string): RegistryStore;
  readonly now: () => number;
  readonly turns: Turns;
  readonly featureEnabled: (gate: string) => boolean;
  /** Signs service-account tokens; undefined without --service-account-signing-key-file. */
  readonly tokenIssuer?: TokenIssuer;
  /** Authorizer for escalation checks and access reviews. */
  readonly authorize?: import("../../authorization/authorizer.ts").Authorizer;
  /** Authenticates the tokens of token reviews. */
  readonly authenticateToken?: (
    token: string,
    audiences: readonly string[],
  ) => Promise<import("@coxswain/apimachinery/serving/authentication/authenticator").AuthenticationResult | undefined>;
  readonly resolveRules?: import("../../authorization/authorizer.ts").RuleResolver;
  /** Rules granted by RBAC alone, whatever --authorization-mode is. Escalation checks limit grants to these. */
  readonly rbacRules?: import("../../authorization/authorizer.ts").RuleResolver;
}

/** Signs service-account tokens with the settings of the --service-account-* flags. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly defaultAudiences: readonly string[];
  readonly maxExpirationSeconds: number | undefined;
  readonly extendExpiration: boolean;
  sign(claims: Record<string, unknown>): Promise<string>;
}

/** Arguments of a subresource handler. A handler is a method, so that one for the kind of its body fits. */
export interface SubresourceCall<Body extends KubeObject = KubeObject> {
  readonly ctx: RequestContext;
  readonly services: RegistryServices;
  readonly namespace: string;
  readonly name: string;
  /** The decoded body in the subresource's kind, with defaults; undefined for get. */
  readonly body: Body | undefined;
  readonly dryRun: boolean;
  readonly fieldManager: string;
  /** Runs admission for an object that the subresource writes; provided by the handlers. */
  readonly admit: (object: KubeObject, old: KubeObject | undefined) => Promise<void>;
}

/** Target of a streaming connection; `node-proxy/` dials it. */
export interface ConnectTarget {
  readonly url: URL;
  /** true: dial a kubelet with --kubelet-client-certificate. */
  readonly toNode: boolean;
  /** Skips verification of the kubelet's certificate, as the client requested with insecureSkipTLSVerifyBackend. */
  readonly skipVerify?: boolean;
  /** `text`: a GET whose body is streamed as text. `tunnel`: upgrade requests only. `proxy`: forwards the request unchanged. */
  readonly as: "text" | "tunnel" | "proxy";
}

export type SubresourceHandler =
  | {
      readonly type: "object";
      get?(call: SubresourceCall): Promise<KubeObject>;
      /** Lists the objects of a virtual resource (componentstatuses). */
      list?(call: SubresourceCall): Promise<KubeObject[]>;
      create?(call: SubresourceCall): Promise<KubeObject>;
    }
  /** Updates part of the parent object: another strategy over the parent's store, as for status. */
  | { readonly type: "strategy"; readonly strategy: Strategy }
  | { readonly type: "scale" }
  /** connect returns undefined when there is no target yet; the response is 204 (log of an unscheduled pod). */
  | { readonly type: "connect"; connect(call: SubresourceCall, path: string): Promise<ConnectTarget | undefined> };

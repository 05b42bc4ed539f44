import type { GroupResource } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { ApplyType } from "@coxswain/apimachinery/patch/apply/apply-type";
import type { CustomKind } from "@coxswain/apimachinery/schema/openapi/custom-kinds";
import type { Strategy, TableColumns } from "./strategy.ts";

/**
 * One served resource as data; `catalogue.ts` is the list of them. Everything a handler does follows from this and the
 * stores made from it.
 */
export interface ResourceDefinition extends GroupResource {
  readonly kind: string;
  readonly listKind: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs: readonly string[];
  /** What discovery says instead of `verbs`, in its order: custom resources. */
  readonly announcedVerbs?: () => readonly string[];
  /** Why a verb is not possible for the time being, though the resource has it. */
  readonly refusal?: (verb: string) => Error | undefined;
  /** Served versions, preferred first, each with its defaults and conversion. */
  readonly versions: readonly ResourceVersionDefinition[];
  /** The version that strategies, stores and caches see. */
  readonly hub: string;
  /** Group of the hub when it is not this resource's own: events.k8s.io events are core v1 Events in memory and in etcd. */
  readonly hubGroup?: string;
  /** What etcd holds; the hub unless given. A stored version need not be served. */
  readonly storage?: { readonly group: string; readonly version: string };
  /** Versions that are not served any more, but that older API servers left in etcd. */
  readonly formerVersions?: readonly FormerVersionDefinition[];
  /** Folder below the etcd prefix; `resource` unless given (`services/specs`, `minions`, `leases`). */
  readonly storageFolder?: string;
  /** undefined for virtual resources (reviews), which have `virtual`. */
  readonly strategy?: Strategy;
  /** Strategy of `/status`; undefined when there is no such subresource. */
  readonly statusStrategy?: Strategy;
  /** Where `/scale` finds its numbers. */
  readonly scale?: ScalePaths;
  readonly table: TableColumns;
  /** Fields for field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields?: (object: KubeObject) => Record<string, string>;
  /** How a selector by another field is refused, where that is said in a way of its own. */
  readonly unknownFieldText?: (field: string) => string;
  /** Seconds; events. */
  readonly ttlSeconds?: (flags: { eventTtlSeconds: number }) => number;
  /** POST that stores nothing (reviews) or subresources with their own logic (binding, eviction, log, exec), by name; `""` is the resource itself. */
  readonly subresources?: Readonly<Record<string, SubresourceDefinition>>;
  /** A DELETE that removed the object answers with its last state instead of a Status (pods, services, claims). */
  readonly returnDeletedObject?: boolean;
  /** Items of a list name their own kind and apiVersion: custom resources. */
  readonly itemsKeepKind?: boolean;
  /** Extra indexes the watch cache keeps, by selectable field: `spec.nodeName`. */
  readonly cacheIndexes?: readonly string[];
}

export interface ResourceVersionDefinition {
  readonly version: string;
  /** Off unless --runtime-config turns it on. Default true. */
  readonly servedByDefault?: boolean;
  /** Fills the defaults of 1.23 in place. Source: pkg/apis/<group>/<version>/defaults.go */
  readonly defaults?: (object: KubeObject) => void;
  /** Default: only apiVersion changes. May change its argument. */
  readonly toHub?: (object: KubeObject) => KubeObject;
  readonly fromHub?: (object: KubeObject) => KubeObject;
  /** To another version of the resource, where that takes asking somebody (custom resources). Takes over its argument. */
  readonly convert?: (object: KubeObject, apiVersion: string) => Promise<KubeObject>;
  /** Paths of fields that `defaults` takes away, for field validation; built-in kinds know theirs by the descriptor. */
  readonly unknownFields?: (object: KubeObject) => readonly string[];
  /** How server-side apply sees the type; from its descriptor unless given (custom resources). */
  readonly applyType?: ApplyType;
  /** What OpenAPI says of the kind, where no descriptor does (custom resources). */
  readonly published?: CustomKind;
  /** False: other versions have `/status`, this one has not. */
  readonly statusServed?: false;
  /** Text for the Warning header of a deprecated version. */
  readonly deprecation?: string;
}

export interface FormerVersionDefinition extends ResourceVersionDefinition {
  /** When it is not the resource's own: ingresses were in `extensions`. */
  readonly group?: string;
}

export interface ScalePaths {
  readonly version: "autoscaling/v1" | "extensions/v1beta1";
  readonly specReplicas: string;
  readonly statusReplicas: string;
  readonly selector: (object: KubeObject) => string;
  /** @throws when the object has no scale that could be read */
  readonly checkRead?: (object: KubeObject) => void;
  /** The resource's own rules decide what number is right, and its version counts where the scale names none. */
  readonly leavesRules?: true;
  /** As what a scale that is not there is told missing, where it is not the resource itself. */
  readonly unknownAs?: GroupResource;
}

/** What a subresource (or a virtual resource) does. `create`, `get`, … are in `subresource.ts`; `connect` says where to. */
export interface SubresourceDefinition {
  readonly kind: string;
  /** Group and version of its kind, when they differ from the parent's. */
  readonly kindGroupVersion?: { readonly group: string; readonly version: string };
  /** More versions of that group that a body may have; the shape is the same. */
  readonly otherVersions?: readonly string[];
  readonly verbs: readonly string[];
  readonly handler: import("./subresource.ts").SubresourceHandler;
}

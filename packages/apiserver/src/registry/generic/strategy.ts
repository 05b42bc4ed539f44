import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { UserInfo } from "../../request/context.ts";

/**
 * Resource-specific behaviour of the generic store. It calls the hooks in this order:
 * create: (decode, `defaults` of the request's version) → prepareForCreate → object-meta checks → validate → canonicalize.
 * update: prepareForUpdate → object-meta checks → validateUpdate → canonicalize.
 * Hooks may modify `next`, which the caller owns, but never `current`, which is shared.
 * Source: k8s.io/apiserver pkg/registry/rest/create.go, update.go, delete.go
 */
// biome-ignore lint/suspicious/noExplicitAny: a strategy is written for one kind and stored in a table of all kinds.
export interface Strategy<T extends KubeObject = any> {
  namespaceScoped: boolean;
  /** PUT creates an object that does not exist. */
  allowCreateOnUpdate?: boolean;
  /** An update without resourceVersion overwrites the stored object. Default true. */
  allowUnconditionalUpdate?: boolean;
  /** Fields ignored in requests to this endpoint and never owned through it in managedFields: `status`, `metadata.labels`. */
  resetFields?: readonly string[];
  prepareForCreate?(next: T, ctx: StrategyContext): void;
  /** In steps where it compares large objects. */
  prepareForUpdate?(next: T, current: T, ctx: StrategyContext): Steps<void> | void;
  validate?(next: T, ctx: StrategyContext): FieldError[];
  validateUpdate?(next: T, current: T, ctx: StrategyContext): FieldError[];
  /** Replaces `validate` and `validateUpdate` where user input bounds the cost: it yields to the event loop between steps. */
  validateInSteps?(next: T, current: T | undefined, ctx: StrategyContext): Steps<FieldError[]>;
  /** Normalizes a validated object, so that semantically equal objects are stored the same. */
  canonicalize?(next: T): void;
  /** Texts for `Warning` headers. */
  warningsOnCreate?(next: T, ctx: StrategyContext): string[];
  warningsOnUpdate?(next: T, current: T, ctx: StrategyContext): string[];
  /** Accepts finalizers without a domain prefix: custom resources, kinds of the extension API servers, budgets. */
  anyFinalizer?: boolean;
  /**
   * On create, metadata errors are reported only when `validate` finds none. For kinds whose upstream validation does not
   * check the metadata itself.
   */
  metadataLast?: boolean;
  /** Returns error texts for an invalid name; default DNS-1123 subdomain. */
  validateName?(name: string): string[];
  /** Grace period in seconds; undefined: delete immediately. Source: rest.RESTGracefulDeleteStrategy */
  gracePeriod?(current: T, requested: number | undefined): number | undefined;
  /** Propagation policy when neither the request nor a finalizer sets one; default Background. */
  defaultGarbageCollection?: GarbageCollection | ((ctx: StrategyContext) => GarbageCollection);
  /**
   * Allocates resources (cluster IPs, node ports) after validation and before the write; the transaction is reverted when the
   * write fails. Also called in a dry run, where it must not allocate.
   */
  beginCreate?(next: T, ctx: StrategyContext): Promise<Transaction | undefined>;
  beginUpdate?(next: T, current: T, ctx: StrategyContext): Promise<Transaction | undefined>;
  afterDelete?(last: T, ctx: StrategyContext): Promise<void> | void;
  /** Throws a StatusError to refuse the deletion of a single object; not called for deletecollection. */
  checkDeletion?(name: string): void;
  /**
   * Custom first phase of a deletion (namespaces). Returns a copy of the object to keep in its terminating state, `pending`
   * when it is already terminating, or undefined for the default deletion.
   */
  beginDeletion?(current: T, ctx: StrategyContext): T | "pending" | undefined;
  /** Whether an update that leaves no finalizers may complete a deletion; default yes. */
  completesDeletion?(next: T): boolean;
}

/** Resources allocated for a write. Exactly one of the two is called. */
export interface Transaction {
  /** The object was stored: releases what the previous state held and the new one does not. */
  commit(): void | Promise<void>;
  /** The write failed: releases everything allocated for it. */
  revert(): void | Promise<void>;
}

/** Source: k8s.io/apiserver pkg/registry/rest/delete.go GarbageCollectionPolicy */
type GarbageCollection = "Orphan" | "Background" | "Unsupported";

export interface StrategyContext {
  readonly user: UserInfo | undefined;
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** API version of the request, if any: some older versions are validated less strictly. */
  readonly requestVersion?: string;
  readonly featureEnabled: (gate: string) => boolean;
  readonly warn: (text: string) => void;
}

/** Table columns (kubectl get) of one resource. Source: pkg/printers/internalversion/printers.go */
export interface TableColumns<T extends KubeObject = Unstructured> {
  readonly columns: readonly TableColumn[];
  /** One cell per column. Cells are cached, except for ages; therefore they must not depend on the time in any other way. */
  cells(object: T, ages: Ages): readonly unknown[];
  /** Order of the rows, where it differs from the order of the list. */
  order?(a: KubeObject, b: KubeObject): number;
}

/** Formats times relative to now in the cells of a table. */
export interface Ages {
  /** The time since `ms`, which is in ms since the epoch, in kubectl's notation (`5d3h`). */
  since(ms: number): string;
}

export interface TableColumn {
  readonly name: string;
  /** `string`, `integer`, `number`, `boolean` or `date`. */
  readonly type: string;
  /** `name` for the column with the name of the object. */
  readonly format?: string;
  /** 0: always shown; 1: only with `-o wide`. */
  readonly priority?: number;
  readonly description?: string;
}

import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import type { Steps } from "@coxswain/apimachinery/event-loop/steps";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/meta/types";
import type { UserInfo } from "../../request/context.ts";

/**
 * What is particular to one resource. The generic store calls the hooks in this order:
 * create: (decode, `defaults` of the request's version) → prepareForCreate → object-meta checks → validate → canonicalize.
 * update: prepareForUpdate → object-meta checks → validateUpdate → canonicalize.
 * Hooks may change `next`, which the caller owns, and never `current`, which is shared.
 * Source: k8s.io/apiserver pkg/registry/rest/create.go, update.go, delete.go
 */
// biome-ignore lint/suspicious/noExplicitAny: a strategy is written for one kind and stored in a table of all kinds.
export interface Strategy<T extends KubeObject = any> {
  namespaceScoped: boolean;
  /** PUT on a name that is not there creates it. */
  allowCreateOnUpdate?: boolean;
  /** An update without resourceVersion overwrites. Default true. */
  allowUnconditionalUpdate?: boolean;
  /** Fields that this endpoint never takes from users and that nobody owns through it: `status`, `metadata.labels`. */
  resetFields?: readonly string[];
  prepareForCreate?(next: T, ctx: StrategyContext): void;
  prepareForUpdate?(next: T, current: T, ctx: StrategyContext): void;
  validate?(next: T, ctx: StrategyContext): FieldError[];
  validateUpdate?(next: T, current: T, ctx: StrategyContext): FieldError[];
  /** Instead of these two, where users decide how much there is to check: other requests are served between the steps. */
  validateInSteps?(next: T, current: T | undefined, ctx: StrategyContext): Steps<FieldError[]>;
  /** Brings equal objects to one form after validation. */
  canonicalize?(next: T): void;
  /** Texts for `Warning` headers. */
  warningsOnCreate?(next: T, ctx: StrategyContext): string[];
  warningsOnUpdate?(next: T, current: T, ctx: StrategyContext): string[];
  /** Finalizers may be words without a domain: custom resources, and kinds of the aggregated API servers. */
  anyFinalizer?: boolean;
  /** What is wrong with a new object's metadata is told only when nothing else is: kinds that do not look at it themselves. */
  metadataLast?: boolean;
  /** How names are checked; default DNS-1123 subdomain. */
  validateName?(name: string): string[];
  /** Graceful deletion: the grace period in seconds, undefined for immediate. Source: rest.RESTGracefulDeleteStrategy */
  gracePeriod?(current: T, requested: number | undefined): number | undefined;
  /** What happens to dependents when the client asks for nothing; default Background. */
  defaultGarbageCollection?: GarbageCollection | ((ctx: StrategyContext) => GarbageCollection);
  /** Runs inside the write after validation, undone when the write fails (cluster IPs, node ports). In a dry run too: it takes nothing then. */
  beginCreate?(next: T, ctx: StrategyContext): Promise<Transaction | undefined>;
  beginUpdate?(next: T, current: T, ctx: StrategyContext): Promise<Transaction | undefined>;
  afterDelete?(last: T, ctx: StrategyContext): Promise<void> | void;
  /** Refuses to delete the one object of this name by throwing a StatusError; deletions of collections are not asked. */
  checkDeletion?(name: string): void;
  /**
   * A deletion in steps of the resource's own (namespaces): the object as it stays for now, `pending` when it waits
   * already, undefined to go the usual way. Returns a new object.
   */
  beginDeletion?(current: T, ctx: StrategyContext): T | "pending" | undefined;
  /** Whether an update that leaves no finalizers may complete a deletion; default yes. */
  completesDeletion?(next: T): boolean;
  /** Fills what is computed for readers and not stored. Rare. */
  decorate?(object: T): void;
}

/** What a write took besides its object; one of the two is called. */
export interface Transaction {
  /** The object is stored: what it has no longer may be given back. */
  commit(): void | Promise<void>;
  /** It is not: all that was taken for it is given back. */
  revert(): void | Promise<void>;
}

export type GarbageCollection = "Orphan" | "Background" | "Unsupported";

export interface StrategyContext {
  readonly user: UserInfo | undefined;
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The version the client speaks, where it comes from a request: some older versions are checked less strictly. */
  readonly requestVersion?: string;
  readonly featureEnabled: (gate: string) => boolean;
  readonly warn: (text: string) => void;
}

/** kubectl's columns for one resource. Source: pkg/printers/internalversion/printers.go */
export interface TableColumns<T extends KubeObject = Unstructured> {
  readonly columns: readonly TableColumn[];
  /** One cell a column. `now` in ms since the epoch, for `ageSince` and nothing else. */
  cells(object: T, now: number): readonly unknown[];
  /** Of the rows of a list, where that is not the list's own. */
  readonly order?: (a: KubeObject, b: KubeObject) => number;
}

export interface TableColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: "name" | "";
  /** 0 always, 1 with `-o wide`. */
  readonly priority?: number;
  readonly description?: string;
}

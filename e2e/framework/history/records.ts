import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/**
 * Requests and responses of clients with times, and the contents of etcd, which the checks compare. Times are in ms of one clock,
 * `performance.now()` of the process that runs all clients. Keys are `<namespace>/<name>`.
 */
export interface Recording {
  readonly writes: Write[];
  readonly reads: Read[];
  readonly watches: WatchSession[];
}

/** A resource in API paths and etcd keys. */
export interface Resource {
  /** API root, such as `/api/v1` */
  readonly root: string;
  /** Plural name, such as `configmaps` */
  readonly plural: string;
  /** Folder below etcd's prefix: `configmaps`, `services/specs`. */
  readonly folder: string;
}

interface Request {
  readonly client: string;
  readonly folder: string;
  readonly start: number;
  /** undefined when there was no response: the connection broke or the client timed out. */
  end: number | undefined;
  /** HTTP status; undefined without a response. */
  code: number | undefined;
}

export interface Write extends Request {
  readonly verb: "create" | "update" | "patch" | "apply" | "delete";
  readonly key: string;
  /** Unique value that the write sets in `data.tag`; undefined for deletions. */
  readonly tag: string | undefined;
  /** The resourceVersion in the request. */
  readonly basedOn: number | undefined;
  /** Response body: the written object, or the Status of a deletion. */
  answer: KubeObject | undefined;
}

export interface Read extends Request {
  /** Key of an object; for lists `""` or `<namespace>/`. */
  readonly prefix: string;
  readonly selection: Selection;
  /** Requested resourceVersion; undefined for most recent. */
  readonly revision: number | undefined;
  readonly exact: boolean;
  readonly limit: number | undefined;
  /** The previous page of the list. */
  readonly previous: Read | undefined;
  /** Resource version of a list response. */
  listRevision: number | undefined;
  items: readonly KubeObject[];
  /** Set when there are more pages. */
  continueToken: string | undefined;
}

export interface WatchSession extends Request {
  readonly prefix: string;
  readonly selection: Selection;
  /** Start after this revision; undefined and 0 start with the current state. */
  readonly revision: number | undefined;
  readonly events: SeenEvent[];
}

export interface SeenEvent {
  readonly at: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

/** A selector and its semantics, implemented independently of the code under test. */
export interface Selection {
  /** Query parameter, such as `labelSelector=group%3Da`; empty for all. */
  readonly query: string;
  matches(object: KubeObject): boolean;
}

export const everything: Selection = { query: "", matches: () => true };

export const byLabel = (name: string, value: string): Selection => ({
  query: `labelSelector=${encodeURIComponent(`${name}=${value}`)}`,
  matches: (object) => object.metadata.labels?.[name] === value,
});

export const byName = (name: string): Selection => ({
  query: `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`,
  matches: (object) => object.metadata.name === name,
});

/** A change in etcd. */
export interface Version {
  readonly key: string;
  readonly revision: number;
  /** Number of writes of the key since its creation; 0 for a deletion. */
  readonly version: number;
  /** undefined for a deletion. */
  readonly object: KubeObject | undefined;
}

export const revisionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion ?? 0);
export const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : String(metadata.name);
export const tagOf = (object: KubeObject | undefined): string | undefined =>
  (object as { data?: Record<string, string> } | undefined)?.data?.["tag"];

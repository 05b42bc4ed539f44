import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/**
 * What clients asked and were told, with times, and what etcd holds: the two sides that the checks compare. Times are
 * milliseconds of one clock, `performance.now()` of the process that runs all clients. Keys are `<namespace>/<name>`.
 */
export interface Recording {
  readonly writes: Write[];
  readonly reads: Read[];
  readonly watches: WatchSession[];
}

/** A resource as its users and as etcd name it. */
export interface Resource {
  /** `/api/v1` */
  readonly root: string;
  /** `configmaps` */
  readonly plural: string;
  /** Below etcd's prefix: `configmaps`, `services/specs`. */
  readonly folder: string;
}

interface Request {
  readonly client: string;
  readonly folder: string;
  readonly start: number;
  /** undefined: no answer came, the connection broke or the client gave up. */
  end: number | undefined;
  /** HTTP status; undefined without an answer. */
  code: number | undefined;
}

export interface Write extends Request {
  readonly verb: "create" | "update" | "patch" | "apply" | "delete";
  readonly key: string;
  /** What the write leaves in the object under `data.tag`, and no other write; undefined for deletions. */
  readonly tag: string | undefined;
  /** The resourceVersion that was sent. */
  readonly basedOn: number | undefined;
  /** The answer: the object as written, or the Status of a deletion. */
  answer: KubeObject | undefined;
}

export interface Read extends Request {
  /** One object's key; for lists `""` or `<namespace>/`. */
  readonly prefix: string;
  readonly selection: Selection;
  /** As sent; undefined: most recent. */
  readonly revision: number | undefined;
  readonly exact: boolean;
  readonly limit: number | undefined;
  /** The page before this one. */
  readonly previous: Read | undefined;
  /** Of a list: as the answer says. */
  listRevision: number | undefined;
  items: readonly KubeObject[];
  /** There is more. */
  continueToken: string | undefined;
}

export interface WatchSession extends Request {
  readonly prefix: string;
  readonly selection: Selection;
  /** After this revision; undefined and 0: the present state first. */
  readonly revision: number | undefined;
  readonly events: SeenEvent[];
}

export interface SeenEvent {
  readonly at: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

/** A selector with what it means, told apart from the code under test. */
export interface Selection {
  /** `labelSelector=group%3Da`; empty for all. */
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

/** One change in etcd. */
export interface Version {
  readonly key: string;
  readonly revision: number;
  /** How often the key was written since it was made; 0 for a deletion. */
  readonly version: number;
  /** undefined: deleted. */
  readonly object: KubeObject | undefined;
}

export const revisionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion ?? 0);
export const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : String(metadata.name);
export const tagOf = (object: KubeObject | undefined): string | undefined =>
  (object as { data?: Record<string, string> } | undefined)?.data?.["tag"];

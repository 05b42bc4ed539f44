import { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import { verbOfMethod } from "@coxswain/apimachinery/serving/verb-of-method";
import { decodePath, queryOf } from "./url.ts";

/**
 * What a request asks for, from its method and path alone.
 * Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go
 */
export interface RequestInfo {
  /** False for /healthz, /metrics, /version, /api, /apis and all other paths that name no resource. */
  readonly isResourceRequest: boolean;
  /** Without the query. */
  readonly path: string;
  /** get, list, watch, create, update, patch, delete, deletecollection, proxy (legacy) or the lower-case method for other paths. */
  readonly verb: string;
  readonly apiPrefix: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** The old form, `/api/v1/watch/pods`. */
  readonly legacyPrefix: "" | "watch" | "proxy";
  /** Everything after the version and that prefix, split at slashes. */
  readonly parts: readonly string[];
}

/** Subresources of a namespace itself: `/namespaces/web/finalize` is not a resource `finalize` in `web`. */
const namespaceSubresources = new Set(["status", "finalize"]);

/**
 * @param url path and query as sent: `/apis/apps/v1/namespaces/web/deployments?watch=true`
 * @throws Error when the path has a broken percent escape or asks for a legacy verb (`/api/v1/watch`) without a resource.
 */
export function parseRequestInfo(method: string, url: string): RequestInfo {
  const queryAt = url.indexOf("?");
  const rawPath = queryAt < 0 ? url : url.slice(0, queryAt);
  const path = decodePath(rawPath);
  const parts = splitPath(path);
  const prefix = parts[0];
  if (parts.length < 3 || (prefix !== "api" && prefix !== "apis") || (prefix === "apis" && parts.length < 4)) {
    return nonResource(method, path);
  }

  const group = prefix === "apis" ? (parts[1] as string) : "";
  const versionAt = prefix === "apis" ? 2 : 1;
  let current = parts.slice(versionAt + 1);
  let verb = verbOfMethod[method] ?? "";
  const legacyPrefix = current[0] === "watch" || current[0] === "proxy" ? current[0] : "";
  if (legacyPrefix !== "") {
    if (current.length < 2) throw new Error(`unable to determine kind and namespace from url, ${path}`);
    verb = legacyPrefix;
    current = current.slice(1);
  }

  let namespace = "";
  if (current[0] === "namespaces" && current.length > 1) {
    namespace = current[1] as string;
    if (current.length > 2 && !namespaceSubresources.has(current[2] as string)) current = current.slice(2);
  }

  const resource = current[0] ?? "";
  let name = current[1] ?? "";
  const subresource = legacyPrefix === "proxy" ? "" : (current[2] ?? "");
  if (name === "" && verb === "get") {
    verb = "list";
    if (queryAt >= 0) {
      const query = queryOf(url);
      if (isTrue(query.get("watch"))) verb = "watch";
      name = nameInFieldSelector(query.get("fieldSelector"));
    }
  } else if (name === "" && verb === "delete") {
    verb = "deletecollection";
  }
  return {
    isResourceRequest: true,
    path,
    verb,
    apiPrefix: prefix,
    group,
    version: parts[versionAt] as string,
    namespace,
    resource,
    subresource,
    name,
    legacyPrefix,
    parts: current,
  };
}

function nonResource(method: string, path: string): RequestInfo {
  return {
    isResourceRequest: false,
    path,
    verb: method.toLowerCase(),
    apiPrefix: "",
    group: "",
    version: "",
    namespace: "",
    resource: "",
    subresource: "",
    name: "",
    legacyPrefix: "",
    parts: [],
  };
}

function splitPath(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path[start] === "/") start++;
  while (end > start && path[end - 1] === "/") end--;
  return start === end ? [] : path.slice(start, end).split("/");
}

/** A boolean query parameter as upstream reads it: present and neither `false` nor `0`. */
function isTrue(value: string | null): boolean {
  if (value === null) return false;
  const lower = value.toLowerCase();
  return lower !== "false" && lower !== "0";
}

/**
 * A list or watch of one object is authorized by its name, so that a rule with resourceNames can allow it. Read as those
 * read it that select by it: a comma may be part of a value, and what follows is no term of its own then.
 */
function nameInFieldSelector(text: string | null): string {
  if (text === null || text === "") return "";
  let name: string | undefined;
  try {
    name = FieldSelector.parse(text).requiresExact("metadata.name");
  } catch {
    return ""; // refused by whoever lists
  }
  return name !== undefined && isPathSegment(name) ? name : "";
}

/** Source: k8s.io/apimachinery pkg/api/validation/path/name.go */
function isPathSegment(name: string): boolean {
  return name !== "." && name !== ".." && !/[/%]/.test(name);
}

/** Watches, proxies and streams: no deadline of --request-timeout, not counted as in flight. */
export function isLongRunning(info: RequestInfo): boolean {
  if (!info.isResourceRequest) return info.path.startsWith("/debug/pprof/");
  return info.verb === "watch" || info.verb === "proxy" || longRunningSubresources.has(info.subresource);
}

const longRunningSubresources = new Set(["attach", "exec", "proxy", "log", "portforward"]);

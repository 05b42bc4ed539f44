import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { verbOfMethod } from "@coxswain/apimachinery/serving/verb-of-method";

/**
 * What a request addresses, derived from its method, path and query alone.
 * Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go
 */
export interface RequestInfo {
  /** False for /healthz, /metrics, /version, /api, /apis and all other paths that do not name a resource. */
  readonly isResourceRequest: boolean;
  /** Decoded, without the query. */
  readonly path: string;
  /**
   * get, list, watch, create, update, patch, delete, deletecollection, proxy (legacy), or the lower-case method for other paths.
   */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** The legacy form, `/api/v1/watch/pods`. */
  readonly legacyPrefix: "" | "watch" | "proxy";
  /** The path segments after the version and the legacy prefix. */
  readonly parts: readonly string[];
}

/** Subresources of a namespace: in `/namespaces/web/finalize`, `finalize` is not a resource in namespace `web`. */
const namespaceSubresources = new Set(["status", "finalize"]);

/**
 * @param url path and query as sent: `/apis/apps/v1/namespaces/web/deployments?watch=true`
 * @throws Error for a broken percent escape, or a legacy verb (`/api/v1/watch`) without a resource
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

  const group = prefix === "apis" ? parts[1]! : "";
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
    namespace = current[1]!;
    if (current.length > 2 && !namespaceSubresources.has(current[2]!)) current = current.slice(2);
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
    group,
    version: parts[versionAt]!,
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

/** A boolean query parameter as upstream parses it: true unless absent, `false` or `0`. */
function isTrue(value: string | null): boolean {
  if (value === null) return false;
  const lower = value.toLowerCase();
  return lower !== "false" && lower !== "0";
}

/**
 * The name required by a field selector, so that a list or watch of one object can be authorized by resourceNames.
 * Uses the parser that also evaluates the selector: a different reading, e.g. of an escaped comma within a value,
 * would authorize the wrong request.
 */
function nameInFieldSelector(text: string | null): string {
  if (text === null || text === "") return "";
  let name: string | undefined;
  try {
    name = FieldSelector.parse(text).requiresExact("metadata.name");
  } catch {
    return ""; // rejected by the list handler
  }
  return name !== undefined && isPathSegment(name) ? name : "";
}

/** Source: k8s.io/apimachinery pkg/api/validation/path/name.go */
function isPathSegment(name: string): boolean {
  return name !== "." && name !== ".." && !/[/%]/.test(name);
}

/** Watches, proxies and streams: exempt from --request-timeout and not counted as in flight. */
export function isLongRunning(info: RequestInfo): boolean {
  if (!info.isResourceRequest) return info.path.startsWith("/debug/pprof/");
  return info.verb === "watch" || info.verb === "proxy" || longRunningSubresources.has(info.subresource);
}

const longRunningSubresources = new Set(["attach", "exec", "proxy", "log", "portforward"]);

// URL parsing as in Go. Source: net/url url.go; net/http server.go since Go 1.17
const brokenEscape = /%(?![0-9a-fA-F]{2})/;

/**
 * Decodes the percent escapes of a path. Invalid UTF-8 is replaced by U+FFFD.
 * @throws URIError for a broken escape
 */
export function decodePath(path: string): string {
  if (!path.includes("%")) return path;
  if (brokenEscape.test(path)) throw new URIError(`invalid URL escape in ${JSON.stringify(path)}`);
  try {
    return decodeURIComponent(path);
  } catch {
    const bytes = path.replaceAll(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return Buffer.from(bytes, "latin1").toString("utf8");
  }
}

/** Shared by requests without a query; never modified. */
const noQuery = new URLSearchParams();

/** The query of a URL. As in Go, parameters with a broken escape or a semicolon (formerly a separator) are ignored. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf("?");
  if (at < 0) return noQuery;
  const query = url.slice(at + 1);
  if (!query.includes("%") && !query.includes(";")) return new URLSearchParams(query);
  const readable = query.split("&").filter((pair) => !pair.includes(";") && !brokenEscape.test(pair));
  return new URLSearchParams(readable.join("&"));
}

const readOnlyVerbs = new Set(["get", "list", "watch"]);

/** Whether the request counts as a read for load limits. */
export const isReadOnly = ({ verb }: RequestInfo): boolean => readOnlyVerbs.has(verb);

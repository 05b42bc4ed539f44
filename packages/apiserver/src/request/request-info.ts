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
  /** Everything after the version, split at slashes. */
  readonly parts: readonly string[];
}

/** `group` is `""` for the core group. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

export interface GroupVersionKind extends GroupVersion {
  readonly kind: string;
}

export interface GroupResource {
  readonly group: string;
  /** Plural and lower case, as in the URL: `replicasets`. */
  readonly resource: string;
}

export interface GroupVersionResource extends GroupVersion, GroupResource {}

/** Identifies a resource for clients; constants are in `schema/kinds/resources.ts`. */
export interface ResourceRef extends GroupVersionResource {
  readonly kind: string;
  readonly namespaced: boolean;
}

/** `v1` for the core group, `apps/v1` for others. */
export function formatGroupVersion(gv: GroupVersion): string {
  return gv.group === "" ? gv.version : `${gv.group}/${gv.version}`;
}

/** Sets `kind` and `apiVersion` in place. @returns the object */
export function setKind<T extends { kind?: string; apiVersion?: string }>(object: T, kind: GroupVersionKind): T {
  object.kind = kind.kind;
  object.apiVersion = formatGroupVersion(kind);
  return object;
}

/** @returns undefined for a text that is empty or has more than one slash */
export function parseGroupVersion(apiVersion: string): GroupVersion | undefined {
  const parts = apiVersion.split("/");
  if (apiVersion === "" || parts.length > 2) return undefined;
  return parts.length === 1 ? { group: "", version: apiVersion } : { group: parts[0]!, version: parts[1]! };
}

/** `pods` for the core group, `deployments.apps` for others. */
export function formatGroupResource(gr: GroupResource): string {
  return gr.group === "" ? gr.resource : `${gr.resource}.${gr.group}`;
}

/** URL prefix of a group version: `/api/v1` or `/apis/apps/v1`. */
export function groupVersionPath(gv: GroupVersion): string {
  return gv.group === "" ? `/api/${gv.version}` : `/apis/${gv.group}/${gv.version}`;
}

/** URL path, e.g. `/api/v1/namespaces/web/pods/web-0/status`; absent parts are omitted. */
export function resourcePath(
  ref: GroupVersionResource,
  target: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined } = {},
): string {
  let path = groupVersionPath(ref);
  if (target.namespace) path += `/namespaces/${encodeURIComponent(target.namespace)}`;
  path += `/${ref.resource}`;
  if (target.name !== undefined && target.name !== "") path += `/${encodeURIComponent(target.name)}`;
  if (target.subresource) path += `/${target.subresource}`;
  return path;
}

/** Version priority: v2, v1, v2beta1, v1beta2, v1alpha1, then others alphabetically. Source: version/helpers.go */
export function compareKubeVersions(a: string, b: string): number {
  const left = versionRank(a);
  const right = versionRank(b);
  for (let i = 0; i < left.length; i++) {
    const difference = right[i]! - left[i]!;
    if (difference !== 0) return difference;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function versionRank(version: string): [number, number, number] {
  const match = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(version);
  if (match === null) return [0, 0, 0];
  const stage = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return [stage, Number(match[1]), Number(match[3] ?? 0)];
}

/** The location in the page, as the URL's fragment: it can be bookmarked, shared and reached by the Back button. */

export const views = ["cluster", "workloads", "pods", "events", "trouble"] as const;
export type View = (typeof views)[number];

export const tabs = ["why", "logs", "events", "json"] as const;
export type Tab = (typeof tabs)[number];

export interface ObjectPath {
  /** `pods`, `deployments.apps` */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Route {
  readonly view: View;
  readonly query: string;
  /** `""`: all. */
  readonly namespace: string;
  readonly object: ObjectPath | undefined;
  readonly tab: Tab;
}

/** @returns the first view when the hash is invalid */
export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const requested = new URLSearchParams(search);
  return {
    view: views.find((view) => view === path) ?? "cluster",
    query: requested.get("q") ?? "",
    namespace: requested.get("ns") ?? "",
    object: parseObject(requested.get("o") ?? ""),
    tab: tabs.find((tab) => tab === requested.get("tab")) ?? "why",
  };
}

function parseObject(text: string): ObjectPath | undefined {
  const parts = text.split("/");
  const [resource = "", namespace = "", name = ""] = parts;
  return parts.length === 3 && resource !== "" && name !== "" ? { resource, namespace, name } : undefined;
}

export function formatRoute({ view, query, namespace, object, tab }: Route): string {
  const requested = new URLSearchParams();
  if (query !== "") requested.set("q", query);
  if (namespace !== "") requested.set("ns", namespace);
  if (object !== undefined) requested.set("o", `${object.resource}/${object.namespace}/${object.name}`);
  if (object !== undefined && tab !== "why") requested.set("tab", tab);
  const search = requested.toString();
  return `#/${view}${search === "" ? "" : `?${search}`}`;
}

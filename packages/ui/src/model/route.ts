/** Where the page is, as the part of its address after `#`: it can be kept, sent and gone back to. */

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

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const asked = new URLSearchParams(search);
  return {
    view: views.find((view) => view === path) ?? "cluster",
    query: asked.get("q") ?? "",
    namespace: asked.get("ns") ?? "",
    object: parseObject(asked.get("o") ?? ""),
    tab: tabs.find((tab) => tab === asked.get("tab")) ?? "why",
  };
}

function parseObject(text: string): ObjectPath | undefined {
  const parts = text.split("/");
  const [resource = "", namespace = "", name = ""] = parts;
  return parts.length === 3 && resource !== "" && name !== "" ? { resource, namespace, name } : undefined;
}

export function formatRoute({ view, query, namespace, object, tab }: Route): string {
  const asked = new URLSearchParams();
  if (query !== "") asked.set("q", query);
  if (namespace !== "") asked.set("ns", namespace);
  if (object !== undefined) asked.set("o", `${object.resource}/${object.namespace}/${object.name}`);
  if (object !== undefined && tab !== "why") asked.set("tab", tab);
  const search = asked.toString();
  return `#/${view}${search === "" ? "" : `?${search}`}`;
}

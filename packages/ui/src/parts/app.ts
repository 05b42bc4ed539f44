/** The context of all parts of the page: cluster, API, route, and the function that changes the route. */
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Api } from "../api.ts";
import type { Cluster } from "../model/cluster.ts";
import { formatRoute, type ObjectPath, parseRoute, type Route } from "../model/route.ts";
import type { Row } from "../model/row.ts";
import type { Explanations } from "../model/why.ts";

export interface App {
  readonly api: Api;
  readonly cluster: Cluster;
  readonly explanations: Explanations;
  readonly route: Route;
  /** Changes parts of the route. A change of the view or object can be undone by the browser's Back button. */
  go(change: Partial<Route>): void;
}

export const AppContext = createContext<App>(undefined!);
export const useApp = (): App => useContext(AppContext);

/** Renders again after each change of the cluster. @returns its version */
export function useCluster(): number {
  const { cluster } = useApp();
  const [version, setVersion] = useState(cluster.version);
  useEffect(() => {
    setVersion(cluster.version);
    return cluster.subscribe(() => setVersion(cluster.version));
  }, [cluster]);
  return version;
}

/** The current time, updated periodically: ages change, and operations that take too long become problems. */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function useRoute(): [Route, (change: Partial<Route>) => void] {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const read = (): void => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  const go = (change: Partial<Route>): void => {
    const next = { ...parseRoute(location.hash), ...change };
    const hash = formatRoute(next);
    if (hash === location.hash) return;
    const isStep = change.view !== undefined || "object" in change;
    history[isStep ? "pushState" : "replaceState"](null, "", hash);
    setRoute(next);
  };
  return [route, go];
}

export const pathOf = ({ resource, namespace, name }: Row): ObjectPath => ({ resource, namespace, name });

/** The link to an object. */
export const hrefOf = (route: Route, object: ObjectPath): string => formatRoute({ ...route, object, tab: "why" });

/** True for windows as narrow as a phone. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(narrow).matches);
  useEffect(() => {
    const media = matchMedia(narrow);
    const read = (): void => setNarrow(media.matches);
    media.addEventListener("change", read);
    return () => media.removeEventListener("change", read);
  }, []);
  return isNarrow;
}
const narrow = "(max-width: 720px)";

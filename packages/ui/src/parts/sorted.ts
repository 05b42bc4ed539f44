import { useMemo, useRef } from "preact/hooks";
import { byName } from "../model/cluster.ts";
import { reordered } from "../model/order.ts";
import { parseQuery } from "../model/query.ts";
import type { Resource, Row } from "../model/row.ts";
import { useApp } from "./app.ts";

/** The rows of the resources that match search field and namespace, sorted; recomputed only when one of them changes. */
export function useRows<R extends Row>(
  resources: readonly Resource[],
  compare: (a: R, b: R) => number = byName,
  keep?: (row: R) => boolean,
): readonly R[] {
  const { cluster, route } = useApp();
  const before = useRef<readonly R[]>([]);
  const version = resources.map((one) => cluster.versionOf(one)).join();
  const sorted = useMemo(() => {
    const all = resources.length === 1 ? cluster.all<R>(resources[0]!) : merged<R>(resources.map((one) => cluster.all<R>(one)));
    before.current = reordered(before.current, all, compare);
    return before.current;
  }, [version, compare]);
  return useMemo(() => {
    const matches = parseQuery(route.query);
    const { namespace } = route;
    if (matches === undefined && namespace === "" && keep === undefined) return sorted;
    return sorted.filter(
      (row) =>
        (namespace === "" || row.namespace === namespace || row.namespace === "") &&
        (keep?.(row) ?? true) &&
        (matches?.(row) ?? true),
    );
  }, [sorted, route.query, route.namespace, keep]);
}

const merged = <R>(maps: readonly ReadonlyMap<string, R>[]): ReadonlyMap<string, R> => new Map(maps.flatMap((one) => [...one]));

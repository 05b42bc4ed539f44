import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { byName } from "../model/cluster.ts";
import type { PodRow } from "../model/row.ts";
import { age, cores, size } from "../model/text.ts";
import { pathOf, useApp, useCluster, useNarrow, useNow } from "../parts/app.ts";
import { Status } from "../parts/marks.tsx";
import { type Column, Rows } from "../parts/rows.tsx";
import { useRows } from "../parts/sorted.ts";

const rank = { bad: 0, moving: 1, good: 2, idle: 3 } as const;

export function PodsView(): JSX.Element {
  const { cluster, route, go } = useApp();
  useCluster();
  const now = useNow();
  const isNarrow = useNarrow();
  const [sort, setSort] = useState("name");
  const columns = useMemo((): Column<PodRow>[] => {
    const usage = (pod: PodRow) => cluster.usageOf(pod);
    const all: Column<PodRow>[] = [
      { name: "namespace", title: "Namespace", cell: ({ namespace }) => namespace },
      { name: "name", title: "Name", cell: ({ name }) => name, compare: byName },
      {
        name: "state",
        title: "Status",
        cell: ({ health, status }) => <Status health={health} text={status} />,
        compare: (a, b) => rank[a.health] - rank[b.health] || byName(a, b),
      },
      { name: "ready", title: "Ready", cell: ({ ready, containers }) => `${ready}/${containers}` },
      {
        name: "restarts",
        title: "Restarts",
        cell: ({ restarts }) => (restarts === 0 ? <span class="dim">0</span> : restarts),
        compare: (a, b) => b.restarts - a.restarts || byName(a, b),
      },
      { name: "node", title: "Node", cell: ({ node }) => node || <span class="dim">none</span> },
      {
        name: "age",
        title: "Age",
        cell: ({ createdMs }) => age(createdMs, Date.now()),
        compare: (a, b) => b.createdMs - a.createdMs,
      },
    ];
    if (!cluster.hasPodUsage) return all;
    return [
      ...all.slice(0, 5),
      {
        name: "cpu",
        title: "CPU",
        cell: (pod) => usage(pod) && cores(usage(pod)?.cpuMilli ?? 0),
        compare: (a, b) => (usage(b)?.cpuMilli ?? 0) - (usage(a)?.cpuMilli ?? 0),
      },
      {
        name: "memory",
        title: "Memory",
        cell: (pod) => usage(pod) && size(usage(pod)?.memoryBytes ?? 0),
        compare: (a, b) => (usage(b)?.memoryBytes ?? 0) - (usage(a)?.memoryBytes ?? 0),
      },
      ...all.slice(5),
    ];
  }, [cluster, cluster.hasPodUsage]);
  const compare = columns.find(({ name }) => name === sort)?.compare ?? byName;
  const pods = useRows<PodRow>(["pods"], compare);
  const { object } = route;
  const open = object?.resource === "pods" ? cluster.find("pods", object.namespace, object.name)?.uid : undefined;
  return (
    <div class={cluster.hasPodUsage ? "view pod-rows used" : "view pod-rows"} data-now={now}>
      <Rows
        label="Pods"
        items={pods}
        keyOf={({ uid }) => uid}
        columns={columns}
        rowHeight={isNarrow ? 56 : 36}
        onOpen={(pod) => go({ object: pathOf(pod), tab: "why" })}
        empty={cluster.source("pods").state === "denied" ? cluster.source("pods").message : "No pod matches."}
        openKey={open}
        alsoOn={[now, cluster.version]}
        sort={sort}
        onSort={setSort}
      />
    </div>
  );
}

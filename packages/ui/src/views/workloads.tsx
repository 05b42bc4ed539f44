/** Deployments, sets and jobs, with their rollouts. ReplicaSets of a Deployment are shown with it. */
import type { JSX } from "preact";
import { kindNames, type WorkloadRow } from "../model/row.ts";
import { age, percent } from "../model/text.ts";
import { pathOf, useApp, useCluster, useNarrow, useNow } from "../parts/app.ts";
import { Status } from "../parts/marks.tsx";
import { type Column, Rows } from "../parts/rows.tsx";
import { useRows } from "../parts/sorted.ts";

const resources = [
  "deployments.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "replicasets.apps",
  "jobs.batch",
  "cronjobs.batch",
] as const;

const isShown = ({ resource, owner }: WorkloadRow): boolean => owner === "" || resource !== "replicasets.apps";
const byNeed = (a: WorkloadRow, b: WorkloadRow): number =>
  order[a.health] - order[b.health] || compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
const order = { bad: 0, moving: 1, good: 2, idle: 3 } as const;
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const columns: readonly Column<WorkloadRow>[] = [
  { name: "namespace", title: "Namespace", cell: ({ namespace }) => namespace },
  { name: "name", title: "Name", cell: ({ name }) => name },
  { name: "kind", title: "Kind", cell: ({ resource }) => <span class="dim">{kindNames[resource]}</span> },
  { name: "rollout", title: "Rollout", cell: (row) => <Rollout row={row} /> },
  { name: "state", title: "Status", cell: ({ health, status }) => <Status health={health} text={status} /> },
  { name: "images", title: "Images", cell: ({ images }) => <span class="dim mono">{shortImages(images)}</span> },
  { name: "age", title: "Age", cell: ({ createdMs }) => age(createdMs, Date.now()) },
];

/** Without the registry, which is long and seldom of interest. */
const shortImages = (images: string): string =>
  images
    .split(", ")
    .map((image) => image.split("/").at(-1))
    .join(", ");

export function WorkloadsView(): JSX.Element {
  const { cluster, route, go } = useApp();
  useCluster();
  const now = useNow();
  const isNarrow = useNarrow();
  const rows = useRows<WorkloadRow>(resources, byNeed, isShown);
  const { object } = route;
  const open = object && cluster.find(object.resource, object.namespace, object.name)?.uid;
  return (
    <div class="view workload-rows" data-now={now}>
      <Rows
        label="Workloads"
        items={rows}
        keyOf={({ uid }) => uid}
        columns={columns}
        rowHeight={isNarrow ? 60 : 40}
        onOpen={(row) => go({ object: pathOf(row), tab: "why" })}
        empty="No workload matches."
        openKey={open}
        alsoOn={[now, cluster.version]}
      />
    </div>
  );
}

/** How far a rollout is: ready ones of the newest revision, those of it that start, and ready ones of earlier revisions. */
export function Rollout({ row }: { readonly row: WorkloadRow }): JSX.Element {
  const { desired, ready, updatedReady, updated, health } = row;
  if (row.resource === "cronjobs.batch") return <span class="dim">{ready > 0 ? `${ready} active` : "–"}</span>;
  return (
    <span class="progress">
      <span class={`bar ${health}`} role="img" aria-label={`${ready} of ${desired} ready, ${updated} of the newest revision`}>
        <span class="fill old" style={{ width: `${percent(updated + ready - updatedReady, desired)}%` }} />
        <span class="fill ground" style={{ width: `${percent(updated, desired)}%` }} />
        <span class="fill starting" style={{ width: `${percent(updated, desired)}%` }} />
        <span class="fill" style={{ width: `${percent(updatedReady, desired)}%` }} />
      </span>
      <span class="progress-text">
        {ready}/{desired}
      </span>
    </span>
  );
}

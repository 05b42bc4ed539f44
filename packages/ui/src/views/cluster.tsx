/** The first view: figures, problems, and the nodes with their pods as a picture. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Cluster } from "../model/cluster.ts";
import type { NodeRow, PodRow } from "../model/row.ts";
import { counted, percent, size } from "../model/text.ts";
import { troublesOf } from "../model/trouble.ts";
import { useApp, useCluster, useNow } from "../parts/app.ts";
import { NodeGrid } from "./node-grid.tsx";
import { TroubleItem } from "./trouble.tsx";

const mostTroubles = 4;

export function ClusterView(): JSX.Element {
  const { cluster, go } = useApp();
  const version = useCluster();
  const now = useNow(5_000);
  const troubles = useMemo(() => troublesOf(cluster, now), [version, now]);
  return (
    <div class="scroll" id="scroll">
      <Figures cluster={cluster} />
      {troubles.length > 0 && (
        <section aria-labelledby="troubles">
          <h2 id="troubles">
            Not well <span class="count bad">{troubles.length}</span>
          </h2>
          <ul class="troubles">
            {troubles.slice(0, mostTroubles).map((trouble) => (
              <TroubleItem key={trouble.row.uid} trouble={trouble} now={now} />
            ))}
          </ul>
          {troubles.length > mostTroubles && (
            <button type="button" class="more" onClick={() => go({ view: "trouble" })}>
              {troubles.length - mostTroubles} more
            </button>
          )}
        </section>
      )}
      <NodeGrid />
    </div>
  );
}

interface Sums {
  readonly cpu: number;
  readonly memory: number;
}

function Figures({ cluster }: { readonly cluster: Cluster }): JSX.Element {
  const nodes = [...cluster.all<NodeRow>("nodes").values()];
  const pods = cluster.all<PodRow>("pods");
  const counts = useMemo(() => Object.groupBy(pods.values(), ({ health }) => health), [cluster.versionOf("pods")]);
  const ready = nodes.filter(({ status }) => status.startsWith("Ready")).length;
  const whole = sum(nodes.map(({ cpuMilli, memoryBytes }) => ({ cpu: cpuMilli, memory: memoryBytes })));
  const usage = nodes.flatMap((node) => cluster.usageOf(node) ?? []);
  const used = sum(usage.map(({ cpuMilli, memoryBytes }) => ({ cpu: cpuMilli, memory: memoryBytes })));
  const requested = sum(
    nodes.map(({ name }) => {
      const { cpuMilli, memoryBytes } = cluster.podsOf(name).requested;
      return { cpu: cpuMilli, memory: memoryBytes };
    }),
  );
  const hasUsage = usage.length > 0;
  const shown = hasUsage ? used : requested;
  const word = hasUsage ? "used" : "requested";
  const running = (counts.good?.length ?? 0) + (counts.moving?.length ?? 0);
  const failing = counts.bad?.length ?? 0;
  return (
    <dl class="figures">
      <Figure title="Nodes" value={`${ready}`} of={`of ${nodes.length} ready`} isBad={ready < nodes.length} />
      <Figure
        title="Pods"
        value={running.toLocaleString("en")}
        of={failing > 0 ? `running, ${failing.toLocaleString("en")} not well` : "running"}
        isBad={failing > 0}
      />
      <Figure
        title="CPU"
        value={`${percent(shown.cpu, whole.cpu)}%`}
        of={`of ${counted(Math.round(whole.cpu / 1000), "core")} ${word}`}
      />
      <Figure title="Memory" value={`${percent(shown.memory, whole.memory)}%`} of={`of ${size(whole.memory)} ${word}`} />
    </dl>
  );
}

const sum = (all: readonly Sums[]): Sums =>
  all.reduce((total, { cpu, memory }) => ({ cpu: total.cpu + cpu, memory: total.memory + memory }), { cpu: 0, memory: 0 });

interface FigureProps {
  readonly title: string;
  readonly value: string;
  readonly of: string;
  readonly isBad?: boolean;
}

function Figure({ title, value, of, isBad = false }: FigureProps): JSX.Element {
  return (
    <div class="figure">
      <dt>{title}</dt>
      <dd>
        <strong>{value}</strong> <span class={isBad ? "text-bad" : "dim"}>{of}</span>
      </dd>
    </div>
  );
}

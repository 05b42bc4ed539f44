/** All nodes with their pods; only what is visible is in the document. */
import type { JSX, TargetedMouseEvent } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Cluster, nodesOf } from "../model/cluster.ts";
import { heightOf, type Measures, pathsOf, squareAt, widthOf } from "../model/picture.ts";
import { parseQuery } from "../model/query.ts";
import type { Health, NodeRow, PodRow, Row } from "../model/row.ts";
import { cores, counted, percent, size } from "../model/text.ts";
import { hrefOf, pathOf, useApp, useNarrow } from "../parts/app.ts";
import { Bar, Mark } from "../parts/marks.tsx";
import { Still } from "../parts/still.ts";

interface Density {
  readonly measures: Measures;
  readonly cardWidth: number;
  /** Beside the squares. */
  readonly frameHeight: number;
  readonly hasBars: boolean;
}

const gap = 12;
const roomy: Density = {
  measures: { columns: 18, pitch: 14, side: 11 },
  cardWidth: 282,
  frameHeight: 118,
  hasBars: true,
};
/** More nodes than fit on a screen are drawn smaller. */
const dense: Density = { measures: { columns: 14, pitch: 10, side: 8 }, cardWidth: 166, frameHeight: 58, hasBars: false };
const manyNodes = 60;
const waitingMeasures: Measures = { columns: 60, pitch: 14, side: 11 };
const mostWaiting = 300;
/** Squares of more rows would make every card high. */
const mostSquareRows = 8;

export function NodeGrid(): JSX.Element {
  const { cluster, route } = useApp();
  const isNarrow = useNarrow();
  const nodes = useMemo(() => nodesOf(cluster), [cluster.versionOf("nodes")]);
  const matches = useMemo(() => parseQuery(route.query), [route.query]);
  const waiting = cluster.podsOf("").pods;
  const unscheduled = waiting.filter(({ health }) => health !== "idle");
  const denied = cluster.source("nodes").state === "denied";
  const shown = useMemo(
    () => (matches === undefined ? nodes : nodes.filter((node) => matches(node) || cluster.podsOf(node.name).pods.some(matches))),
    [nodes, matches, matches && cluster.versionOf("pods")],
  );
  return (
    <section aria-labelledby="nodes">
      <h2 id="nodes">
        Nodes <span class="count">{shown.length.toLocaleString("en")}</span>
        <Legend />
      </h2>
      {unscheduled.length > 0 && (
        <div class="waiting">
          <span class="dim">{counted(unscheduled.length, "pod")} without a node</span>
          <Picture
            pods={unscheduled.slice(0, mostWaiting)}
            measures={isNarrow ? roomy.measures : waitingMeasures}
            label="without a node"
          />
        </div>
      )}
      {denied && <p class="note">You may not list nodes: {cluster.source("nodes").message}</p>}
      <Cards nodes={shown} matches={matches} />
    </section>
  );
}

const states: readonly (readonly [Health, string])[] = [
  ["good", "running"],
  ["moving", "in progress"],
  ["bad", "not well"],
  ["idle", "completed"],
];

const Legend = (): JSX.Element => (
  <span class="legend">
    {states.map(([health, word]) => (
      <span key={health}>
        <svg class="key" viewBox="0 0 13 13" aria-hidden="true">
          <path class={`pods ${health}`} transform="translate(1 1)" d={pathsOf([{ health }], roomy.measures)[health]} />
        </svg>
        {word}
      </span>
    ))}
  </span>
);

interface CardsProps {
  readonly nodes: readonly NodeRow[];
  readonly matches: ((row: Row) => boolean) | undefined;
}

function Cards({ nodes, matches }: CardsProps): JSX.Element {
  const { cluster, route } = useApp();
  const { measures, cardWidth, frameHeight, hasBars } = nodes.length > manyNodes ? dense : roomy;
  const box = useRef<HTMLUListElement>(null);
  const [width, setWidth] = useState(0);
  const [[top, visible], setWindow] = useState<readonly [top: number, height: number]>([0, 900]);
  const columns = Math.max(1, Math.floor((width + gap) / (cardWidth + gap)));
  const most = Math.max(1, ...nodes.map(({ name }) => cluster.podsOf(name).pods.length));
  const squareRows = Math.min(mostSquareRows, Math.ceil(most / measures.columns));
  const height = frameHeight + squareRows * measures.pitch + gap;

  useLayoutEffect(() => {
    const list = box.current!;
    const scroll = list.closest(".scroll")!;
    const read = (): void => {
      setWidth(list.clientWidth);
      const from = scroll.getBoundingClientRect().top - list.getBoundingClientRect().top;
      const next = [Math.floor(from / height) * height, scroll.clientHeight] as const;
      // Scrolling within a row of cards renders nothing.
      setWindow((last) => (last[0] === next[0] && last[1] === next[1] ? last : next));
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(list);
    observer.observe(scroll);
    scroll.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      scroll.removeEventListener("scroll", read);
    };
  }, [height]);

  const first = Math.max(0, Math.floor(top / height) - 1) * columns;
  const last = Math.min(nodes.length, (Math.ceil((top + visible) / height) + 2) * columns);
  /** Of many, an element that left on one side is used again on the other. */
  const elements = (Math.ceil(visible / height) + 4) * columns;
  const stretched = width === 0 ? cardWidth : (width - (columns - 1) * gap) / columns;
  return (
    <ul
      ref={box}
      class={hasBars ? "cards" : "cards dense"}
      style={{ height: `${Math.ceil(nodes.length / columns) * height}px` }}
      aria-label="Nodes"
    >
      {nodes.slice(first, last).map((node, i) => {
        const at = first + i;
        const left = (at % columns) * (stretched + gap);
        return (
          <li
            key={hasBars ? node.uid : at % elements}
            class={`card ${node.health}`}
            style={{
              // No transforms: each would be a layer's candidate, for the browser to look at in each frame.
              left: `${left}px`,
              top: `${Math.floor(at / columns) * height}px`,
              width: `${stretched}px`,
              height: `${height - gap}px`,
            }}
          >
            <Still
              on={[node, cluster.podsOf(node.name), cluster.usageOf(node), hasBars, matches, route]}
              draw={() => (
                <>
                  <a class="card-name" href={hrefOf(route, pathOf(node))}>
                    <Mark health={node.health} />
                    <span class="cut">{node.name}</span>
                    {hasBars && node.status !== "Ready" && <span class={`chip ${node.health}`}>{node.status}</span>}
                  </a>
                  {hasBars ? <Bars cluster={cluster} node={node} /> : <Lines cluster={cluster} node={node} />}
                  <NodePods node={node} measures={measures} most={mostSquareRows * measures.columns} matches={matches} />
                </>
              )}
            />
          </li>
        );
      })}
    </ul>
  );
}

interface NodeProps {
  readonly cluster: Cluster;
  readonly node: NodeRow;
}

function sharesOf({ cluster, node }: NodeProps) {
  const usage = cluster.usageOf(node);
  const { requested } = cluster.podsOf(node.name);
  const of = (field: "cpuMilli" | "memoryBytes") => ({
    value: percent((usage ?? requested)[field], node[field]),
    requested: percent(requested[field], node[field]),
    amount: (usage ?? requested)[field],
  });
  return { isUsed: usage !== undefined, cpu: of("cpuMilli"), memory: of("memoryBytes") };
}

function Bars(props: NodeProps): JSX.Element {
  const { isUsed, cpu, memory } = sharesOf(props);
  const word = isUsed ? "" : " req.";
  const mark = (share: { readonly requested: number }): number | undefined => (isUsed ? share.requested : undefined);
  return (
    <div class="bars">
      <Bar label="CPU" value={cpu.value} mark={mark(cpu)} text={`${cores(cpu.amount)} of ${cores(props.node.cpuMilli)}${word}`} />
      <Bar
        label="Mem"
        value={memory.value}
        mark={mark(memory)}
        text={`${size(memory.amount)} of ${size(props.node.memoryBytes)}${word}`}
      />
    </div>
  );
}

/** Both bars in one element: there are many nodes. */
function Lines(props: NodeProps): JSX.Element {
  const { cpu, memory } = sharesOf(props);
  return (
    <div
      class="lines"
      role="img"
      aria-label={`CPU ${cpu.value}%, memory ${memory.value}%`}
      style={{ "--cpu": `${cpu.value}%`, "--memory": `${memory.value}%` }}
    />
  );
}

interface NodePodsProps {
  readonly node: NodeRow;
  readonly measures: Measures;
  readonly most: number;
  readonly matches: ((row: Row) => boolean) | undefined;
}

function NodePods({ node, measures, most, matches }: NodePodsProps): JSX.Element {
  const { cluster } = useApp();
  const all = cluster.podsOf(node.name).pods;
  const shown = matches === undefined || matches(node) ? all : all.filter(matches);
  return (
    <div class="card-pods">
      <Picture pods={shown.slice(0, most)} measures={measures} label={`on ${node.name}`} />
      {shown.length > most && <span class="dim">+{shown.length - most}</span>}
    </div>
  );
}

interface PictureProps {
  readonly pods: readonly PodRow[];
  readonly measures: Measures;
  readonly label: string;
}

function Picture({ pods, measures, label }: PictureProps): JSX.Element {
  const { go } = useApp();
  const [paths, summary] = useMemo(() => [pathsOf(pods, measures), summaryOf(pods)] as const, [signatureOf(pods), measures]);
  const [tip, setTip] = useState({ label, text: "" });
  const podAt = (event: TargetedMouseEvent<SVGSVGElement>): PodRow | undefined => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    return pods[squareAt(event.clientX - left - 1, event.clientY - top - 1, pods.length, measures)];
  };
  const width = widthOf(measures) + 2;
  const height = heightOf(pods.length, measures) + 2;
  return (
    <svg
      class="picture"
      role="img"
      aria-label={`${counted(pods.length, "pod")} ${label}${summary}`}
      width={width}
      height={height}
      viewBox={`-1 -1 ${width} ${height}`}
      onMouseMove={(event) => {
        const pod = podAt(event);
        setTip({ label, text: pod === undefined ? "" : `${pod.namespace}/${pod.name}\n${pod.status}` });
      }}
      onClick={(event) => {
        const pod = podAt(event);
        if (pod !== undefined) go({ object: pathOf(pod), tab: "why" });
      }}
    >
      {tip.text !== "" && tip.label === label && <title>{tip.text}</title>}
      {states.map(([health]) => paths[health] && <path key={health} class={`pods ${health}`} d={paths[health]} />)}
    </svg>
  );
}

function summaryOf(pods: readonly PodRow[]): string {
  const byHealth = Map.groupBy(pods, ({ health }) => health);
  const counts = states.flatMap(([health, word]) => {
    const count = byHealth.get(health)?.length ?? 0;
    return count > 0 ? [`${count} ${word}`] : [];
  });
  return counts.length > 0 ? `: ${counts.join(", ")}` : "";
}

/** Changes when the picture does. */
const signatureOf = (pods: readonly PodRow[]): string => pods.map(({ health }) => health[0]).join("");

/** One object: who owns it, why it is as it is, its logs, events and JSON. */
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type ObjectPath, type Tab, tabs } from "../model/route.ts";
import { isNode, isPod, isWorkload, kindNames, type Row } from "../model/row.ts";
import { age, cores, counted, size } from "../model/text.ts";
import { hrefOf, pathOf, useApp, useCluster, useNow } from "../parts/app.ts";
import { Icon, Mark, Status } from "../parts/marks.tsx";
import { EventList } from "./events.tsx";
import { JsonView } from "./json.tsx";
import { LogView } from "./logs.tsx";
import { Why } from "./why.tsx";
import { Rollout } from "./workloads.tsx";

const titles: Readonly<Record<Tab, string>> = { why: "Overview", logs: "Logs", events: "Events", json: "JSON" };

export function Panel({ object }: { readonly object: ObjectPath }): JSX.Element {
  const { cluster, route, go } = useApp();
  useCluster();
  const heading = useRef<HTMLHeadingElement>(null);
  const row = cluster.find(object.resource, object.namespace, object.name);
  const hasLogs = object.resource === "pods";
  const shown = tabs.filter((tab) => tab !== "logs" || hasLogs);
  const tab = shown.includes(route.tab) ? route.tab : "why";
  const path = `${object.resource}/${object.namespace}/${object.name}`;
  // Keyboard focus moves to the heading of an opened object.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [path]);
  const kind = isKeyOf(kindNames, object.resource) ? kindNames[object.resource] : object.resource;
  return (
    <aside class="panel" aria-label={`${kind} ${object.name}`}>
      <header>
        <div class="panel-title">
          <p class="dim">
            {kind}
            {object.namespace !== "" && ` in ${object.namespace}`}
          </p>
          <h2 ref={heading} tabIndex={-1}>
            {object.name}
          </h2>
        </div>
        {row !== undefined && row.status !== "" && <span class={`chip ${row.health}`}>{row.status}</span>}
        <button type="button" class="icon-button" aria-label="Close" onClick={() => go({ object: undefined })}>
          <Icon name="close" />
        </button>
      </header>
      <Tabs shown={shown} chosen={tab} onChoose={(next) => go({ tab: next })} />
      <div class={`panel-body ${tab}`} role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`} key={path}>
        {tab === "logs" && <LogView namespace={object.namespace} name={object.name} />}
        {tab === "json" && <JsonView object={object} row={row} />}
        {tab === "events" && row !== undefined && <EventList uid={row.uid} />}
        {tab !== "logs" && tab !== "json" && row === undefined && <Unknown object={object} />}
        {tab === "why" && row !== undefined && <Overview row={row} />}
      </div>
    </aside>
  );
}

const isFollowed = ({ resource }: ObjectPath): boolean => isKeyOf(kindNames, resource);

interface TabsProps {
  readonly shown: readonly Tab[];
  readonly chosen: Tab;
  readonly onChoose: (tab: Tab) => void;
}

/** Arrow keys move between tabs, as the ARIA practices have it. */
function Tabs({ shown, chosen, onChoose }: TabsProps): JSX.Element {
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = shown[(shown.indexOf(chosen) + step + shown.length) % shown.length]!;
    onChoose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="About this object" onKeyDown={onKeyDown} tabIndex={-1}>
      {shown.map((tab) => (
        <button
          key={tab}
          id={`tab-${tab}`}
          type="button"
          role="tab"
          aria-selected={tab === chosen}
          aria-controls="tab-panel"
          tabIndex={tab === chosen ? 0 : -1}
          onClick={() => onChoose(tab)}
        >
          {titles[tab]}
        </button>
      ))}
    </div>
  );
}

/** Of a kind that the page does not follow, or gone. */
function Unknown({ object }: { readonly object: ObjectPath }): JSX.Element {
  return isFollowed(object) ? (
    <p class="empty">There is no {object.name}; it was deleted, or you may not read it.</p>
  ) : (
    <p class="empty">The JSON tab shows it.</p>
  );
}

function Overview({ row }: { readonly row: Row }): JSX.Element {
  const { cluster } = useApp();
  const owners = cluster.owners(row).toReversed();
  return (
    <>
      {owners.length > 0 && (
        <nav class="owners" aria-label="Owners">
          {owners.map((owner) => (
            <ObjectLink key={owner.uid} row={owner} />
          ))}
          <span class="owner here">
            <Mark health={row.health} />
            <span class="cut">{row.name}</span>
          </span>
        </nav>
      )}
      <Why row={row} />
      <Facts row={row} />
      <Children row={row} />
    </>
  );
}

function ObjectLink({ row }: { readonly row: Row }): JSX.Element {
  const { route } = useApp();
  return (
    <a class="owner" href={hrefOf(route, pathOf(row))} title={`${kindNames[row.resource]} ${row.name}`}>
      <Mark health={row.health} />
      <span class="dim">{kindNames[row.resource]}</span>
      <span class="cut">{row.name}</span>
    </a>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

function factsOf(row: Row, nodeLink: (name: string) => ComponentChildren, usage: string): Fact[] {
  if (isPod(row)) {
    return [
      ["Node", row.node === "" ? "none yet" : nodeLink(row.node)],
      ["Ready", `${row.ready} of ${counted(row.containers, "container")}`],
      ["Restarts", row.restarts],
      ["Requests", `${cores(row.cpuMilli)} CPU, ${size(row.memoryBytes)} memory`],
      ...(usage === "" ? [] : [["Uses", usage] as const]),
    ];
  }
  if (isNode(row)) {
    return [
      ["Roles", row.roles || "none"],
      ["Address", row.address],
      ["Version", row.version],
      ["Room for", `${cores(row.cpuMilli)} CPU, ${size(row.memoryBytes)}, ${counted(row.pods, "pod")}`],
      ...(usage === "" ? [] : [["Uses", usage] as const]),
    ];
  }
  if (isWorkload(row)) {
    return [
      ["Rollout", <Rollout key="rollout" row={row} />],
      [
        "Images",
        <span key="images" class="mono wrap">
          {row.images}
        </span>,
      ],
    ];
  }
  return [];
}

function Facts({ row }: { readonly row: Row }): JSX.Element {
  const { cluster, route } = useApp();
  const now = useNow();
  const used = isPod(row) || isNode(row) ? cluster.usageOf(row) : undefined;
  const usage = used === undefined ? "" : `${cores(used.cpuMilli)} CPU, ${size(used.memoryBytes)} memory`;
  const nodeLink = (name: string): ComponentChildren => (
    <a href={hrefOf(route, { resource: "nodes", namespace: "", name })}>{name}</a>
  );
  const facts: Fact[] = [...factsOf(row, nodeLink, usage), ["Age", age(row.createdMs, now)]];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const mostChildren = 200;

function Children({ row }: { readonly row: Row }): JSX.Element | null {
  const { cluster, route } = useApp();
  const children = isNode(row) ? cluster.podsOf(row.name).pods : cluster.owned(row.uid);
  if (children.length === 0) return null;
  return (
    <section aria-labelledby="children">
      <h3 id="children">
        {isNode(row) ? "Pods" : "Owns"} <span class="count">{children.length}</span>
      </h3>
      <ul class="children">
        {children.slice(0, mostChildren).map((child) => (
          <li key={child.uid}>
            <a href={hrefOf(route, pathOf(child))}>
              {!isNode(row) && <span class="dim">{kindNames[child.resource]}</span>}
              <span class="cut">{child.name}</span>
              {isWorkload(child) ? <Rollout row={child} /> : <Status health={child.health} text={child.status} />}
            </a>
          </li>
        ))}
      </ul>
      {children.length > mostChildren && <p class="dim">and {children.length - mostChildren} more</p>}
    </section>
  );
}

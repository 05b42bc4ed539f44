/** The frame around the views: navigation, search, namespace, theme, and whether what is shown is up to date. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Cluster } from "../model/cluster.ts";
import { parseRoute, type Tab, type View, views } from "../model/route.ts";
import { kindNames } from "../model/row.ts";
import { troublesOf } from "../model/trouble.ts";
import { useApp, useCluster, useNow } from "../parts/app.ts";
import { Icon } from "../parts/marks.tsx";
import { Search } from "../parts/search.tsx";
import { useTheme } from "../parts/theme.ts";
import { ClusterView } from "./cluster.tsx";
import { EventsView } from "./events.tsx";
import { Help } from "./help.tsx";
import { Panel } from "./panel.tsx";
import { PodsView } from "./pods.tsx";
import { TroubleView } from "./trouble.tsx";
import { WorkloadsView } from "./workloads.tsx";

const titles: Readonly<Record<View, string>> = {
  cluster: "Cluster",
  workloads: "Workloads",
  pods: "Pods",
  events: "Events",
  trouble: "Not well",
};

const contents: Readonly<Record<View, () => JSX.Element>> = {
  cluster: ClusterView,
  workloads: WorkloadsView,
  pods: PodsView,
  events: EventsView,
  trouble: TroubleView,
};

const tabKeys: Readonly<Record<string, Tab>> = { w: "why", l: "logs", e: "events", y: "json" };

export function Shell({ onSignOut }: { readonly onSignOut: () => void }): JSX.Element {
  const { route, go } = useApp();
  const [theme, toggleTheme] = useTheme();
  const [isHelp, setHelp] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const { target } = event;
      const isTyping = target instanceof Element && /^(?:INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]"))
        return;
      // Read from the address: a key may follow before the change before it is drawn.
      const { object } = parseRoute(location.hash);
      const tab = tabKeys[event.key];
      const view = views[Number(event.key) - 1];
      if (event.key === "Escape") {
        if (object !== undefined) go({ object: undefined });
        focusList();
      } else if (isTyping) return;
      else if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "t") toggleTheme();
      else if (event.key === "?") setHelp(true);
      else if (view !== undefined) {
        go({ view });
        // Once it is drawn.
        setTimeout(focusList, 50);
      } else if (tab !== undefined && object !== undefined) go({ tab });
      else if (/^(?:j|k|ArrowDown|ArrowUp)$/.test(event.key) && target === document.body) focusList();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [go, toggleTheme]);
  const Content = contents[route.view];
  return (
    <div class={route.object === undefined ? "shell" : "shell with-panel"}>
      <header class="top">
        <a class="brand" href="#/cluster" aria-label="Coxswain, the cluster">
          <img src="icon.svg" alt="" width="28" height="28" />
          <span>Coxswain</span>
        </a>
        <Navigation />
        <Search />
        <NamespaceChoice />
        <Liveness />
        <button type="button" class="icon-button wide-only" aria-label="Keyboard and search help" onClick={() => setHelp(true)}>
          <Icon name="help" />
        </button>
        <button type="button" class="icon-button" aria-label={theme === "dark" ? "Light" : "Dark"} onClick={toggleTheme}>
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
        <button type="button" class="icon-button" aria-label="Sign out" onClick={onSignOut}>
          <Icon name="exit" />
        </button>
      </header>
      <main id="main" aria-label={titles[route.view]}>
        <h1 class="hidden">{titles[route.view]}</h1>
        <Content />
      </main>
      {route.object !== undefined && <Panel object={route.object} />}
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

function focusList(): void {
  const list = document.querySelector<HTMLElement>("main .rows") ?? document.querySelector<HTMLElement>("main .scroll a");
  list?.focus();
}

function Navigation(): JSX.Element {
  const { cluster, route, go } = useApp();
  const version = useCluster();
  const now = useNow(5_000);
  const troubles = useMemo(() => troublesOf(cluster, now).length, [version, now]);
  return (
    <nav class="views" aria-label="Views">
      {views.map((view) => (
        <a
          key={view}
          href={`#/${view}`}
          aria-current={view === route.view ? "page" : undefined}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            go({ view });
          }}
        >
          <Icon name={view} />
          <span>{titles[view]}</span>
          {view === "trouble" && troubles > 0 && <span class="count bad">{troubles}</span>}
        </a>
      ))}
    </nav>
  );
}

function NamespaceChoice(): JSX.Element {
  const { cluster, route, go } = useApp();
  useCluster();
  const isDenied = cluster.source("namespaces").state === "denied";
  const names = useMemo(
    () => [...cluster.all("namespaces").values()].map(({ name }) => name).sort(),
    [cluster.versionOf("namespaces")],
  );
  if (isDenied) {
    return (
      <input
        class="namespace-choice"
        aria-label="Namespace"
        placeholder="namespace"
        value={route.namespace}
        onChange={({ currentTarget }) => go({ namespace: currentTarget.value.trim() })}
      />
    );
  }
  return (
    <select
      class="namespace-choice"
      aria-label="Namespace"
      value={route.namespace}
      onChange={({ currentTarget }) => go({ namespace: currentTarget.value })}
    >
      <option value="">All namespaces</option>
      {route.namespace !== "" && !names.includes(route.namespace) && <option value={route.namespace}>{route.namespace}</option>}
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Liveness(): JSX.Element {
  const { cluster } = useApp();
  useCluster();
  const { state, text, detail } = livenessOf(cluster);
  return (
    <span class={`live ${state}`} role="status" title={detail}>
      <span class="hidden">{text}</span>
    </span>
  );
}

function livenessOf(cluster: Cluster): { state: string; text: string; detail: string } {
  const all = [...cluster.sources];
  const named = (state: string): string[] =>
    all.filter(([, source]) => source.state === state).map(([resource]) => kindNames[resource]);
  const away = all.find(([, { state }]) => state === "away");
  const denied = named("denied");
  const limits = denied.length > 0 ? `\nYou may not list: ${denied.join(", ")}` : "";
  if (away !== undefined)
    return { state: "bad", text: `Not up to date: ${away[1].message}`, detail: `Not up to date: ${away[1].message}` };
  if (all.length === 0 || named("loading").length > 0) return { state: "moving", text: "Loading", detail: "Loading" };
  return { state: "good", text: "Live", detail: `Live${limits}` };
}

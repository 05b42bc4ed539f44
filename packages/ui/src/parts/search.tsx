/** The search field: what is typed filters the view, and a list offers the objects to open. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { parseQuery } from "../model/query.ts";
import { kindNames, type Resource, type Row } from "../model/row.ts";
import { pathOf, useApp, useCluster } from "./app.ts";
import { Icon, Mark } from "./marks.tsx";

const searched: readonly Resource[] = [
  "nodes",
  "deployments.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "jobs.batch",
  "cronjobs.batch",
  "pods",
  "services",
  "persistentvolumeclaims",
  "horizontalpodautoscalers.autoscaling",
  "replicasets.apps",
  "namespaces",
];
const mostOffered = 12;
const mostOfKind = 4;

export function Search(): JSX.Element {
  const { cluster, route, go } = useApp();
  const version = useCluster();
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const offered = useMemo((): Row[] => {
    const matches = isOpen ? parseQuery(route.query) : undefined;
    if (matches === undefined) return [];
    return searched.flatMap((resource) => first(cluster.all(resource).values(), matches)).slice(0, mostOffered);
  }, [version, route.query, isOpen]);

  const open = (row: Row): void => {
    setOpen(false);
    go({ object: pathOf(row), tab: "why" });
    input.current?.blur();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = offered[chosen];
    if (event.key === "ArrowDown") setChosen(Math.min(offered.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(-1, chosen - 1));
    else if (event.key === "Enter") {
      if (row !== undefined) open(row);
      else setOpen(false);
    } else if (event.key === "Escape") {
      if (route.query !== "") go({ query: "" });
      else input.current?.blur();
      setOpen(false);
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  const isListed = isOpen && offered.length > 0;
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={input}
        id="search"
        type="search"
        role="combobox"
        list={undefined}
        placeholder="Search"
        aria-label="Search all objects"
        aria-expanded={isListed}
        aria-controls="offered"
        aria-autocomplete="list"
        aria-activedescendant={isListed && chosen >= 0 ? `offer-${chosen}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={route.query}
        onInput={({ currentTarget }) => {
          setOpen(true);
          setChosen(-1);
          go({ query: currentTarget.value });
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <kbd>/</kbd>
      <Offered rows={offered} chosen={chosen} isListed={isListed} open={open} />
    </div>
  );
}

interface OfferedProps {
  rows: readonly Row[];
  /** Index of the row that Enter opens; -1: none. */
  chosen: number;
  isListed: boolean;
  open: (row: Row) => void;
}

function Offered({ rows, chosen, isListed, open }: OfferedProps): JSX.Element {
  return (
    <div id="offered" role="listbox" aria-label="Objects" class="offered" hidden={!isListed}>
      {rows.map((row, i) => (
        <div
          key={row.uid}
          id={`offer-${i}`}
          role="option"
          aria-selected={i === chosen}
          class="offer"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => open(row)}
        >
          <Mark health={row.health} />
          <span class="dim">{kindNames[row.resource]}</span>
          <span class="cut">{row.name}</span>
          <span class="dim end">{row.namespace}</span>
        </div>
      ))}
    </div>
  );
}

function first(rows: Iterable<Row>, matches: (row: Row) => boolean): Row[] {
  const found: Row[] = [];
  for (const row of rows) {
    if (matches(row) && found.push(row) >= mostOfKind) break;
  }
  return found;
}

/** Problems, each with its cause, which the server explains. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { parseQuery } from "../model/query.ts";
import { kindNames } from "../model/row.ts";
import { age } from "../model/text.ts";
import { type Trouble, troublesOf } from "../model/trouble.ts";
import { hrefOf, pathOf, useApp, useCluster, useNow } from "../parts/app.ts";
import { Mark } from "../parts/marks.tsx";
import { Rows } from "../parts/rows.tsx";

export function TroubleView(): JSX.Element {
  const { cluster, route, go } = useApp();
  const version = useCluster();
  const now = useNow(5_000);
  const troubles = useMemo(() => {
    const matches = parseQuery(route.query);
    return troublesOf(cluster, now).filter(
      ({ row }) => (route.namespace === "" || row.namespace === route.namespace) && (matches?.(row) ?? true),
    );
  }, [version, now, route.query, route.namespace]);
  return (
    <Rows
      label="What is not well"
      items={troubles}
      keyOf={({ row }) => row.uid}
      rowHeight={66}
      onOpen={({ row }) => go({ object: pathOf(row), tab: "why" })}
      empty="Everything is well."
      columns={[{ name: "trouble", title: "What, and why", cell: (trouble) => <TroubleText trouble={trouble} now={now} /> }]}
    />
  );
}

interface TroubleProps {
  readonly trouble: Trouble;
  readonly now: number;
}

export function TroubleItem({ trouble, now }: TroubleProps): JSX.Element {
  const { route } = useApp();
  return (
    <li>
      <a class="trouble-link" href={hrefOf(route, pathOf(trouble.row))}>
        <TroubleText trouble={trouble} now={now} />
      </a>
    </li>
  );
}

function TroubleText({ trouble: { row, more }, now }: TroubleProps): JSX.Element {
  const { explanations } = useApp();
  const answer = explanations.of(row);
  const cause =
    answer.state === "asking"
      ? "…"
      : answer.state === "failed"
        ? answer.message
        : (answer.explanation.cause?.summary ?? "nothing is known to be wrong with it");
  return (
    <div class="trouble-text">
      <div class="trouble-head">
        <Mark health={row.health} />
        <span class="dim">{kindNames[row.resource]}</span>
        <span class="cut name">
          {row.namespace !== "" && <span class="dim">{row.namespace}/</span>}
          {row.name}
        </span>
        {more > 0 && <span class="dim">and {more.toLocaleString("en")} more</span>}
        <span class={`chip ${row.health}`}>{row.status}</span>
        <span class="dim end">{age(row.createdMs, now)}</span>
      </div>
      <div class="cut cause">{cause}</div>
    </div>
  );
}

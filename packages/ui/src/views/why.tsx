/** The explanation of an object: one cause first, then the chain that leads to it, and what to do. */
import type { JSX } from "preact";
import type { ObjectPath } from "../model/route.ts";
import type { Row } from "../model/row.ts";
import { age } from "../model/text.ts";
import type { Answer, Explanation, Finding, ObjectName } from "../model/why.ts";
import { hrefOf, useApp, useNow } from "../parts/app.ts";

export function Why({ row }: { readonly row: Row }): JSX.Element {
  const { explanations } = useApp();
  const now = useNow();
  // Queried again now and then: rendered each second, it notices that the answer is old.
  const answer = explanations.of(row);
  return (
    <section class="why" aria-label="Why" aria-live="polite">
      <WhyText answer={answer} now={now} />
    </section>
  );
}

function WhyText({ answer, now }: { readonly answer: Answer; readonly now: number }): JSX.Element {
  if (answer.state === "asking") return <p class="dim">Asking why…</p>;
  if (answer.state === "failed") return <p class="note">{answer.message}</p>;
  const { explanation } = answer;
  const { cause } = explanation;
  if (cause === undefined) return <p class="verdict good">Healthy.</p>;
  return (
    <>
      <p class={`verdict ${explanation.healthy ? "good" : "bad"}`}>{cause.summary}</p>
      {cause.remedy !== undefined && (
        <div class="remedy">
          <h3>What to do</h3>
          <p>{cause.remedy}</p>
        </div>
      )}
      {explanation.chain.length > 1 || cause.since !== undefined ? <Chain explanation={explanation} now={now} /> : null}
      {explanation.silent !== undefined && explanation.silent.length > 0 && (
        <p class="dim">No answer in time from {explanation.silent.join(", ")}.</p>
      )}
    </>
  );
}

function Chain({ explanation, now }: { readonly explanation: Explanation; readonly now: number }): JSX.Element {
  const { route } = useApp();
  return (
    <ol class="chain">
      {explanation.chain.map((finding, i) => (
        <li key={i}>
          <a href={hrefOf(route, pathOfName(finding.object))}>
            <span class="dim">{finding.object.kind}</span> {finding.object.name}
          </a>
          <p>{finding.summary}</p>
          <p class="dim">{sourceOf(finding, now)}</p>
        </li>
      ))}
    </ol>
  );
}

/** How the page and /debug/explain name its resource. */
function pathOfName({ group, resource, namespace, name }: ObjectName): ObjectPath {
  const full = group === "" ? resource : `${resource}.${group}`;
  return { resource: full, namespace, name };
}

function sourceOf({ by, since }: Finding, now: number): string {
  const from = by === "explain" ? "" : `${by}`;
  const when = since === undefined ? "" : `for ${age(Date.parse(since), now)}`;
  return [from, when].filter((one) => one !== "").join(", ");
}

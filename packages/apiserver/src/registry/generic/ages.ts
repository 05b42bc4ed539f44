import { randomUUID } from "node:crypto";
import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { humanDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Ages, TableColumns } from "./strategy.ts";

/** The ages as of `now`, in ms since the epoch. */
export function agesAt(now: number): Ages {
  return { since: (ms) => humanDuration(now - ms) };
}

/** Stands for an age in the JSON of the cells. Random and never sent to clients, so that no object can contain it. */
const mark = `age-${randomUUID()}-`;

/** JSON of the cells, split at the ages: `texts` has one item more than `since`, which is in ms since the epoch. */
interface TimelessCells {
  readonly texts: readonly string[];
  readonly since: readonly number[];
}

/** The cells of an object in a form that can be cached: ages are filled in when a response is written. */
export function timelessCells(table: TableColumns, object: Unstructured): TimelessCells {
  const times: number[] = [];
  const ages: Ages = { since: (ms) => `${mark}${times.push(ms) - 1};` };
  // Cells may use an age more than once, or not at all, and in another order.
  const [first = "", ...rest] = rawJson(table.cells(object, ages)).split(mark);
  const ends = rest.map((part) => part.indexOf(";"));
  return {
    texts: [first, ...rest.map((part, i) => part.slice(ends[i]! + 1))],
    since: rest.map((part, i) => times[Number(part.slice(0, ends[i]))]!),
  };
}

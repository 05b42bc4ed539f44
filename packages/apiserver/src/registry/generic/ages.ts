import { randomUUID } from "node:crypto";
import { humanDuration } from "@coxswain/apimachinery/meta/time";
import type { Unstructured } from "@coxswain/apimachinery/meta/types";
import type { TableColumns } from "./strategy.ts";

/** Placeholder for an age in the JSON of the cells. Random and never sent to clients, so that no object can contain it. */
const mark = `age-${randomUUID()}-`;
const marks = new RegExp(`${mark}(\\d+);`);

/** Timestamps collected by `ageSince` during `timelessCells`; undefined outside of it. */
let marked: number[] | undefined;

/**
 * Age in kubectl's notation (`5d3h`). Tables must use it for every cell that depends on `now`: cells are cached, and anything
 * else computed from `now` would never be updated.
 */
export function ageSince(ms: number, now: number): string {
  if (marked === undefined) return humanDuration(now - ms);
  marked.push(ms);
  return `${mark}${marked.length - 1};`;
}

/** JSON of the cells, split at the ages: `texts` has one item more than `since`, which is in ms since the epoch. */
export interface TimelessCells {
  readonly texts: readonly string[];
  readonly since: readonly number[];
}

/** The cells of an object in a form that can be cached: ages are filled in when a response is written. */
export function timelessCells(table: TableColumns, object: Unstructured): TimelessCells {
  const times: number[] = [];
  marked = times;
  let json: string;
  try {
    json = JSON.stringify(table.cells(object, 0));
  } finally {
    marked = undefined;
  }
  const parts = json.split(marks);
  return {
    texts: parts.filter((_, index) => index % 2 === 0),
    since: parts.filter((_, index) => index % 2 === 1).map((index) => times[Number(index)] as number),
  };
}

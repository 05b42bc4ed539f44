import { randomUUID } from "node:crypto";
import { humanDuration } from "@coxswain/apimachinery/meta/time";
import type { Unstructured } from "@coxswain/apimachinery/meta/types";
import type { TableColumns } from "./strategy.ts";

/** Stands where an age will be. Nobody outside can write it, because nobody outside sees it. */
const mark = `age-${randomUUID()}-`;
const marks = new RegExp(`${mark}(\\d+);`);

/** Set while cells are made that will be told at other times too. */
let marked: number[] | undefined;

/** How long ago that was. The only way from `now` to a cell: what a table makes of it otherwise would never change again. */
export function ageSince(ms: number, now: number): string {
  if (marked === undefined) return humanDuration(now - ms);
  marked.push(ms);
  return `${mark}${marked.length - 1};`;
}

/** JSON of the cells around their ages: one more text than there are times, in ms since the epoch. */
export interface TimelessCells {
  readonly texts: readonly string[];
  readonly since: readonly number[];
}

/** The cells of an object without the time of day. */
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

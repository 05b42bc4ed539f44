import { readRows } from "./read-rows.ts";
import type { Row } from "./row.ts";
import { watchRows } from "./watch-rows.ts";
import { writeRows } from "./write-rows.ts";

/** All rows, in the order in which they are measured. */
export function rowsFor(podCount: number): readonly Row[] {
  return [...readRows(podCount), ...watchRows, ...writeRows];
}

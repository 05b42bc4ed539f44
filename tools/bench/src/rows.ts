import type { Limit } from "./limits.ts";
import type { Samples } from "./load.ts";
import { readRows } from "./read-rows.ts";
import type { Stage } from "./stage.ts";
import { watchRows } from "./watch-rows.ts";
import { writeRows } from "./write-rows.ts";

/** One line of the table: a kind of load, the same for every server. */
export interface Row {
  readonly name: string;
  /** What we hold ourselves to, measured against a second server in the same run. */
  readonly limits?: readonly Limit[];
  /** Fewer tell nothing of it, but that it works (`--quick`). */
  readonly leastSeconds?: number;
  /** Makes what the row needs; it does not count. */
  prepare?(stage: Stage, seconds: number): Promise<void>;
  /** undefined: this server cannot be measured so */
  run(stage: Stage, seconds: number): Promise<Samples> | undefined;
}

export function rowsFor(podCount: number): readonly Row[] {
  return [...readRows(podCount), ...watchRows, ...writeRows];
}

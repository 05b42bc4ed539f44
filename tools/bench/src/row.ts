import type { Limit } from "./limits.ts";
import type { Samples } from "./load.ts";
import type { Stage } from "./stage.ts";

/** A row of the table: one kind of load, identical for all servers. */
export interface Row {
  readonly name: string;
  /** Limits, checked when a second server is measured in the same run. */
  readonly limits?: readonly Limit[];
  /** Minimum duration for meaningful results; ignored with `--quick`. */
  readonly leastSeconds?: number;
  /** Prepares the row; not measured. */
  prepare?(stage: Stage, seconds: number): Promise<void>;
  /** undefined when the row does not apply to this server */
  run(stage: Stage, seconds: number): Promise<Samples> | undefined;
}

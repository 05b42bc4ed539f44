import type { Duration } from "../time/duration.ts";

export interface WaitOptions {
  /** Time limit on the cluster's clock. Default 60 s. */
  readonly within?: Duration;
  /** Name of the condition, for the failure's message. */
  readonly what?: string;
}

export interface SettleOptions {
  /** Required time without writes. Default 10 s of virtual time, 200 ms of real time. */
  readonly quiet?: Duration;
  /** Time limit. Default 10 minutes of virtual time, 60 s of real time. */
  readonly within?: Duration;
}

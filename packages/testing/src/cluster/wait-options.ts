import type { Duration } from "../time/duration.ts";

export interface WaitOptions {
  /** By the cluster's clock. Default 60 s. */
  readonly within?: Duration;
  /** What is waited for, in the failure's message. */
  readonly what?: string;
}

export interface SettleOptions {
  /** Nothing may be written for so long. Default 10 s of virtual time, 200 ms of real time. */
  readonly quiet?: Duration;
  /** Default 10 minutes of virtual time, 60 s of real time. */
  readonly within?: Duration;
}

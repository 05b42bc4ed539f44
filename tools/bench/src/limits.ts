import type { Result } from "./load.ts";
import { percentile } from "./load.ts";

/** A measured quantity of a result. */
export interface Quantity {
  readonly title: string;
  readonly digits: number;
  of(result: Result): number;
}

const perThousand = (seconds: number, { operations }: Result): number => (seconds / operations) * 1000;

export const quantities = {
  perSecond: { title: "per s", digits: 0, of: (result) => result.operations / result.seconds },
  p50: { title: "p50 ms", digits: 2, of: (result) => percentile(result.latencies, 0.5) },
  p99: { title: "p99 ms", digits: 2, of: (result) => percentile(result.latencies, 0.99) },
  firstByte: { title: "1st byte ms", digits: 2, of: (result) => percentile(result.firstBytes, 0.5) },
  cpu: { title: "CPU s/1000", digits: 4, of: (result) => perThousand(result.cpuSeconds, result) },
  etcdCpu: { title: "etcd s/1000", digits: 4, of: (result) => perThousand(result.etcdCpuSeconds, result) },
  allCpu: { title: "CPU with etcd", digits: 4, of: (result) => perThousand(result.cpuSeconds + result.etcdCpuSeconds, result) },
  clientCpu: { title: "client s/1000", digits: 4, of: (result) => perThousand(result.clientCpuSeconds, result) },
  memory: { title: "RSS MB", digits: 0, of: (result) => result.residentMb },
} satisfies Record<string, Quantity>;

/** A bound on the ratio of our value to the second server's, or on our value alone. */
export interface Limit {
  readonly quantity: Quantity;
  readonly atMost?: number;
  readonly atLeast?: number;
  /** The bound applies to our value, in the quantity's unit. */
  readonly absolute?: boolean;
}

/** `CPU s/1000: ours 0.0467, theirs 0.2066, ratio 0.23, limit 0.30: ok` */
export function verdict(limit: Limit, ours: number, theirs: number): { text: string; ok: boolean } {
  const { quantity, atMost, atLeast, absolute = false } = limit;
  const measured = absolute ? ours : ours / theirs;
  const ok = (atMost === undefined || measured <= atMost) && (atLeast === undefined || measured >= atLeast);
  const bound = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
  const numbers = `ours ${ours.toFixed(quantity.digits)}, theirs ${theirs.toFixed(quantity.digits)}, ratio ${(ours / theirs).toFixed(2)}`;
  return { text: `${quantity.title}: ${numbers}, limit ${absolute ? "for ours " : ""}${bound}: ${ok ? "ok" : "NOT OK"}`, ok };
}

import { type CodecRow, codecRows } from "./codec-rows.ts";
import { percentile } from "./load.ts";

const rounds = 15;
/** CPU time per measurement, in µs. */
const roundUs = 15_000;
const warmUpUs = 300_000;

/**
 * `main.ts codec`: CPU time of the codecs relative to V8's JSON for the same value. Measurements alternate, so that other load
 * on the machine affects both alike; the result is the 25th percentile.
 * @returns whether all limits are met
 */
export function benchCodec(listed: number): boolean {
  console.log(["".padEnd(34), "µs".padStart(12), "bare µs".padStart(12), "ratio".padStart(8), "limit".padStart(8)].join(""));
  let holds = true;
  for (const row of codecRows(listed)) {
    const { own, bare } = measureRow(row);
    const ratio = own / bare;
    const verdict = row.limit === undefined ? "" : `${row.limit} ${ratio <= row.limit ? "ok" : "NOT OK"}`;
    if (row.limit !== undefined && ratio > row.limit) holds = false;
    const cells = [own.toFixed(1).padStart(12), bare.toFixed(1).padStart(12), `${ratio.toFixed(2)}x`.padStart(8)];
    console.log(`${row.name.padEnd(34)}${cells.join("")}  ${verdict}`);
  }
  return holds;
}

function measureRow(row: CodecRow): { own: number; bare: number } {
  const ownTimes = repeat(row.run, warmUpUs);
  const bareTimes = repeat(row.bare, warmUpUs);
  const own: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round++) {
    own.push(cpuUs(row.run, Math.max(1, Math.round(roundUs / ownTimes))));
    bare.push(cpuUs(row.bare, Math.max(1, Math.round(roundUs / bareTimes))));
  }
  return { own: percentile(own, 0.25), bare: percentile(bare, 0.25) };
}

/** Repeats `run` for `us` of CPU time. @returns µs of CPU per run in the last batch */
function repeat(run: () => unknown, us: number): number {
  for (let spent = 0, times = 1; ; times *= 2) {
    const each = cpuUs(run, times);
    spent += each * times;
    if (spent >= us) return each;
  }
}

function cpuUs(run: () => unknown, times: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) run();
  const { user, system } = process.cpuUsage(before);
  return Math.max(1, user + system) / times;
}

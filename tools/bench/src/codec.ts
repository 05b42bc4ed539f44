import { type CodecRow, codecRows } from "./codec-rows.ts";
import { percentile } from "./load.ts";

const rounds = 15;
/** CPU time of one measurement, in µs. */
const roundUs = 15_000;
const warmUpUs = 300_000;

/**
 * `main.ts codec`: what our codecs take of the CPU, as a multiple of what V8's JSON takes for the same value. Both are
 * measured in turn, so that whatever else the machine does meets them alike, and the smallest quarter counts.
 * @returns whether all limits hold
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

/** Until `us` have gone into it. @returns µs of CPU of the last run */
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

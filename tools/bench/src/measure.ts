import { noSamples, type Result } from "./load.ts";
import { cpuSeconds, residentMb } from "./process-usage.ts";
import type { Row } from "./row.ts";
import type { Stage } from "./stage.ts";

/**
 * Runs a row on all servers, alternating in rounds, so that other load on the machine affects all alike.
 * @returns per server, in the given order; undefined where the row does not apply
 */
export async function measure(
  row: Row,
  stages: readonly Stage[],
  options: { seconds: number; rounds: number; warmSeconds: number },
): Promise<(Result | undefined)[]> {
  const seconds = options.seconds / options.rounds;
  const results: (Result | undefined)[] = stages.map(() => ({
    ...noSamples(),
    cpuSeconds: 0,
    etcdCpuSeconds: 0,
    clientCpuSeconds: 0,
    residentMb: 0,
  }));
  for (const stage of stages) {
    // Warm-up: code not yet optimized by V8 is slower, which does not matter for long-running servers.
    await row.prepare?.(stage, options.warmSeconds);
    await row.run(stage, options.warmSeconds);
  }
  for (let round = 0; round < options.rounds; round++) {
    for (const [index, stage] of stages.entries()) {
      const { pid, etcdPid } = stage.target;
      await row.prepare?.(stage, seconds);
      const before = [cpuSeconds(pid), etcdPid === undefined ? 0 : cpuSeconds(etcdPid)] as const;
      const client = process.cpuUsage();
      const samples = await row.run(stage, seconds);
      const { user, system } = process.cpuUsage(client);
      const result = results[index];
      if (samples === undefined || result === undefined) {
        results[index] = undefined;
        continue;
      }
      result.cpuSeconds += cpuSeconds(pid) - before[0];
      if (etcdPid !== undefined) result.etcdCpuSeconds += cpuSeconds(etcdPid) - before[1];
      result.clientCpuSeconds += (user + system) / 1e6;
      result.operations += samples.operations;
      result.seconds += samples.seconds;
      for (const latency of samples.latencies) result.latencies.push(latency);
      for (const latency of samples.firstBytes) result.firstBytes.push(latency);
      result.residentMb = residentMb(pid);
    }
  }
  return results;
}

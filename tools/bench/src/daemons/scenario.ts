import type { DaemonCluster } from "./cluster.ts";

/** Limits for the ratio of our value to the second implementation's. */
export interface ScenarioLimits {
  readonly seconds?: number;
  readonly cpu?: number;
  readonly apiCalls?: number;
  readonly memory?: number;
}

/** One kind of work for a daemon; identical for all implementations. */
export interface Scenario<Cluster extends DaemonCluster = DaemonCluster> {
  readonly name: string;
  readonly limits: ScenarioLimits;
  /** Not measured. */
  prepare?(cluster: Cluster): Promise<void>;
  /** @returns the number of objects that were processed */
  run(cluster: Cluster): Promise<number>;
  /** Not measured. */
  clean?(cluster: Cluster): Promise<void>;
}

/** Measurements of one scenario, implementation and round. */
export interface RoundResult {
  readonly operations: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly serverCpuSeconds: number;
  readonly apiCalls: number;
  readonly residentMb: number;
  readonly proportionalMb: number;
}

/** Runs `prepare` unmeasured, then measures the CPU time, requests and memory of `run`. */
export async function runScenario<Cluster extends DaemonCluster>(
  scenario: Scenario<Cluster>,
  cluster: Cluster,
): Promise<RoundResult> {
  await scenario.prepare?.(cluster);
  const before = await cluster.usage();
  const operations = await scenario.run(cluster);
  const doneMs = performance.now();
  const after = await cluster.usage();
  await scenario.clean?.(cluster);
  return {
    operations,
    seconds: (doneMs - before.atMs) / 1000,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    serverCpuSeconds: after.serverCpuSeconds - before.serverCpuSeconds,
    apiCalls: after.apiCalls - before.apiCalls,
    residentMb: after.residentMb,
    proportionalMb: after.proportionalMb,
  };
}

/**
 * How long this thread computes at something, in ms. By the clock a test would also tell what else the machine has to do, and by
 * `process.cpuUsage()` what V8's other threads compile and collect.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

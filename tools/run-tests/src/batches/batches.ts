/**
 * Numbers of files that run in one process: the loading of common modules, and the start of etcd, are then a small part of their time.
 * A file with servers takes seconds, and when one fails all run again.
 */
const filesOfBatch = { small: 40, withServers: 10 };
const usesServers = /start-test-server|start-aggregation|refusing-webhook|testing\/(?:[a-z-]+-)?etcd/;

/**
 * What a file contains that needs a process of its own: measurements, which what ran before in the process would change, and the
 * state of the process, which files that follow would find changed.
 */
const needsProcess: readonly RegExp[] = [
  // CPU time, turns of the event loop, memory
  /cpu-time|cpuUsage|CpuUsage|turn-sizes|EventLoopDelay|eventLoopUtilization|performance\.|held-bytes|heapUsed|memoryUsage|\bgc\(|WeakRef|FinalizationRegistry/,
  // what is open
  /open-files|getActiveResourcesInfo|listenerCount/,
  /process\.(?:env(?!\["COX_TEST_)|chdir|on|once|off|emit|kill|exit|exitCode|argv|umask|stdin|stdout|stderr)\b/,
  /child_process|worker_threads|execPath|pause-process/,
  // mocks that end with the process, not with a test
  /import \{[^}]*\bmock\b[^}]*\} from "node:test"|globalThis/,
];

/** Files that need a process of their own for other reasons. */
export const alone: Readonly<Record<string, string>> = {
  "packages/apimachinery/src/serving/certificates-aside.test.ts": "tests that a library is not loaded",
  "packages/apiserver/src/server/memory-budget.test.ts": "counts what all caches of the process keep",
};

/**
 * Groups files into those that run in one process, in order, followed by groups of one with the files that need a process of their own.
 * @param textOf reads a file
 */
export function batchesOf(files: readonly string[], textOf: (file: string) => string): string[][] {
  const needsOwn = (file: string): boolean => file in alone || needsProcess.some((pattern) => pattern.test(textOf(file)));
  const {
    own = [],
    withServers = [],
    small = [],
  } = Object.groupBy(files, (file) => {
    if (needsOwn(file)) return "own";
    return usesServers.test(textOf(file)) ? "withServers" : "small";
  });
  return [...inParts(withServers, filesOfBatch.withServers), ...inParts(small, filesOfBatch.small), ...own.map((file) => [file])];
}

const inParts = (files: readonly string[], count: number): string[][] =>
  Array.from({ length: Math.ceil(files.length / count) }, (_, at) => files.slice(at * count, (at + 1) * count));

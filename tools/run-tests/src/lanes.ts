/**
 * End-to-end test files and folders that do not use the shared cluster and run in parallel with those that do. All others are
 * assumed to use it.
 */
export const withoutSharedCluster: readonly string[] = [
  "e2e/cluster-services/faults.test.ts",
  "e2e/cluster-services/first-week.test.ts",
  "e2e/cluster-services/ingress.test.ts",
  "e2e/cluster-services/killed.test.ts",
  "e2e/cluster-services/leak.test.ts",
  "e2e/cluster-services/machines.test.ts",
  "e2e/cluster-services/local-volumes.test.ts",
  "e2e/cluster-services/metrics-api.test.ts",
  "e2e/cluster-services/replaced.test.ts",
  "e2e/cluster-services/restored.test.ts",
  "e2e/controllers/leaders.test.ts",
  "e2e/controllers/many-definitions.test.ts",
  "e2e/controllers/sets.test.ts",
  "e2e/controllers/storage-versions.test.ts",
  "e2e/cox/fresh-clone.test.ts",
  "e2e/deploy",
  "e2e/framework",
  "e2e/hostile",
  "e2e/in-process",
  "e2e/node/dynamic-config.test.ts",
  "e2e/robustness/recovery",
  "e2e/robustness/restore.test.ts",
  "e2e/robustness/store",
  "e2e/scheduling",
  "e2e/start",
  "e2e/ui/large.test.ts",
  "e2e/ui/page.test.ts",
];

/** Run in a separate network namespace: Chromium closes all connections when an interface is added or removed, which Pods of other tests do. */
export const inNetworkOfItsOwn: readonly string[] = ["e2e/ui/large.test.ts", "e2e/ui/page.test.ts"];

/** These kill or restart processes of the shared cluster, hence run last. */
export const lastInSharedCluster: readonly string[] = ["e2e/cluster-services/process.test.ts", "e2e/robustness/kill.test.ts"];

/**
 * A simulated cluster lives for 100 ms and leaves 10 to 20 MB. With a young generation that holds several of them, most are gone when it is
 * collected, in place of being copied twice; and threads that collect in parallel take more CPU time than one, most of all on a busy machine.
 */
const manyShortLives = ["--min-semi-space-size=64", "--max-semi-space-size=64", "--no-parallel-scavenge"] as const;

/** Additional flags of Node for the process of a test file. */
export const nodeFlags: Readonly<Record<string, readonly string[]>> = {
  "tools/simulate/src/seeds/first-half.test.ts": manyShortLives,
  "tools/simulate/src/seeds/second-half.test.ts": manyShortLives,
};

/** Files that take longer than 15 s, with measured seconds; they start first, to shorten the total time. */
export const slow: Readonly<Record<string, number>> = {
  "tools/simulate/src/seeds/first-half.test.ts": 80,
  "tools/simulate/src/seeds/second-half.test.ts": 80,
  "e2e/robustness/recovery/recovery.test.ts": 158,
  "e2e/deploy/machines.test.ts": 107,
  "e2e/robustness/store/faults.test.ts": 84,
  "e2e/start/cold-starts.test.ts": 82,
  "e2e/ui/page.test.ts": 80,
  "e2e/hostile/hostile.test.ts": 76,
  "e2e/deploy/systemd.test.ts": 63,
  "e2e/robustness/recovery/down.test.ts": 58,
  "e2e/controllers/leaders.test.ts": 57,
  "e2e/start/any-order.test.ts": 46,
  "e2e/start/interrupted-up.test.ts": 45,
  "e2e/controllers/many-definitions.test.ts": 39,
  "e2e/start/rolling-restart.test.ts": 37,
  "e2e/deploy/cgroup-driver.test.ts": 34,
  "packages/cluster-services/src/ingress/limits.test.ts": 62,
  "tools/publish/src/examples.test.ts": 60,
  "tools/publish/src/testing-package.test.ts": 37,
  "tools/request-path/src/request-path.test.ts": 30,
  "tools/dev-cluster/src/program.test.ts": 29,
  "tools/deploy/src/release.test.ts": 29,
  "packages/apiserver/src/registry/every-rule.test.ts": 16,
  "packages/testing/src/store/server/etcd-server.test.ts": 25,
  "packages/apiserver/src/server/turns-largest.test.ts": 24,
  "tools/publish/src/packages.test.ts": 23,
  "packages/apiserver/src/handlers/resource-version.test.ts": 22,
  "packages/apiserver/src/server/turns-answers.test.ts": 20,
  "packages/apiserver/src/server/authorization.test.ts": 19,
  "packages/node-agent/src/node/node.test.ts": 17,
  "packages/node-agent/src/agent.test.ts": 17,
  "packages/apiserver/src/server/turns-many.test.ts": 16,
  "packages/apiserver/src/authentication/token-timing.test.ts": 16,
  "packages/apiserver/src/server/remote-auth.test.ts": 16,
  "packages/testing/src/assertions.test.ts": 15,
};

const isBelow = (file: string, path: string): boolean => file === path || file.startsWith(`${path}/`);

/** Splits end-to-end files into those that need the shared cluster, in order, and the others. */
export function lanesOf(files: readonly string[]): { shared: string[]; own: string[] } {
  const {
    shared = [],
    own = [],
    last = [],
  } = Object.groupBy(files, (file) => {
    if (withoutSharedCluster.some((path) => isBelow(file, path))) return "own";
    return lastInSharedCluster.includes(file) ? "last" : "shared";
  });
  return { shared: [...shared, ...last], own: longestFirst(own) };
}

/** Known slow files first, then the others in their order. */
export const longestFirst = (files: readonly string[]): string[] => files.toSorted((a, b) => (slow[b] ?? 0) - (slow[a] ?? 0));

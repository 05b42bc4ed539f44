import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import type { ReasonsOptions } from "../options.ts";
import { cpuSeconds } from "../process-usage.ts";
import { differencesOf, type Round, replicasRound, schedulingRound } from "./rounds.ts";
import { profileOf, samplesWithin } from "./sampler.ts";
import { estimateOf, mostShare, sampledShare, verdictOf } from "./share.ts";
import { containers, refusals, replicas, scheduling, type Work } from "./works.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..");
const name = "reasons";
/** Files that record reasons. Functions called from them count too; computing the outcome that is recorded does not. */
const files = /\/decisions\/|\/(?:scheduling|pod)-decisions\.|\/admission\/decisions\./;

/**
 * `main.ts reasons`: the CPU cost of recording the reasons of decisions, measured in two ways. The daemons of a real cluster are
 * profiled under load; and the scheduler and a controller run in this thread with and without reasons, alternately. The difference
 * includes the garbage collection of the recorded reasons.
 * @returns true when every daemon was shown to be within the limit
 */
export async function benchReasons({ rounds, pods, only }: ReasonsOptions): Promise<boolean> {
  const state = mkdtempSync(join(tmpdir(), "cox-bench-reasons-"));
  try {
    const cluster = await startCluster(state);
    const results: boolean[] = [];
    const works: [Work, Round?][] = [
      [scheduling(pods), schedulingRound(200)],
      [replicas(pods), replicasRound(50)],
      [refusals(pods)],
      [containers()],
    ];
    for (const [work, round] of works) if (work.daemon.includes(only)) results.push(await measure(cluster, work, round, rounds));
    return results.every(Boolean);
  } finally {
    cox(state, "down", "--purge", "--name", name);
    rmSync(state, { recursive: true, force: true });
  }
}

type Cluster = Awaited<ReturnType<typeof startCluster>>;

function cox(state: string, ...args: string[]): string {
  const env = { ...process.env, COX_STATE: state };
  return execFileSync(join(root, "cox"), args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

async function startCluster(state: string) {
  cox(
    ...([state, "up", "--name", name, "--node-name", name, "--etcd-unsafe-no-fsync"] as const),
    // Without the client's rate limit, with which the daemon would be idle for most of a round.
    ...["--kube-controller-manager-arg", "kube-api-qps=1000", "--kube-controller-manager-arg", "kube-api-burst=2000"],
    ...["--kube-scheduler-arg", "kube-api-qps=1000", "--kube-scheduler-arg", "kube-api-burst=2000"],
    ...["--kubelet-arg", "max-pods=200"],
  );
  const client = newClient({ ...(await loadKubeconfig(join(state, "clusters", name, "admin.conf"))), qps: -1 });
  const lines = cox(state, "status", "--name", name).split("\n");
  return {
    client,
    pidOf(daemon: string): number {
      const pid = lines.flatMap((line) => /^(\S+) +running, pid (\d+)/.exec(line) ?? []);
      const at = pid.indexOf(daemon);
      if (at < 0) throw new Error(`${daemon} does not run`);
      return Number(pid[at + 1]);
    },
  };
}

async function measure({ client, pidOf }: Cluster, work: Work, round: Round | undefined, rounds: number): Promise<boolean> {
  const pid = pidOf(work.daemon);
  const run = async (): Promise<number> => {
    const before = cpuSeconds(pid);
    await work.run(client);
    const seconds = cpuSeconds(pid) - before;
    await work.clean(client);
    return seconds;
  };
  await run(); // warm-up
  const seconds = await run();
  const sampled = samplesWithin(await profileOf(pid, async () => void (await run())), files);
  const inProfile = sampledShare(sampled);
  const verdicts = [verdictOf(inProfile)];
  const parts = [
    `${work.daemon}, ${work.what}: ${seconds.toFixed(2)} s of CPU`,
    `${inWords(inProfile)} of ${sampled.busy} samples are in code that keeps reasons: ${verdicts[0]}`,
  ];
  if (round !== undefined) {
    const { share: ms, error } = estimateOf(await differencesOf(round, rounds));
    const perPodMs = (seconds * 1000) / work.pods;
    const added = { share: ms / round.pods / perPodMs, error: error / round.pods / perPodMs };
    verdicts.push(verdictOf(added));
    const micro = (value: number): string => `${((value / round.pods) * 1000).toFixed(1)} µs`;
    parts.push(
      `${rounds} pairs of rounds (${round.what}): ${micro(ms)} ± ${micro(error)} more CPU for a pod, ` +
        `${inWords(added)} of the daemon's: ${verdicts[1]}`,
    );
  }
  console.log(`${parts.join("\n  ")}\n  limit: at most ${percent(mostShare)}`);
  return verdicts.every((verdict) => verdict === "ok");
}

const percent = (value: number): string => `${(value * 100).toFixed(2)} %`;
const inWords = ({ share, error }: { share: number; error: number }): string => `${percent(share)} ± ${percent(error)}`;

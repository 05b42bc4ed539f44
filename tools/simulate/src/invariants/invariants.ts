import type { Cluster } from "../cluster/cluster.ts";
import type { Faults } from "../faults/faults.ts";
import type { Plan } from "../plans/plan.ts";
import type { World } from "../world/world.ts";
import { controllerOf, isActive, objectOf, type View, viewOf } from "./view.ts";

export class Violation extends Error {}

/** The first thing that must never be. */
export interface Problems {
  first: string | undefined;
  readonly fail: (message: string) => void;
}

export function newProblems(): Problems {
  const problems: Problems = {
    first: undefined,
    fail(message) {
      problems.first ??= message;
    },
  };
  return problems;
}

/** What must never be, looked for after each write and each step. */
export function watchInvariants(
  world: World,
  cluster: Cluster,
  faults: Faults,
  plan: Pick<Plan, "always">,
  found: Problems,
): void {
  const view = viewOf(cluster.etcd);
  const memory = new Map<string, unknown>();
  const { fail } = found;
  cluster.etcd.onWrite(({ events }) => {
    for (const { type, kv } of events) {
      if (!kv.key.startsWith("/registry/pods/")) continue;
      if (type === "put" && kv.version === 1) checkReplicas(view, controllerOf(objectOf(kv)), faults, fail);
      const problem = plan.always?.(view, memory);
      if (problem !== undefined) fail(problem);
    }
  });
  world.onStep(() => {
    checkRunsOnce(cluster, fail);
    if (found.first !== undefined) throw new Violation(found.first);
  });
}

/** A name runs once in the cluster, and so does a uid. */
function checkRunsOnce({ machines }: Cluster, fail: (message: string) => void): void {
  const keys = new Map<string, string>();
  for (const { name, running } of machines) {
    for (const { key, uid } of running.values()) {
      const other = keys.get(key);
      if (other !== undefined) fail(`pod ${key} (${uid}) runs on ${name} while it runs on ${other}`);
      keys.set(key, `${name} (${uid})`);
    }
  }
}

const most = new WeakMap<Faults, Map<string, number>>();

/**
 * No more pods than replicas, but for those that a controller cannot know of: an answer that was lost, and all that a process made shortly
 * before it crashed or while it saw an old state.
 */
function checkReplicas(view: View, uid: string | undefined, faults: Faults, fail: (message: string) => void): void {
  const owner = view.all("replicasets").find(({ metadata }) => metadata.uid === uid);
  if (owner === undefined || uid === undefined) return;
  const wanted = most.getOrInsertComputed(faults, () => new Map());
  const replicas = Math.max(wanted.get(uid) ?? 0, owner.spec.replicas);
  wanted.set(uid, replicas);
  const active = view.all("pods").filter((pod) => controllerOf(pod) === uid && isActive(pod)).length;
  const { lostAnswers, crashes, staleReads } = faults.counts;
  const allowed = replicas * (1 + crashes + staleReads) + lostAnswers;
  if (active > allowed) fail(`ReplicaSet ${owner.metadata.name} has ${active} active pods, at most ${allowed} can be explained`);
}

/** Of the end, when nothing goes wrong any more. @returns what is not as it must be */
export function atRest(cluster: Cluster): string | undefined {
  const view = viewOf(cluster.etcd);
  const folders = [
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "pods",
    "minions",
    "services/specs",
  ];
  const uids = new Set(folders.flatMap((folder) => view.all(folder)).map(({ metadata }) => metadata.uid));
  for (const folder of ["replicasets", "pods", "jobs"]) {
    for (const { metadata } of view.all(folder)) {
      const owners = metadata.ownerReferences ?? [];
      if (owners.length > 0 && !owners.some(({ uid }) => uids.has(uid)))
        return `${folder} ${metadata.name} is left without its owner`;
      if (metadata.deletionTimestamp) return `${folder} ${metadata.name} is not deleted to the end`;
    }
  }
  const pods = new Map(view.all("pods").map((pod) => [pod.metadata.uid as string, pod]));
  for (const { name, running } of cluster.machines) {
    for (const { key, uid } of running.values()) {
      if (pods.get(uid)?.spec?.nodeName !== name) return `${key} runs on ${name} though the API does not say so`;
    }
  }
  return undefined;
}

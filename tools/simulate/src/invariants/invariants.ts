import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import type { Cluster } from "../cluster/cluster.ts";
import type { Faults } from "../faults/faults.ts";
import type { Plan } from "../plans/plan.ts";
import type { World } from "../world/world.ts";
import { controllerOf, isActive, isEnding, objectOf, type Stored, type View, viewOf } from "./view.ts";

/** A safety invariant does not hold. */
export class Violation extends Error {}

/** The first violation. */
interface Problems {
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

/** Key prefixes whose changes trigger a plan's own invariant, besides those of Pods. */
const alsoWatched = ["/registry/resourcequotas/", "/registry/volumeattachments/", "/registry/endpointslices/"];

/** Checks the safety invariants after each write and each step. */
export function watchInvariants(
  world: World,
  cluster: Cluster,
  faults: Faults,
  plan: Pick<Plan, "always" | "deleted">,
  found: Problems,
): void {
  const view = viewOf(cluster.etcd);
  const memory = new Map<string, unknown>();
  const { fail } = found;
  /** Maximum of `spec.replicas` that each ReplicaSet ever had, by UID. */
  const replicas = new Map<string, number>();
  /** Time of each lease's last renewal. */
  const renewed = new Map<string, number>();
  /** A lease may change its holder only when it was released, or not renewed for its duration. */
  const checkLease = (lease: Stored | undefined, previous: KeyValue | undefined): void => {
    if (lease === undefined) return;
    const { name = "" } = lease.metadata;
    const before = previous === undefined ? undefined : (JSON.parse(previous.value.toString()) as Stored); // cast: stored by the API server as JSON
    const holder = before?.spec.holderIdentity;
    const idleMs = world.now() - (renewed.get(name) ?? 0);
    if (
      holder &&
      holder !== lease.spec.holderIdentity &&
      idleMs < before.spec.leaseDurationSeconds * 1000 &&
      lease.spec.holderIdentity
    )
      fail(`the lease ${name} passes from ${holder} to ${lease.spec.holderIdentity} ${idleMs / 1000} s after it was renewed`);
    renewed.set(name, world.now());
  };
  cluster.etcd.onWrite(({ events }) => {
    for (const { type, kv, prevKv } of events) {
      if (kv.key.startsWith("/registry/leases/kube-system/kube-")) checkLease(type === "put" ? objectOf(kv) : undefined, prevKv);
      if (type === "put" && kv.key.startsWith("/registry/replicasets/")) {
        const { metadata, spec } = objectOf(kv);
        replicas.set(metadata.uid ?? "", Math.max(replicas.get(metadata.uid ?? "") ?? 0, spec.replicas));
      }
      if (type === "delete" && prevKv !== undefined && plan.deleted !== undefined) {
        const problem = plan.deleted(objectOf(prevKv), view);
        if (problem !== undefined) fail(problem);
      }
      const isPod = kv.key.startsWith("/registry/pods/");
      if (!isPod && !alsoWatched.some((folder) => kv.key.startsWith(folder))) continue;
      if (isPod && type === "put" && kv.version === 1) {
        checkReplicas(view, controllerOf(objectOf(kv)), replicas, faults, fail);
        checkDaemons(view, objectOf(kv), faults, fail);
      }
      const problem = plan.always?.(view, memory);
      if (problem !== undefined) fail(problem);
    }
  });
  world.onStep(() => checkRunsOnce(cluster, fail));
}

/** At most one Pod with a given name, and with a given UID, runs in the cluster. */
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

/** The number of Pods that can be explained where `wanted` are. */
function explained(wanted: number, { counts: { lostAnswers, crashes, staleReads } }: Faults): number {
  return wanted * (1 + crashes + staleReads) + lostAnswers;
}

/**
 * One Pod of a DaemonSet for each node, those that end included; while it surges two, besides those that end. Pods that a controller
 * cannot know of are excepted, as in `checkReplicas`.
 */
function checkDaemons(view: View, created: Stored, faults: Faults, fail: (message: string) => void): void {
  const uid = controllerOf(created);
  const set = view.all("daemonsets").find(({ metadata }) => metadata.uid === uid);
  if (set === undefined) return;
  const node = targetOf(created);
  const surges = (set.spec.updateStrategy?.rollingUpdate?.maxSurge ?? 0) !== 0;
  const counted = view
    .all("pods")
    .filter((pod) => controllerOf(pod) === uid && targetOf(pod) === node && (isActive(pod) || (isEnding(pod) && !surges)));
  const allowed = explained(surges ? 2 : 1, faults);
  if (counted.length > allowed)
    fail(`the DaemonSet ${set.metadata.name} has ${counted.length} pods for ${node}, at most ${allowed} can be explained`);
}

/** The node that a DaemonSet's Pod is for. */
const targetOf = ({ spec }: Stored): string | undefined =>
  spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms[0]?.matchFields?.[0]?.values[0];

/**
 * No more Pods than replicas, except Pods that a controller cannot know of: when a response was lost, and all that a process created shortly
 * before it crashed or while it read stale state.
 */
function checkReplicas(
  view: View,
  uid: string | undefined,
  most: ReadonlyMap<string, number>,
  faults: Faults,
  fail: (message: string) => void,
): void {
  const replicas = most.get(uid ?? "");
  if (replicas === undefined) return;
  const active = view.all("pods").filter((pod) => controllerOf(pod) === uid && isActive(pod)).length;
  const allowed = explained(replicas, faults);
  if (active > allowed) fail(`ReplicaSet ${uid} has ${active} active pods, at most ${allowed} can be explained`);
}

/** Checks the final state, after all faults have ended. @returns the first discrepancy */
export function atRest(cluster: Cluster): string | undefined {
  const view = viewOf(cluster.etcd);
  const folders = [
    "controllers",
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
  const pods = new Map(view.all("pods").map((pod) => [pod.metadata.uid!, pod]));
  for (const { name, running } of cluster.machines) {
    for (const { key, uid } of running.values()) {
      if (pods.get(uid)?.spec?.nodeName !== name) return `${key} runs on ${name} though the API does not say so`;
    }
  }
  return undefined;
}

/** @param requested specs as acknowledged to the user, by resource, namespace and name. @returns the one that is not stored as requested */
export function changedByOthers(view: View, requested: ReadonlyMap<string, unknown>): string | undefined {
  for (const [key, spec] of requested) {
    const [folder = "", ...rest] = key.split("/");
    const stored = view.get(folder, rest.join("/"));
    if (stored !== undefined && !deepEqual(stored.spec, spec)) return `${key} is not as its user requested`;
  }
  return undefined;
}

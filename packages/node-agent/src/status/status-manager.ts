import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isConflict, isForbidden, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Pod, PodCondition, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { describePod, type NodePod } from "../pod/pod.ts";
import { ownConditions } from "./pod-status.ts";

interface StatusManagerOptions {
  /** Undefined in standalone mode: statuses are only kept in memory. */
  client: Client | undefined;
  clock: Clock;
  log: Logger;
  /**
   * The Pod object whose status is written: the Pod itself, or the mirror Pod of a static Pod; undefined when it does not exist.
   */
  apiPodOf: (pod: NodePod) => Pod | undefined;
}

/** Current statuses of Pods, and their synchronization with the API server. */
export interface StatusManager {
  get(uid: string): PodStatus | undefined;
  /** Stores the status; writes it asynchronously when it has changed. */
  set(pod: NodePod, status: PodStatus): void;
  /** Writes the last status of a Pod of which nothing is left, then deletes the object. Retries until that succeeds. */
  finish(pod: NodePod): Promise<void>;
  forget(uid: string): void;
  /** Writes the status of one Pod or of all Pods again where the API server's copy differs. */
  resync(uid?: string): void;
  stop(): void;
}

interface Entry {
  pod: NodePod;
  status: PodStatus;
  version: number;
  written: number;
  finishing: boolean;
  done: (() => void)[];
  working: boolean;
}

const retryMs = 1_000;

/**
 * Failed writes are retried every second until they succeed or `stop` is called.
 * Source: pkg/kubelet/status/status_manager.go
 */
export function newStatusManager(options: StatusManagerOptions): StatusManager {
  return new ApiStatusManager(options);
}

class ApiStatusManager implements StatusManager {
  readonly #options: StatusManagerOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #controller = new AbortController();

  constructor(options: StatusManagerOptions) {
    this.#options = options;
  }

  get(uid: string): PodStatus | undefined {
    return this.#entries.get(uid)?.status;
  }

  set(pod: NodePod, status: PodStatus): void {
    const { uid } = pod.metadata;
    const entry = this.#entries.get(uid);
    // A finishing entry is replaced: a new Pod has the same UID, e.g. from a static Pod's file that was restored.
    if (entry === undefined || entry.finishing) {
      const made = { pod, status, version: 1, written: 0, finishing: false, done: [], working: false };
      this.#entries.set(uid, made);
      void this.#work(uid, made);
      return;
    }
    entry.pod = pod;
    if (semanticEqual(entry.status, status)) return;
    entry.status = status;
    entry.version++;
    void this.#work(uid, entry);
  }

  async finish(pod: NodePod): Promise<void> {
    const { client } = this.#options;
    const { uid } = pod.metadata;
    if (client === undefined) {
      this.#entries.delete(uid);
      return;
    }
    const entry = this.#entries.get(uid) ?? {
      pod,
      status: pod.status ?? {},
      version: 0,
      written: 0,
      finishing: true,
      done: [],
      working: false,
    };
    this.#entries.set(uid, entry);
    entry.pod = pod;
    entry.finishing = true;
    const done = new Promise<void>((resolve) => entry.done.push(resolve));
    void this.#work(uid, entry);
    await done;
  }

  forget(uid: string): void {
    void this.#entries.delete(uid);
  }

  resync(only: string): void {
    for (const [uid, entry] of this.#entries) {
      if (only !== undefined && uid !== only) continue;
      const target = this.#options.apiPodOf(entry.pod);
      if (target === undefined || isUpToDate(target, entry.status)) continue;
      if (entry.version === entry.written) entry.version++;
      void this.#work(uid, entry);
    }
  }

  stop(): void {
    this.#controller.abort();
  }

  async #work(uid: string, entry: Entry): Promise<void> {
    const { client, log, clock } = this.#options;
    if (entry.working || client === undefined) return;
    entry.working = true;
    try {
      while (
        !this.#controller.signal.aborted &&
        this.#entries.get(uid) === entry &&
        (entry.version !== entry.written || entry.finishing)
      ) {
        try {
          const { version, finishing } = entry;
          const gone = await this.#write(client, entry);
          entry.written = version;
          if (finishing && (gone || (await this.#remove(client, entry)))) {
            entry.finishing = false;
            if (this.#entries.get(uid) === entry) this.#entries.delete(uid);
            for (const resolve of entry.done.splice(0)) resolve();
            return;
          }
        } catch (err) {
          log.v(2)?.info("cannot write the status of a pod", { pod: describePod(entry.pod), reason: messageOf(err) });
          await clock.sleep(retryMs, this.#controller.signal).catch(() => undefined);
        }
      }
    } finally {
      entry.working = false;
      // Replaced or forgotten: it will never be written, so its waiters are released.
      if (this.#entries.get(uid) !== entry) for (const resolve of entry.done.splice(0)) resolve();
    }
  }

  /** @returns true when the Pod no longer exists */
  async #write(api: Client, entry: Entry): Promise<boolean> {
    const { log } = this.#options;
    const target = this.#options.apiPodOf(entry.pod);
    if (target === undefined) return true;
    if (isUpToDate(target, entry.status)) return false;
    const { namespace = "", name = "", uid } = target.metadata;
    try {
      const body = { metadata: { uid }, status: statusPatch(target.status, entry.status) };
      await api.patch(
        pods,
        { namespace, name, subresource: "status" },
        { type: "strategic", body },
        { signal: this.#controller.signal },
      );
      return false;
    } catch (err) {
      // The Pod was deleted or replaced by another one with the same name.
      if (isNotFound(err) || isConflict(err)) return true;
      if (isForbidden(err)) {
        log.warn("the status of a pod may not be written", { pod: describePod(entry.pod), reason: messageOf(err) });
        return false;
      }
      throw err;
    }
  }

  async #remove(api: Client, entry: Entry): Promise<boolean> {
    const target = this.#options.apiPodOf(entry.pod);
    if (target === undefined || target.metadata.uid !== entry.pod.metadata.uid || target.metadata.deletionTimestamp == null)
      return true;
    const { namespace = "", name = "", uid = "" } = target.metadata;
    try {
      await api.delete(
        pods,
        { namespace, name },
        { gracePeriodSeconds: 0, preconditions: { uid }, signal: this.#controller.signal },
      );
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err;
    }
    return true;
  }
}

/** Compares the fields owned by the kubelet; readiness gates and the nominated node are written by others. */
function isUpToDate(target: Pod, status: PodStatus): boolean {
  const present = target.status ?? {};
  const types = new Set((status.conditions ?? []).map((condition) => condition.type));
  const conditions = (present.conditions ?? []).filter((condition) => types.has(condition.type));
  const { conditions: wanted = [], nominatedNodeName: _, ...fields } = status;
  const { conditions: __, nominatedNodeName: ___, qosClass, ...rest } = present;
  // The status of a rejected Pod has no QoS class, but the API server may keep the one set on creation.
  const presentFields = fields.qosClass === undefined ? rest : { ...rest, qosClass };
  const byType = (a: { type: string }, b: { type: string }): number => (a.type < b.type ? -1 : 1);
  return semanticEqual(fields, presentFields) && semanticEqual(wanted.toSorted(byType), conditions.toSorted(byType));
}

const removable = [
  "reason",
  "message",
  "podIP",
  "hostIP",
  "qosClass",
  "containerStatuses",
  "initContainerStatuses",
  "ephemeralContainerStatuses",
] as const;

/** Conditions are merged by type: a field that a condition no longer has is set to null, a removed condition of the kubelet is deleted. */
function conditionPatches(present: readonly PodCondition[], next: readonly PodCondition[]): Record<string, unknown>[] {
  const byType = new Map(present.map((condition) => [condition.type, condition])); // others than the kubelet may set thousands
  const patches = next.map((condition) => {
    const old = byType.get(condition.type);
    const gone = Object.keys(old ?? {}).filter((field) => !(field in condition));
    return { ...condition, ...Object.fromEntries(gone.map((field) => [field, null])) };
  });
  const left = present.filter(({ type }) => ownConditions.includes(type) && !next.some((condition) => condition.type === type));
  return [...patches, ...left.map(({ type }) => ({ $patch: "delete", type }))];
}

/**
 * A strategic merge patch: conditions are merged by type, pod IPs replaced, removed fields set to null. Without pod IPs to
 * replace, the directive itself would be stored as a pod IP.
 */
export function statusPatch(present: PodStatus | undefined, status: PodStatus): Record<string, unknown> {
  const { nominatedNodeName: _, podIPs, ...fields } = status;
  const patch: Record<string, unknown> = { ...fields };
  for (const field of removable) if (patch[field] === undefined && present?.[field] !== undefined) patch[field] = null;
  const conditions = conditionPatches(present?.conditions ?? [], status.conditions ?? []);
  if (conditions.length > 0) patch.conditions = conditions;
  if (!semanticEqual(podIPs ?? [], present?.podIPs ?? [])) {
    patch.podIPs = [...(podIPs ?? []), ...(present?.podIPs?.length ? [{ $patch: "replace" }] : [])];
  }
  return patch;
}

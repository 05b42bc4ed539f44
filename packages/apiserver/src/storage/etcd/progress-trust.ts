import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { EtcdClient } from "./client.ts";
import type { Member } from "./wire-cluster.ts";

/**
 * Whether etcd's replies to progress requests are reliable. Older members reply with a revision whose events are still to
 * come (etcd #15220, #17507), so the versions of all members are queried: when a watch stream is established, possibly to
 * another member, and every few minutes, for members that joined. Untrusted until all versions are known.
 */
export interface ProgressTrust {
  readonly trusted: boolean;
  /** Withdraws the trust and discards a version query in progress. */
  doubt(): void;
  /** As `doubt`, then queries the versions of all members. */
  check(): void;
  /** A reply was wrong regardless of the reported versions: never trust again. */
  refute(): void;
  stop(): void;
}

/** The first patch release with reliable replies of each minor version of etcd 3; later minor versions are reliable. */
const firstReliablePatch: Readonly<Record<number, number>> = { 4: 31, 5: 13 };
const newestUnreliableMinor = 5;

/** @param version as reported by the member; undefined when it is unreachable */
function isReliable(version: string | undefined): boolean {
  const [, major, minor, patch] = (/^(\d{1,6})\.(\d{1,6})\.(\d{1,6})$/.exec(version ?? "") ?? []).map(Number);
  if (major !== 3 || minor === undefined || patch === undefined) return false;
  return minor > newestUnreliableMinor || patch >= (firstReliablePatch[minor] ?? Number.POSITIVE_INFINITY);
}

/** @param versions of all members */
export const areAllReliable = (versions: readonly (string | undefined)[]): boolean =>
  versions.length > 0 && versions.every(isReliable);

const checkEveryMs = 5 * 60_000;
/** Interval of version queries while a member is unreachable. */
const recheckUnreachableMs = 30_000;

type Cluster = Pick<EtcdClient, "members" | "statusAt">;

/** Not trusted until `check`, which queries the members' versions: then every five minutes, or 30 s while one is unreachable. */
export function newProgressTrust(options: { client: Cluster; clock: Clock; log: Logger }): ProgressTrust {
  const { client, clock, log } = options;
  let trusted = false;
  let stopped = false;
  let refuted = false;
  /** Incremented by `doubt`; versions queried before the last increment are discarded. */
  let doubts = 0;
  let checking = false;
  let next: Timer | undefined;

  async function check(): Promise<void> {
    if (checking || stopped || refuted) return;
    checking = true;
    next?.cancel();
    let versions: (string | undefined)[];
    let before: number;
    do {
      before = doubts;
      versions = await versionsOf(client);
    } while (before !== doubts && !stopped && !refuted);
    checking = false;
    if (stopped || refuted) return;
    if (trusted !== areAllReliable(versions)) {
      trusted = !trusted;
      log.v(2)?.info(trusted ? "progress replies of etcd are trusted" : "progress replies of etcd are not trusted", { versions });
    }
    const allKnown = versions.length > 0 && versions.every((version) => version !== undefined);
    next = clock.after(allKnown ? checkEveryMs : recheckUnreachableMs, () => void check());
  }

  function doubt(): void {
    doubts++;
    trusted = false;
  }

  return {
    get trusted() {
      return trusted;
    },
    doubt,
    check() {
      doubt();
      void check();
    },
    refute() {
      refuted = true;
      trusted = false;
      next?.cancel();
    },
    stop() {
      stopped = true;
      trusted = false;
      next?.cancel();
    },
  };
}

/** @returns one version per member; empty when the member list is not available */
async function versionsOf(client: Cluster): Promise<(string | undefined)[]> {
  const members = await client.members().catch(() => []);
  return Promise.all(members.map((member) => versionOf(client, member)));
}

/**
 * Queries a member at its client URLs and verifies the member id: seen from here the URL may lead to another member or nowhere.
 */
async function versionOf(client: Cluster, { id, clientUrls }: Member): Promise<string | undefined> {
  for (const url of clientUrls) {
    const status = await client.statusAt(url).catch(() => undefined);
    if (status?.memberId === id) return status.version;
  }
  return undefined;
}

import type { Clock, Timer } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { EtcdClient } from "./client.ts";
import type { Member } from "./wire-cluster.ts";

/**
 * Whether etcd's answers to requests for progress may be believed. Older members answer with a revision whose events are
 * still to come (etcd #15220, #17507), so all of them are asked for their versions: when a watch stream has begun, which may
 * lead to another member than the last one, and every few minutes, for one that has joined. As long as anything is not
 * known the answer is no.
 */
export interface ProgressTrust {
  readonly trusted: boolean;
  /** Ends the trust. What members have said before is forgotten. */
  doubt(): void;
  /** The same, and asks all members. */
  ask(): void;
  /** A reply was untrue, whatever the members say they are: none is trusted any more. */
  refute(): void;
  stop(): void;
}

/** The first version of each minor line of etcd 3 whose progress replies are true; of later lines all are. */
const firstTruePatch: Readonly<Record<number, number>> = { 4: 31, 5: 13 };
const newestWithUntrue = 5;

/** @param version as the member says it; undefined when it could not be asked */
export function repliesTruly(version: string | undefined): boolean {
  const [, major, minor, patch] = (/^(\d{1,6})\.(\d{1,6})\.(\d{1,6})$/.exec(version ?? "") ?? []).map(Number);
  if (major !== 3 || minor === undefined || patch === undefined) return false;
  return minor > newestWithUntrue || patch >= (firstTruePatch[minor] ?? Number.POSITIVE_INFINITY);
}

/** @param versions of all members */
export const allReplyTruly = (versions: readonly (string | undefined)[]): boolean =>
  versions.length > 0 && versions.every(repliesTruly);

const askEveryMs = 5 * 60_000;
/** After a time when a member could not be asked. */
const askAgainMs = 30_000;

type Cluster = Pick<EtcdClient, "members" | "statusAt">;

export function newProgressTrust(options: { client: Cluster; clock: Clock; log: Logger }): ProgressTrust {
  const { client, clock, log } = options;
  let trusted = false;
  let stopped = false;
  let refuted = false;
  /** Versions that were asked for before the last one say nothing. */
  let doubts = 0;
  let asking = false;
  let next: Timer | undefined;

  async function ask(): Promise<void> {
    if (asking || stopped || refuted) return;
    asking = true;
    next?.cancel();
    let versions: (string | undefined)[];
    let before: number;
    do {
      before = doubts;
      versions = await versionsOf(client);
    } while (before !== doubts && !stopped && !refuted);
    asking = false;
    if (stopped || refuted) return;
    if (trusted !== allReplyTruly(versions)) {
      trusted = !trusted;
      log.v(2)?.info(trusted ? "progress replies of etcd are trusted" : "progress replies of etcd are not trusted", { versions });
    }
    const allKnown = versions.length > 0 && versions.every((version) => version !== undefined);
    next = clock.after(allKnown ? askEveryMs : askAgainMs, () => void ask());
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
    ask() {
      doubt();
      void ask();
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

/** @returns one for each member; none when nobody tells who they are */
async function versionsOf(client: Cluster): Promise<(string | undefined)[]> {
  const members = await client.members().catch(() => []);
  return Promise.all(members.map((member) => versionOf(client, member)));
}

/** A member may say that it is at an address where, seen from here, another one is, or nobody. */
async function versionOf(client: Cluster, { id, clientUrls }: Member): Promise<string | undefined> {
  for (const url of clientUrls) {
    const status = await client.statusAt(url).catch(() => undefined);
    if (status?.memberId === id) return status.version;
  }
  return undefined;
}

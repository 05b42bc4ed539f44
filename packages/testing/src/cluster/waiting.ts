import { inspect } from "node:util";
import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { storyOf } from "../history/story.ts";
import type { ObjectTarget } from "../history/target.ts";
import type { Write } from "../history/write-log.ts";
import { type Duration, durationMs } from "../time/duration.ts";
import type { ClusterParts } from "./cluster.ts";
import { busyText } from "./pace.ts";
import { busiest, lastWork } from "./settle.ts";
import type { SettleOptions, WaitOptions } from "./wait-options.ts";

const usualWaitMs = 60_000;
const pollMs = 5;
const longestPollMs = 50;
const longestText = 4_000;

/** Waits for conditions on the cluster; virtual time advances meanwhile. */
export class Waiting {
  readonly #parts: ClusterParts;
  readonly #client: Client;

  constructor(parts: ClusterParts, client: Client) {
    this.#parts = parts;
    this.#client = client;
  }

  /** @throws Error in real time, which cannot be advanced */
  async advance(by: Duration): Promise<void> {
    const { pace, clock } = this.#parts;
    if (pace === undefined) throw new Error('real time cannot be moved: createCluster({ clock: "virtual" })');
    await pace.advanceTo(clock.now() + durationMs(by));
  }

  /**
   * Advances or waits until nothing was written for `quiet` (10 s of virtual time, 200 ms of real time) and no request is open.
   * @throws Error after `within`, with the busiest writers; at once over a real etcd
   */
  async settle({ quiet, within }: SettleOptions = {}): Promise<void> {
    const { pace, clock, activity, writes, startMs } = this.#parts;
    if (writes === undefined) throw new Error("a cluster with a real etcd does not know when it has settled");
    const isVirtual = pace !== undefined;
    const quietMs = durationMs(quiet ?? (isVirtual ? 10_000 : 200));
    const limitMs = durationMs(within ?? (isVirtual ? 600_000 : 60_000));
    const beganMs = clock.now();
    // Earlier writes may already have made the condition true.
    let last: Write | undefined = lastWork(writes.all);
    let sinceMs = beganMs;
    const isQuiet = (): boolean => {
      const now = lastWork(writes.all);
      if (now !== last) {
        last = now;
        sinceMs = now?.atMs ?? beganMs;
      }
      return clock.now() - sinceMs >= quietMs && activity.open.length === 0;
    };
    if (await this.#until(isQuiet, beganMs + limitMs)) return;
    throw new Error(
      `the cluster has not settled within ${limitMs / 1000} s: something was written at least every ${quietMs / 1000} s${busyText(activity)}\n${busiest(writes, beganMs, startMs)}`,
    );
  }

  async waitFor<T>(
    condition: () => T | Promise<T>,
    { within, what = "the condition" }: WaitOptions = {},
  ): Promise<NonNullable<T>> {
    const limitMs = durationMs(within ?? usualWaitMs);
    let last: T | undefined;
    const isSo = async (): Promise<boolean> => {
      last = await condition();
      return Boolean(last);
    };
    if (await this.#until(isSo, this.#parts.clock.now() + limitMs)) return last as NonNullable<T>;
    throw new Error(`waited ${limitMs / 1000} s for ${what}; last: ${cut(inspect(last, { depth: 6 }))}`);
  }

  async eventually<T extends object>(
    ref: ResourceRef,
    target: ObjectTarget,
    isAsWanted: (object: T) => boolean,
    { within, what = "to be as wanted" }: WaitOptions = {},
  ): Promise<T> {
    const limitMs = durationMs(within ?? usualWaitMs);
    const found = await this.#seen<T>(ref, target, (object) => object !== undefined && isAsWanted(object), limitMs);
    if (found.isSo) return found.object as T;
    throw await this.#failure(ref, target, limitMs, what, found.object);
  }

  /** Waits until the object does not exist. @throws Error after the limit, with the object's history */
  async eventuallyGone(ref: ResourceRef, target: ObjectTarget, { within }: WaitOptions = {}): Promise<void> {
    const limitMs = durationMs(within ?? usualWaitMs);
    const found = await this.#seen<object>(ref, target, (object) => object === undefined, limitMs);
    if (!found.isSo) throw await this.#failure(ref, target, limitMs, "to be gone", found.object);
  }

  story(ref: ResourceRef, target: ObjectTarget): Promise<string> {
    const { writes, startMs } = this.#parts;
    return this.#parts.drive("the story", storyOf(ref, target, { client: this.#client, writes, startMs }));
  }

  async #seen<T extends object>(
    ref: ResourceRef,
    target: ObjectTarget,
    isWanted: (object: T | undefined) => boolean,
    limitMs: number,
  ): Promise<{ isSo: boolean; object: T | undefined }> {
    let object: T | undefined;
    const isSo = await this.#until(async () => {
      object = await this.#read<T>(ref, target);
      return isWanted(object);
    }, this.#parts.clock.now() + limitMs);
    return { isSo, object };
  }

  async #read<T extends object>(ref: ResourceRef, target: ObjectTarget): Promise<T | undefined> {
    try {
      return await this.#client.get<T>(ref, target);
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  async #failure(
    ref: ResourceRef,
    target: ObjectTarget,
    limitMs: number,
    what: string,
    last: object | undefined,
  ): Promise<Error> {
    const name = ref.namespaced ? `${target.namespace}/${target.name}` : target.name;
    const now =
      last === undefined ? "it does not exist" : `its status is ${cut(JSON.stringify((last as Unstructured)["status"] ?? {}))}`;
    const story = await this.story(ref, target);
    return new Error(`waited ${limitMs / 1000} s for ${ref.kind} ${name} ${what}; ${now}\n\n${story}`);
  }

  async #until(isSo: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const { pace, clock } = this.#parts;
    if (pace !== undefined) return pace.until(isSo, limitMs);
    for (let pauseMs = pollMs; ; pauseMs = Math.min(longestPollMs, pauseMs * 1.3)) {
      if (await isSo()) return true;
      if (clock.now() >= limitMs) return false;
      await clock.sleep(pauseMs);
    }
  }
}

const cut = (text: string): string => (text.length > longestText ? `${text.slice(0, longestText)}…` : text);

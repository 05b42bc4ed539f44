import type { Client } from "../client/client.ts";
import { isConnectionRefused } from "../client/transport-errors.ts";
import { BadEventError } from "../client/watch-decoder.ts";
import { isGone, isResourceExpired, isTooManyRequests } from "../objects/errors/predicates.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import { formatGroupResource, formatGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import { isJsonObject } from "../objects/meta/json-value.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { LongWork } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import { type Backoff, newBackoff, reflectorBackoff } from "./backoff.ts";
import type { Reconnection } from "./reconnection.ts";

/** The objects a reflector lists and watches. */
export interface ReflectorTarget {
  readonly ref: ResourceRef;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Requests and stores metadata only. */
  readonly metadataOnly?: boolean | undefined;
}

/** The store a reflector fills. Called in order, never concurrently. */
interface ReflectorSink<T> {
  /**
   * Replaces the content: objects that are not in `objects` were deleted.
   * @param isOtherHistory etcd may have been restored: an equal resourceVersion may belong to another state
   */
  replace(objects: T[], isOtherHistory: boolean): void | Promise<void>;
  set(object: T): void;
  delete(object: T): void;
}

/**
 * Lists, then watches from the list's version until `signal` is aborted. A watch that ends is resumed from its last event or
 * bookmark; when the server no longer has that version, everything is listed again. Failures are logged and retried after 0.8 s
 * to 60 s, jitter included. A watch that has lasted for 10 s resets the backoff: with upstream's rule, two minutes without a failure,
 * the waits grow to 60 s for a server that is restarted every minute.
 *
 * The first list may come from the server's cache (resourceVersion "0"); later ones are never older than what was seen.
 * Source: k8s.io/client-go tools/cache/reflector.go
 */
export function runReflector<T extends KubeObject>(options: ReflectorOptions<T>): Promise<void> {
  return new Reflector(options).run();
}

interface ReflectorOptions<T> {
  client: Client;
  target: ReflectorTarget;
  sink: ReflectorSink<T>;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  random?: (() => number) | undefined;
  /**
   * Schedules attempts while the server cannot be reached. With it, a too old version, reported after a stable time, causes an immediate list. Default:
   * the usual backoff. It does not shorten waits after the server has responded, for example that it is busy.
   */
  reconnection?: Reconnection | undefined;
  /** Awaited before each event of the watch; undefined: they are passed on at once. */
  turns?: Pick<LongWork, "next"> | undefined;
}

class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #resource: string;
  readonly #random: () => number;
  readonly #lists: Backoff;
  readonly #watches: Backoff;
  /** `undefined` before the first list, `""` after the server rejected the version as too old or too large. */
  #resourceVersion: string | undefined;
  #isOtherHistory = false;
  #listedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReflectorOptions<T>) {
    const { target, clock, random = Math.random } = options;
    this.#options = options;
    this.#resource = formatGroupResource(target.ref);
    this.#random = random;
    this.#lists = newBackoff({ ...reflectorBackoff, clock, random });
    this.#watches = newBackoff({ ...reflectorBackoff, clock, random });
  }

  async run(): Promise<void> {
    const { clock, log, signal } = this.#options;
    while (!signal.aborted) {
      let failure: unknown;
      try {
        await this.#list();
        if (await this.#watchUntilListIsNeeded()) continue;
      } catch (err) {
        if (signal.aborted) return;
        log.error("Failed to list", err, { resource: this.#resource });
        failure = err;
      }
      const wait = failure === undefined ? clock.sleep(this.#lists.next(), signal) : this.#waitAfter(failure, this.#lists);
      await wait.catch(() => {});
    }
  }

  async #list(): Promise<void> {
    const { client, target, sink, clock, signal } = this.#options;
    const { objects, version, wasRefused } = await listAll<T>(client, target, this.#resourceVersion ?? "0", signal);
    const replacing = sink.replace(objects, this.#isOtherHistory || wasRefused);
    if (replacing !== undefined) await replacing;
    this.#isOtherHistory = false;
    this.#resourceVersion = version;
    this.#listedAt = clock.monotonic();
  }

  /** @returns whether to list without a wait: the server has come back with another state, and does not refuse each version */
  async #watchUntilListIsNeeded(): Promise<boolean> {
    const { clock, log, signal } = this.#options;
    const resource = this.#resource;
    for (;;) {
      const startedAt = clock.monotonic();
      try {
        const canResume = await this.#watch();
        this.#resetIfItLasted(startedAt);
        if (!canResume) return false;
      } catch (err) {
        if (signal.aborted) return false;
        if (!(err instanceof StatusError)) this.#resetIfItLasted(startedAt);
        if (isResourceExpired(err) || isGone(err)) {
          log.v(4)?.info("watch is too old to continue; listing again", { resource, resourceVersion: this.#resourceVersion });
          // A server also refuses the versions from before a restore as too old.
          return this.#forgetVersion();
        }
        if (isTooLarge(err)) {
          log.warn("the server is behind a version that it has already sent (was its store restored?); listing again", {
            resource,
            resourceVersion: this.#resourceVersion,
          });
          return this.#forgetVersion();
        }
        if (isConnectionRefused(err) || isTooManyRequests(err)) {
          await this.#waitAfter(err, this.#watches);
          continue;
        }
        if (!(err instanceof StatusError || err instanceof BadEventError)) {
          // A broken connection: the version stays valid, only the watch is lost.
          log.v(1)?.info("watch was cut off", { resource, err: String(err) });
          await this.#waitAfter(err, this.#watches);
          continue;
        }
        log.error("Failed to watch", err, { resource });
        return false;
      }
    }
  }

  /** @returns true when the watch can be resumed, false when a new list is needed */
  async #watch(): Promise<boolean> {
    const { client, target, sink, clock, log, signal, turns } = this.#options;
    const startedAt = clock.monotonic();
    let events = 0;
    const timeoutSeconds = Math.floor(minWatchSeconds * (1 + this.#random()));
    const { ref, namespace, labelSelector, fieldSelector, metadataOnly } = target;
    const resourceVersion = this.#resourceVersion;
    const watched = client.watch<T>(
      ref,
      { namespace },
      { resourceVersion, labelSelector, fieldSelector, metadataOnly, allowWatchBookmarks: true, timeoutSeconds, signal },
    );
    for await (const { type, object } of watched) {
      events++;
      const metadata: unknown = object.metadata;
      if (!isJsonObject(metadata))
        throw new BadEventError(`unable to understand a watch event of type ${type}: its object has no metadata`);
      const turn = turns?.next(); // one chunk of the stream may contain hundreds of events
      if (turn !== undefined) {
        await turn;
        signal.throwIfAborted();
      }
      if (type === "DELETED") sink.delete(object);
      else if (type !== "BOOKMARK") sink.set(object);
      this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion;
    }
    if (events > 0 || clock.monotonic() - startedAt >= 1000) return true;
    log.v(4)?.info("watch ended at once", { resource: this.#resource });
    return false;
  }

  /** The objects may be from another history than the server's. @returns whether to list immediately, because the last list was long ago */
  #forgetVersion(): boolean {
    const { clock, reconnection } = this.#options;
    this.#resourceVersion = "";
    this.#isOtherHistory = true;
    return reconnection !== undefined && clock.monotonic() - this.#listedAt >= settledMs;
  }

  /** Called after a watch that was not refused, but ended or broke. */
  #resetIfItLasted(startedAt: number): void {
    if (this.#options.clock.monotonic() - startedAt < settledMs) return;
    this.#lists.reset();
    this.#watches.reset();
  }

  #waitAfter(err: unknown, backoff: Backoff): Promise<void> {
    const { clock, signal, reconnection } = this.#options;
    if (reconnection === undefined || err instanceof StatusError) return clock.sleep(backoff.next(), signal);
    return reconnection.wait(signal);
  }
}

/** Source: reflector.go minWatchTimeout: 5 to 10 minutes, so that watches do not all end at once. */
const minWatchSeconds = 300;
/** A list this long ago, or a watch of this length, was of use. */
const settledMs = 10_000;
const pageSize = 500;

async function listAll<T extends KubeObject>(
  client: Client,
  target: ReflectorTarget,
  atLeast: string,
  signal: AbortSignal,
): Promise<{ objects: T[]; version: string; wasRefused: boolean }> {
  try {
    return { ...(await listPages<T>(client, target, atLeast, signal)), wasRefused: false };
  } catch (err) {
    if (atLeast === "" || !(isResourceExpired(err) || isGone(err) || isTooLarge(err))) throw err;
    // The version is expired, or not yet reached by this server: list the most recent state.
    return { ...(await listPages<T>(client, target, "", signal)), wasRefused: true };
  }
}

async function listPages<T extends KubeObject>(
  client: Client,
  target: ReflectorTarget,
  atLeast: string,
  signal: AbortSignal,
): Promise<{ objects: T[]; version: string }> {
  const { ref, namespace, labelSelector, fieldSelector, metadataOnly } = target;
  const selectors = { labelSelector, fieldSelector, metadataOnly, signal };
  // Pages of an old version would bypass the server's cache. Source: reflector.go, pager.PageSize = 0
  const limit = atLeast === "" || atLeast === "0" ? pageSize : undefined;
  let page = await client.list<T>(ref, { namespace }, { ...selectors, resourceVersion: atLeast, limit });
  const version = page.metadata.resourceVersion ?? "";
  let objects = page.items;
  while (page.metadata.continue) {
    try {
      page = await client.list<T>(ref, { namespace }, { ...selectors, limit, continue: page.metadata.continue });
    } catch (err) {
      if (!isResourceExpired(err) && !isGone(err)) throw err;
      const whole = await client.list<T>(ref, { namespace }, selectors);
      return { objects: typed(ref, whole.items, metadataOnly), version: whole.metadata.resourceVersion ?? "" };
    }
    objects = objects.concat(page.items);
  }
  return { objects: typed(ref, objects, metadataOnly), version };
}

/** Sets apiVersion and kind, which list items lack. */
function typed<T extends KubeObject>(ref: ResourceRef, objects: T[], metadataOnly: boolean | undefined): T[] {
  if (metadataOnly === true) return objects;
  const apiVersion = formatGroupVersion(ref);
  for (const object of objects) {
    object.apiVersion ??= apiVersion;
    object.kind ??= ref.kind;
  }
  return objects;
}

function isTooLarge(err: unknown): boolean {
  return (
    err instanceof StatusError && (err.status.details?.causes ?? []).some(({ reason }) => reason === "ResourceVersionTooLarge")
  );
}

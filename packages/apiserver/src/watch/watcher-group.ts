import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import { isSelective, matches } from "../storage/selection.ts";
import type { Selection, WatchEvent, WatchRequest } from "../storage/storage.ts";
import type { WatchQueue } from "../storage/watch-queue.ts";
import type { Change } from "./change.ts";
import { isInRange } from "./sorted-entries.ts";

/**
 * All watchers of a cache with the same selector: the visible event of a change is computed once and delivered to each of them.
 */
export class WatcherGroup implements Selection {
  /** Equal for equal selectors only; see groupName. */
  readonly name: string;
  readonly prefix: string;
  readonly labels?: LabelSelector;
  readonly fields?: FieldSelector;
  /** Watchers that changes are dispatched to. */
  readonly watchers = new Set<CacheWatcher>();
  readonly #selective: boolean;

  constructor(name: string, { prefix, labels, fields }: WatchRequest) {
    this.name = name;
    this.prefix = prefix;
    if (labels !== undefined) this.labels = labels;
    if (fields !== undefined) this.fields = fields;
    this.#selective = isSelective(this);
  }

  /** Delivers the event of `change`, if the selector matches, to every watcher. */
  deliver(change: Change): void {
    const event = this.eventOf(change);
    if (event === undefined) return;
    const alone = [event];
    for (const watcher of this.watchers) watcher.deliver(change.revision, event, alone);
  }

  /** The event that a watcher with this selector sees, undefined when the object matches neither before nor after the change. */
  eventOf(change: Change): WatchEvent | undefined {
    if (!isInRange(change.key, this.prefix)) return undefined;
    const { previous, current } = change;
    if (!this.#selective) return change.event(previous !== undefined, current !== undefined);
    return change.event(previous !== undefined && matches(this, previous), current !== undefined && matches(this, current));
  }
}

/**
 * JSON keeps the parts apart whatever they contain. `empty` distinguishes a selector that matches nothing, whose
 * text is "" as well.
 */
export function groupName({ prefix, labels, fields }: WatchRequest): string {
  return JSON.stringify([prefix, labels?.empty ?? true, `${labels ?? ""}`, `${fields ?? ""}`]);
}

/** One watcher of a cache: the revision that its events start after, and its bounded queue. */
export class CacheWatcher {
  readonly group: WatcherGroup;
  readonly queue: WatchQueue;
  /** Changes up to this revision are skipped: the client has seen them. */
  readonly #after: number;

  constructor(group: WatcherGroup, after: number, queue: WatchQueue) {
    this.group = group;
    this.#after = after;
    this.queue = queue;
  }

  /**
   * Queues the event unless the client has seen its revision.
   * @param event what the group sees of the change at `revision`
   * @param alone an array of only `event`, shared by all watchers of the group
   */
  deliver(revision: number, event: WatchEvent, alone: readonly WatchEvent[]): void {
    if (revision > this.#after) this.queue.push(event, alone);
  }

  /** Queues the events of the missed changes at once, regardless of the queue's limit. */
  catchUp(missed: readonly Change[]): void {
    const events: WatchEvent[] = [];
    for (const change of missed) {
      const event = change.revision > this.#after ? this.group.eventOf(change) : undefined;
      if (event !== undefined) events.push(event);
    }
    this.queue.catchUp(events);
  }

  /** Queues a bookmark. Valid because every change up to `revision` was queued before. */
  bookmark(revision: number): void {
    if (revision >= this.#after && !this.queue.ended) this.queue.push({ type: "BOOKMARK", revision });
  }
}

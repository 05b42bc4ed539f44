import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import { isSelective, matches } from "../storage/selection.ts";
import type { Selection, WatchEvent, WatchRequest } from "../storage/storage.ts";
import type { Change } from "./change.ts";
import { isInRange } from "./sorted-entries.ts";
import type { CacheWatcher } from "./watcher.ts";

/** All readers of a cache that asked for the same: what they see of a change is found out once, and told to each of them. */
export class Audience implements Selection {
  /** The same for the same question, and for no other. */
  readonly name: string;
  readonly prefix: string;
  readonly labels?: LabelSelector;
  readonly fields?: FieldSelector;
  /** Those that changes are told to. */
  readonly watchers = new Set<CacheWatcher>();
  readonly #selective: boolean;

  constructor(name: string, { prefix, labels, fields }: WatchRequest) {
    this.name = name;
    this.prefix = prefix;
    if (labels !== undefined) this.labels = labels;
    if (fields !== undefined) this.fields = fields;
    this.#selective = isSelective(this);
  }

  tell(change: Change): void {
    const event = this.eventOf(change);
    if (event === undefined) return;
    const alone = [event];
    for (const watcher of this.watchers) watcher.see(change.revision, event, alone);
  }

  /** What those see of it who did not know it. */
  eventOf(change: Change): WatchEvent | undefined {
    if (!isInRange(change.key, this.prefix)) return undefined;
    const { previous, current } = change;
    if (!this.#selective) return change.event(previous !== undefined, current !== undefined);
    return change.event(previous !== undefined && matches(this, previous), current !== undefined && matches(this, current));
  }
}

/** Whatever the texts contain. A selector that takes nothing has the same text as one that takes everything. */
export function audienceName({ prefix, labels, fields }: WatchRequest): string {
  return JSON.stringify([prefix, labels?.empty ?? true, `${labels ?? ""}`, `${fields ?? ""}`]);
}

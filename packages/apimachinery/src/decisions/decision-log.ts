import definitions from "../metrics.json" with { type: "json" };
import { formatTime } from "../objects/meta/time.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { Decision, ObjectRef, Verdict } from "./decision.ts";
import { type KeptObject, KeptObjects, type ObjectName } from "./kept-objects.ts";

/** The text of an outcome. */
export interface Description {
  readonly summary: string;
  /** Shown instead of the summary to users who may not read `related`; contains none of their names. */
  readonly plain?: string;
  readonly related?: readonly ObjectRef[];
  readonly details?: Readonly<Record<string, unknown>>;
  readonly remedy?: string;
  /** Overrides the outcome's. */
  readonly nextTryMs?: number;
}

export interface Outcome {
  readonly verdict: Verdict;
  readonly reason: string;
  /** Time of the next attempt, in ms since the epoch. */
  readonly nextTryMs?: number | undefined;
  /** A function is called when the decision is read. Until then it costs nothing, but it must not keep more than `sizeBytes` alive. */
  readonly description: string | Description | (() => Description);
  /** Approximate size of what a function in `description` keeps alive. Default 500. */
  readonly sizeBytes?: number;
}

interface DecisionLogOptions {
  readonly component: string;
  readonly clock: Pick<Clock, "now">;
  readonly registry?: MetricsRegistry | undefined;
  /** Default 4 MiB; 0: nothing is recorded. */
  readonly limitBytes?: number;
}

/** The limit of a daemon's log. `COXSWAIN_DECISIONS=off` disables recording, which `./cox bench reasons` compares with. */
export const decisionLimitBytes = (env: Readonly<Record<string, string | undefined>>): number =>
  env["COXSWAIN_DECISIONS"] === "off" ? 0 : defaultLimitBytes;

/** The last decision of one source about an object. */
interface Entry extends Omit<Outcome, "sizeBytes"> {
  readonly source: string;
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly count: number;
  readonly sizeBytes: number;
}

const defaultLimitBytes = 4 << 20;
/** Maximum number of sources per object; further ones replace the oldest. */
const mostSources = 32;
/** Estimated memory of an object and of an entry in bytes, without their texts. */
const objectOverhead = 300;
const entryOverhead = 200;
const longestSummary = 2000;

/**
 * The last decision of each source about each object, in memory, bounded in bytes: the objects with the oldest decisions are
 * evicted first, objects without problems before all others. Nothing is sent anywhere. Recording must not build texts: it happens
 * with every decision, and few of them are ever read.
 */
export class DecisionLog {
  readonly component: string;
  readonly #clock: Pick<Clock, "now">;
  readonly #limitBytes: number;
  readonly #objects = new KeptObjects<Entry>();
  #entries = 0;
  readonly #evicted: (() => void) | undefined;

  constructor({ component, clock, registry, limitBytes = defaultLimitBytes }: DecisionLogOptions) {
    this.component = component;
    this.#clock = clock;
    this.#limitBytes = limitBytes;
    if (registry === undefined) return;
    registry.gauge({ ...definitions.coxswain_decisions, collect: (gauge) => gauge.set(this.#entries) });
    registry.gauge({ ...definitions.coxswain_decisions_bytes, collect: (gauge) => gauge.set(this.bytes) });
    const evictions = registry.counter(definitions.coxswain_decision_evictions_total);
    this.#evicted = () => evictions.inc();
  }

  /** False: callers can omit computing an outcome. */
  get isKeeping(): boolean {
    return this.#limitBytes > 0;
  }

  get bytes(): number {
    return this.#objects.bytes;
  }

  get entries(): number {
    return this.#entries;
  }

  /**
   * Replaces the last outcome of the same source. An object with another UID replaces the earlier one of that name.
   * @param nextTryMs overrides the outcome's, which may be shared by several objects
   */
  record(ref: ObjectRef, source: string, outcome: Outcome, nextTryMs = outcome.nextTryMs): void {
    if (!this.isKeeping) return;
    const { verdict, reason, description } = outcome;
    const now = this.#clock.now();
    const size = typeof description === "function" ? (outcome.sizeBytes ?? 500) : sizeOf(description);
    const sizeBytes = entryOverhead + source.length + size;
    let object = this.#objects.get(ref);
    if (object !== undefined && isAnother(object.ref, ref)) {
      this.#remove(object);
      object = undefined;
    }
    const former = object && take(object, source);
    const isSame = former?.verdict === verdict && former.reason === reason;
    const sinceMs = isSame ? former.sinceMs : now;
    const count = isSame ? former.count + 1 : 1;
    const entry: Entry = { source, verdict, reason, nextTryMs, description, sinceMs, lastMs: now, count, sizeBytes };
    if (former === undefined) this.#entries++;
    if (object === undefined) {
      this.#objects.add(ref, [entry], objectOverhead + ref.name.length + ref.namespace.length + sizeBytes, verdict === "done");
    } else {
      if (object.entries.length >= mostSources) this.#drop(object, object.entries[0]!);
      object.entries.push(entry);
      this.#objects.touch(object, sizeBytes - (former?.sizeBytes ?? 0), isSettled(object));
    }
    this.#evict();
  }

  /** The source has no problem with the object any more. */
  forget(ref: ObjectName, source: string): void {
    const object = this.#objects.get(ref);
    const entry = object?.entries.find((one) => one.source === source);
    if (object === undefined || entry === undefined) return;
    if (object.entries.length === 1) this.#remove(object);
    else this.#drop(object, entry);
  }

  /** Called when the object was deleted. */
  forgetObject(ref: ObjectName): void {
    const object = this.#objects.get(ref);
    if (object !== undefined) this.#remove(object);
  }

  /** @returns the decisions about the object, the last first; none when `ref` has the uid of another object of that name */
  of(ref: ObjectRef): Decision[] {
    const object = this.#objects.get(ref);
    if (object === undefined || isAnother(object.ref, ref)) return [];
    return object.entries.map((entry) => this.#decision(object.ref, entry)).reverse();
  }

  #decision(object: ObjectRef, entry: Entry): Decision {
    const { summary, plain, related, details, remedy, nextTryMs = entry.nextTryMs } = descriptionOf(entry.description);
    return {
      component: this.component,
      source: entry.source,
      object,
      verdict: entry.verdict,
      reason: entry.reason,
      summary: shortened(summary),
      ...(plain !== undefined && { plain: shortened(plain) }),
      since: formatTime(entry.sinceMs),
      lastAt: formatTime(entry.lastMs),
      count: entry.count,
      ...(nextTryMs !== undefined && { nextTryAt: formatTime(nextTryMs) }),
      ...(related !== undefined && { related }),
      ...(details !== undefined && { details }),
      ...(remedy !== undefined && { remedy }),
    };
  }

  #drop(object: Kept, entry: Entry): void {
    object.entries.splice(object.entries.indexOf(entry), 1);
    this.#objects.touch(object, -entry.sizeBytes, isSettled(object));
    this.#entries--;
  }

  #remove(object: Kept): void {
    this.#objects.remove(object);
    this.#entries -= object.entries.length;
  }

  #evict(): void {
    const objects = this.#objects;
    for (;;) {
      // Healthy objects are queried less often, so they may use a quarter of the limit at most.
      const isCrowded = objects.settledBytes > this.#limitBytes / 4;
      if (!isCrowded && objects.bytes <= this.#limitBytes) return;
      const oldest = objects.oldestSettled ?? objects.oldestOpen;
      if (oldest === undefined) return;
      this.#remove(oldest);
      this.#evicted?.();
    }
  }
}

type Kept = KeptObject<Entry>;

function isSettled({ entries }: Kept): boolean {
  for (const { verdict } of entries) if (verdict !== "done") return false;
  return true;
}

const isAnother = (one: ObjectRef, other: ObjectRef): boolean => one.uid !== other.uid && one.uid !== "" && other.uid !== "";

/** Removes the entry of the source from those of the object and returns it. */
function take({ entries }: Kept, source: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    if (entries[i]?.source === source) return i === entries.length - 1 ? entries.pop() : entries.splice(i, 1)[0];
  }
  return undefined;
}

/** The start of a text, in memory of its own: a slice would keep the whole text alive. */
export function shortened(text: string): string {
  return text.length > longestSummary ? Buffer.from(`${text.slice(0, longestSummary)}…`).toString() : text;
}

/** The description of an outcome; states the error when the function fails. */
export function descriptionOf(description: Outcome["description"]): Description {
  if (typeof description === "string") return { summary: description };
  if (typeof description !== "function") return description;
  try {
    return description();
  } catch (err) {
    return { summary: `the reason is not available: ${err instanceof Error ? err.message : String(err)}` };
  }
}

/** Estimated, in bytes. */
function sizeOf(description: string | Description): number {
  if (typeof description === "string") return description.length;
  const { summary, plain = "", remedy = "", related = [], details } = description;
  return summary.length + plain.length + remedy.length + related.length * 300 + sizeOfValue(details);
}

/** Estimated size of a JSON value, in bytes. */
function sizeOfValue(value: unknown): number {
  if (typeof value === "string") return 16 + 2 * value.length;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 32;
  if (Array.isArray(value)) for (const one of value) bytes += sizeOfValue(one);
  // Cast: read by its own keys.
  else for (const name in value) bytes += 16 + sizeOfValue((value as Record<string, unknown>)[name]);
  return bytes;
}

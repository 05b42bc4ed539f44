import { formatTime } from "../objects/meta/time.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { Decision, ObjectRef, Verdict } from "./decision.ts";

/** What an outcome says in words. */
export interface Description {
  readonly summary: string;
  /** In place of the summary for who may not read `related`, of whose names it has none. */
  readonly plain?: string;
  readonly related?: readonly ObjectRef[];
  readonly details?: Readonly<Record<string, unknown>>;
  readonly remedy?: string;
  /** In place of the outcome's. */
  readonly nextTryMs?: number;
}

export interface Outcome {
  readonly verdict: Verdict;
  readonly reason: string;
  /** When it is tried again, in milliseconds since the epoch. */
  readonly nextTryMs?: number | undefined;
  /** A function is called when somebody asks: it costs nothing until then, but must hold no more than `sizeBytes` alive. */
  readonly description: string | Description | (() => Description);
  /** About what a function as `description` holds. Default 500. */
  readonly sizeBytes?: number;
}

export interface DecisionLogOptions {
  readonly component: string;
  readonly clock: Pick<Clock, "now">;
  readonly registry?: MetricsRegistry | undefined;
  /** Default 4 MiB; 0: nothing is kept. */
  readonly limitBytes?: number;
}

/** The limit of a daemon's log. `COXSWAIN_DECISIONS=off`: nothing is kept; `./cox bench reasons` compares with that. */
export const decisionLimitBytes = (env: Readonly<Record<string, string | undefined>>): number =>
  env["COXSWAIN_DECISIONS"] === "off" ? 0 : defaultLimitBytes;

interface Entry extends Omit<Outcome, "sizeBytes"> {
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly count: number;
  readonly sizeBytes: number;
}

interface ObjectEntries {
  readonly ref: ObjectRef;
  readonly bySource: Map<string, Entry>;
  sizeBytes: number;
}

const defaultLimitBytes = 4 << 20;
/** Of one object; others replace the oldest. */
const mostSources = 32;
/** Maps, references and times of an object and of an entry. */
const objectOverhead = 300;
const entryOverhead = 200;
const longestSummary = 2000;

/**
 * The last decision of each source about each object, in memory, bounded in bytes: the objects that were decided about longest
 * ago go first, those with which all is well before the others. Nothing is sent anywhere.
 */
export class DecisionLog {
  readonly component: string;
  readonly #clock: Pick<Clock, "now">;
  readonly #limitBytes: number;
  /** Objects in the order of their last decision, those with open decisions apart from those that are settled. */
  readonly #open = new Map<string, ObjectEntries>();
  readonly #settled = new Map<string, ObjectEntries>();
  #bytes = 0;
  #settledBytes = 0;
  #entries = 0;
  readonly #evicted: (() => void) | undefined;

  constructor({ component, clock, registry, limitBytes = defaultLimitBytes }: DecisionLogOptions) {
    this.component = component;
    this.#clock = clock;
    this.#limitBytes = limitBytes;
    if (registry === undefined) return;
    registry.gauge({
      name: "coxswain_decisions",
      help: "Number of decisions that are kept for diagnostics",
      collect: (gauge) => gauge.set(this.#entries),
    });
    registry.gauge({
      name: "coxswain_decisions_bytes",
      help: "Estimated size of the decisions that are kept for diagnostics, in bytes",
      collect: (gauge) => gauge.set(this.#bytes),
    });
    const evictions = registry.counter({
      name: "coxswain_decision_evictions_total",
      help: "Number of objects whose decisions were dropped for those about others",
    });
    this.#evicted = () => evictions.inc();
  }

  /** False: callers need not make up what to record. */
  get isKeeping(): boolean {
    return this.#limitBytes > 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Keeps the outcome in place of the last one of the same source. An object of another uid replaces the former of that name. */
  record(ref: ObjectRef, source: string, outcome: Outcome): void {
    if (!this.isKeeping) return;
    const key = keyOf(ref);
    let object = this.#take(key);
    if (object !== undefined && ref.uid !== "" && object.ref.uid !== "" && object.ref.uid !== ref.uid) {
      this.#entries -= object.bySource.size;
      object = undefined;
    }
    object ??= { ref, bySource: new Map(), sizeBytes: objectOverhead + key.length };
    const former = object.bySource.get(source);
    if (former !== undefined) this.#drop(object, source, former);
    else if (object.bySource.size >= mostSources) {
      const [oldest, entry] = object.bySource.entries().next().value as [string, Entry];
      this.#drop(object, oldest, entry);
    }
    const now = this.#clock.now();
    const same = former?.verdict === outcome.verdict && former.reason === outcome.reason;
    const { verdict, reason, nextTryMs, description } = outcome;
    const entry: Entry = {
      ...{ verdict, reason, nextTryMs, description },
      sinceMs: same ? former.sinceMs : now,
      lastMs: now,
      count: same ? former.count + 1 : 1,
      sizeBytes:
        entryOverhead + source.length + (typeof description === "function" ? (outcome.sizeBytes ?? 500) : sizeOf(description)),
    };
    object.bySource.set(source, entry);
    object.sizeBytes += entry.sizeBytes;
    this.#entries++;
    this.#put(key, object);
    this.#evict();
  }

  /** All is well again with what the source decides about the object. */
  forget(ref: Pick<ObjectRef, "group" | "resource" | "namespace" | "name">, source: string): void {
    if (this.#open.size === 0 && this.#settled.size === 0) return;
    const key = keyOf(ref);
    const entry = (this.#open.get(key) ?? this.#settled.get(key))?.bySource.get(source);
    if (entry === undefined) return;
    const object = this.#take(key) as ObjectEntries;
    this.#drop(object, source, entry);
    if (object.bySource.size > 0) this.#put(key, object);
  }

  /** The object is gone. */
  forgetObject(ref: Pick<ObjectRef, "group" | "resource" | "namespace" | "name">): void {
    this.#entries -= this.#take(keyOf(ref))?.bySource.size ?? 0;
  }

  /** @returns the decisions about the object, the last first; none when `ref` has the uid of another object of that name */
  of(ref: ObjectRef): Decision[] {
    const key = keyOf(ref);
    const object = this.#open.get(key) ?? this.#settled.get(key);
    if (object === undefined) return [];
    if (ref.uid !== "" && object.ref.uid !== "" && ref.uid !== object.ref.uid) return [];
    const decisions = Array.from(object.bySource, ([source, entry]) => this.#decision(object.ref, source, entry));
    return decisions.reverse();
  }

  #decision(object: ObjectRef, source: string, entry: Entry): Decision {
    const { summary, plain, related, details, remedy, nextTryMs = entry.nextTryMs } = descriptionOf(entry.description);
    return {
      component: this.component,
      source,
      object,
      verdict: entry.verdict,
      reason: entry.reason,
      summary: cut(summary),
      ...(plain !== undefined && { plain: cut(plain) }),
      since: formatTime(entry.sinceMs),
      lastAt: formatTime(entry.lastMs),
      count: entry.count,
      ...(nextTryMs !== undefined && { nextTryAt: formatTime(nextTryMs) }),
      ...(related !== undefined && { related }),
      ...(details !== undefined && { details }),
      ...(remedy !== undefined && { remedy }),
    };
  }

  #drop(object: ObjectEntries, source: string, entry: Entry): void {
    object.bySource.delete(source);
    object.sizeBytes -= entry.sizeBytes;
    this.#entries--;
  }

  #put(key: string, object: ObjectEntries): void {
    let settled = true;
    for (const { verdict } of object.bySource.values()) if (verdict !== "done") settled = false;
    (settled ? this.#settled : this.#open).set(key, object);
    this.#bytes += object.sizeBytes;
    if (settled) this.#settledBytes += object.sizeBytes;
  }

  #take(key: string): ObjectEntries | undefined {
    let object = this.#open.get(key);
    if (object !== undefined) this.#open.delete(key);
    else {
      object = this.#settled.get(key);
      if (object === undefined) return undefined;
      this.#settled.delete(key);
      this.#settledBytes -= object.sizeBytes;
    }
    this.#bytes -= object.sizeBytes;
    return object;
  }

  #evict(): void {
    const oldest = (objects: Map<string, ObjectEntries>): void => {
      this.#entries -= this.#take(objects.keys().next().value as string)?.bySource.size ?? 0;
      this.#evicted?.();
    };
    // Healthy objects are queried less often: it takes a quarter at most.
    while (this.#settledBytes > this.#limitBytes / 4) oldest(this.#settled);
    while (this.#bytes > this.#limitBytes) oldest(this.#settled.size > 0 ? this.#settled : this.#open);
  }
}

const cut = (text: string): string => (text.length > longestSummary ? `${text.slice(0, longestSummary)}…` : text);

/** Names hold no space. */
function keyOf({ group, resource, namespace, name }: Pick<ObjectRef, "group" | "resource" | "namespace" | "name">): string {
  return `${resource} ${namespace} ${name} ${group}`;
}

function descriptionOf(description: Outcome["description"]): Description {
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
  return (
    summary.length +
    plain.length +
    remedy.length +
    related.length * 300 +
    (details === undefined ? 0 : JSON.stringify(details).length * 2)
  );
}

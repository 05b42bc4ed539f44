import { goFloat } from "./go-float.ts";

class NumberChild {
  value = 0;
  inc(by = 1): void {
    this.value += by;
  }
  dec(by = 1): void {
    this.value -= by;
  }
  set(value: number): void {
    this.value = value;
  }
  restart(): void {
    this.value = 0;
  }
}

class BucketChild {
  /** An array: a typed one takes several times as long to make, and a server makes hundreds. */
  readonly counts: number[];
  readonly #bounds: readonly number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length).fill(0);
  }

  observe(value: number, times = 1): void {
    this.sum += value * times;
    this.count += times;
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i++) {
      if (value <= bounds[i]!) {
        this.counts[i]! += times;
        return;
      }
    }
  }

  restart(): void {
    this.sum = 0;
    this.count = 0;
    this.counts.fill(0);
  }
}

type Child = NumberChild | BucketChild;

export interface TableOptions {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, ascending, without +Inf. */
  readonly buckets: readonly number[];
  /** Allowed values by label; any other value becomes `unexpected`. */
  readonly allowed: readonly (readonly string[] | undefined)[];
  /** Called before rendering. */
  readonly collect?: () => void;
}

/** All children of one metric, and their rendering. */
export class ChildTable {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly labelNames: readonly string[];
  /** The object given to users: `labels`, and the child's methods for a metric without labels. */
  readonly family: object;
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** Texts of the bounds, made when they are first shown. */
  #le: readonly string[] | undefined;
  readonly #collect: (() => void) | undefined;
  readonly #allowed: readonly (readonly string[] | undefined)[];
  readonly #children = new Map<string, { values: string[]; child: Child }>();
  /** The child that was asked for last: often the next one, and comparing its values costs less than making a key. */
  #last: { readonly values: readonly string[]; readonly child: Child } | undefined;

  constructor(type: ChildTable["type"], options: TableOptions) {
    this.type = type;
    this.name = options.name;
    this.labelNames = options.labels;
    this.#help = options.help;
    this.#bounds = options.buckets;
    this.#collect = options.collect;
    this.#allowed = options.allowed;
    this.family = this.#newFamily();
  }

  /** Renders Prometheus' text format: the header, then the lines of each child. */
  *text(): Generator<string> {
    this.#collect?.();
    yield `# HELP ${this.name} ${escapeHelp(this.#help)}\n# TYPE ${this.name} ${this.type}\n`;
    for (const { values, child } of this.#children.values()) {
      const labels = this.labelNames.map((label, at) => `${label}="${escapeLabel(values[at]!)}"`).join(",");
      yield child instanceof NumberChild
        ? `${this.name}${labels === "" ? "" : `{${labels}}`} ${numberText(child.value)}\n`
        : this.#bucketLines(labels, child);
    }
  }

  /** Removes all children. */
  reset(): void {
    this.#children.clear();
    this.#last = undefined;
    if (this.labelNames.length === 0) this.#children.set("", { values: [], child: this.#newChild() });
  }

  /** Sets counters and histograms to zero. Children stay valid, as users hold references to them. */
  restart(): void {
    if (this.type === "gauge") return;
    for (const { child } of this.#children.values()) child.restart();
  }

  #bucketLines(labels: string, child: BucketChild): string {
    const bucket = `${this.name}_bucket{${labels === "" ? "" : `${labels},`}le="`;
    const braced = labels === "" ? "" : `{${labels}}`;
    this.#le ??= this.#bounds.map(goFloat);
    let text = "";
    let total = 0;
    for (const [at, le] of this.#le.entries()) {
      total += child.counts[at]!;
      text += `${bucket}${le}"} ${total}\n`;
    }
    text += `${bucket}+Inf"} ${child.count}\n`;
    return `${text}${this.name}_sum${braced} ${numberText(child.sum)}\n${this.name}_count${braced} ${child.count}\n`;
  }

  #child(values: readonly string[]): Child {
    if (values.length !== this.labelNames.length) {
      throw new Error(`metric ${this.name} has the labels ${this.labelNames.join()}, got ${values.length} values`);
    }
    const last = this.#last;
    if (last !== undefined && areEqual(last.values, values)) return last.child;
    const child = this.#lookUp(values);
    this.#last = { values, child };
    return child;
  }

  #lookUp(values: readonly string[]): Child {
    // Values that are not allowed are never a key.
    const known = this.#children.get(keyOf(values));
    if (known !== undefined) return known.child;
    const checked = values.map((value, i) => (this.#allowed[i]?.includes(value) === false ? "unexpected" : value));
    return this.#children.getOrInsertComputed(keyOf(checked), () => ({ values: checked, child: this.#newChild() })).child;
  }

  #remove(values: readonly string[]): void {
    this.#children.delete(keyOf(values));
    this.#last = undefined;
  }

  #newChild(): Child {
    return this.type === "histogram" ? new BucketChild(this.#bounds) : new NumberChild();
  }

  #newFamily(): object {
    const own = (): Child => this.#child([]);
    if (this.labelNames.length === 0) own();
    const number = own as () => NumberChild; // cast: the kind of the table decides what it makes
    const buckets = own as () => BucketChild; // cast: as above
    return {
      labels: (...values: string[]) => this.#child(values),
      remove: (...values: string[]) => this.#remove(values),
      reset: () => this.reset(),
      inc: (by?: number) => number().inc(by),
      dec: (by?: number) => number().dec(by),
      set: (value: number) => number().set(value),
      observe: (value: number, times?: number) => buckets().observe(value, times),
      get value() {
        return number().value;
      },
      get count() {
        return buckets().count;
      },
      get sum() {
        return buckets().sum;
      },
    };
  }
}

function areEqual(one: readonly string[], other: readonly string[]): boolean {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

/** Without an array for each observation. */
function keyOf(values: readonly string[]): string {
  let key = values.length === 0 ? "" : values[0]!;
  for (let i = 1; i < values.length; i++) key += `\u{0}${values[i]}`;
  return key;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

const escapeHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapeLabel = (text: string): string => (/["\\\n]/.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text);

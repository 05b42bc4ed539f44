/**
 * JSONPath as used by kubectl and printer columns: fields, indexes, slices, unions, wildcards, recursive descent and filters.
 * A path is compiled to steps; each maps a list of values to the next list. Missing fields yield nothing.
 * Source: k8s.io/client-go util/jsonpath
 */
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";

/** @returns the values at the path, in order @throws JsonPathError for an index out of bounds, and beyond the budget */
export type JsonPath = (root: unknown, budget?: PathBudget) => readonly unknown[];

/**
 * Limits how many values all paths may visit in one object (about 10 ms): consecutive recursive descents (`..`) multiply the
 * number of values. Beyond the limit a path fails.
 */
export class PathBudget {
  #left: number;

  constructor(values = 20_000) {
    this.#left = values;
  }

  /** @throws JsonPathError */
  spend(values: number): void {
    this.#left -= values;
    if (this.#left < 0) throw new JsonPathError("the path leads to too many values");
  }
}

class JsonPathError extends Error {}

type Step = (values: readonly unknown[], budget: PathBudget) => unknown[];

const longestPath = 4096;

/** @param text `.status.conditions[?(@.type=="Ready")].status` @throws JsonPathError */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > longestPath) throw new JsonPathError("the path is too long");
  const reader = new Reader(text);
  const steps = readSteps(reader, () => reader.atEnd);
  return (root, budget = new PathBudget()) => walk(steps, root, budget);
}

function walk(steps: readonly Step[], root: unknown, budget: PathBudget): readonly unknown[] {
  let values: readonly unknown[] = [root];
  for (const step of steps) {
    budget.spend(values.length);
    values = step(values, budget);
  }
  return values;
}

class Reader {
  readonly #text: string;
  #at = 0;
  constructor(text: string) {
    this.#text = text;
  }
  get atEnd(): boolean {
    return this.#at >= this.#text.length;
  }
  get next(): string {
    return this.#text[this.#at] ?? "";
  }
  take(): string {
    return this.#text[this.#at++] ?? "";
  }
  skip(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }
  spaces(): void {
    while (this.next === " ") this.#at++;
  }
  /** Reads a quoted string; the opening quote is next. */
  quoted(): string {
    const quote = this.take();
    let text = "";
    while (!this.atEnd && this.next !== quote) {
      this.skip("\\"); // escapes the next character
      text += this.take();
    }
    if (this.take() !== quote) throw new JsonPathError("unterminated quoted string");
    return text;
  }
}

function readSteps(reader: Reader, isDone: () => boolean): Step[] {
  const steps: Step[] = [];
  while (!isDone()) {
    if (reader.skip("..")) {
      steps.push(descend);
      if (reader.next !== "[" && !isDone()) steps.push(nameStep(readName(reader)));
    } else if (reader.skip(".")) {
      if (reader.next === "[" || isDone()) continue;
      steps.push(nameStep(readName(reader)));
    } else if (reader.skip("[")) steps.push(readBrackets(reader));
    else if (reader.next === "$" && steps.length === 0) reader.take();
    else if (/[\w*-]/.test(reader.next) && steps.length === 0) steps.push(nameStep(readName(reader)));
    else throw new JsonPathError(`unrecognized character in action: ${JSON.stringify(reader.next)}`);
  }
  return steps;
}

/** Reads a field name; a backslash escapes the next character. */
function readName(reader: Reader): string {
  let name = "";
  while (!reader.atEnd && !/[\s.[\](){}|,=!<>'"]/.test(reader.next)) {
    reader.skip("\\");
    name += reader.take();
  }
  return name;
}

const nameStep = (name: string): Step => (name === "*" ? wildcard : fieldStep(name));

const fieldStep =
  (name: string): Step =>
  (values) =>
    values.flatMap((value) => (isJsonObject(value) && Object.hasOwn(value, name) ? [value[name]] : []));

function wildcard(values: readonly unknown[], budget: PathBudget): unknown[] {
  return values.flatMap((value) => {
    if (typeof value !== "object" || value === null) return [];
    const children = Object.values(value);
    budget.spend(children.length);
    return children;
  });
}

/** All objects and lists below the values, in pre-order, including the values themselves. */
function descend(values: readonly unknown[], budget: PathBudget): unknown[] {
  const found: unknown[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const children = Object.values(value);
    budget.spend(1 + children.length);
    found.push(value);
    for (const child of children) visit(child);
  };
  for (const value of values) visit(value);
  return found;
}

function readBrackets(reader: Reader): Step {
  if (reader.skip("?(")) return readFilter(reader);
  const parts: Step[] = [];
  do {
    reader.spaces();
    parts.push(readPart(reader));
    reader.spaces();
  } while (reader.skip(","));
  if (!reader.skip("]")) throw new JsonPathError("unterminated array");
  if (parts.length === 1) return parts[0]!;
  return (values, budget) =>
    values.flatMap((value) =>
      parts.flatMap((part) => {
        const found = part([value], budget);
        budget.spend(1 + found.length);
        return found;
      }),
    );
}

function readPart(reader: Reader): Step {
  if (reader.next === "'" || reader.next === '"') return fieldStep(reader.quoted());
  if (reader.skip("*")) return wildcard;
  let text = "";
  while (/[-\d:]/.test(reader.next)) text += reader.take();
  const bounds = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(text);
  if (bounds === null || text === "") throw new JsonPathError(`invalid array index ${text}`);
  const [, from = "", to, by] = bounds;
  return to === undefined ? indexStep(Number(from)) : sliceStep(from, to, by ?? "");
}

function indexStep(index: number): Step {
  return (values) =>
    values.flatMap((value) => {
      if (!Array.isArray(value)) return [];
      const at = index < 0 ? index + value.length : index;
      if (at >= value.length || at < 0) {
        throw new JsonPathError(`array index out of bounds: index ${at}, length ${value.length}`);
      }
      return [value[at]];
    });
}

function sliceStep(from: string, to: string, by: string): Step {
  const step = by === "" ? 1 : Number(by);
  if (step <= 0) throw new JsonPathError("step must be > 0");
  return (values) =>
    values.flatMap((value) =>
      Array.isArray(value)
        ? value.slice(from === "" ? 0 : Number(from), to === "" ? undefined : Number(to)).filter((_, i) => i % step === 0)
        : [],
    );
}

const operators = ["==", "!=", "<=", ">=", "<", ">"] as const;
type Operator = (typeof operators)[number];
type Operand = (item: unknown, budget: PathBudget) => readonly unknown[];

function readFilter(reader: Reader): Step {
  const left = readOperand(reader);
  const operator = operators.find((one) => reader.skip(one));
  const right = operator === undefined ? undefined : readOperand(reader);
  if (!reader.skip(")]")) throw new JsonPathError("unterminated filter");
  const matches = (item: unknown, budget: PathBudget): boolean => {
    budget.spend(1);
    const found = left(item, budget);
    if (operator === undefined || right === undefined) return found.length > 0;
    const wanted = right(item, budget);
    return found.length > 0 && wanted.length > 0 && compare(found[0], wanted[0], operator);
  };
  return (values, budget) =>
    values.flatMap((value) => (Array.isArray(value) ? value.filter((item) => matches(item, budget)) : []));
}

function readOperand(reader: Reader): Operand {
  reader.spaces();
  let operand: Operand;
  if (reader.skip("@")) {
    const steps = readSteps(reader, () => reader.atEnd || " )=!<>".includes(reader.next));
    operand = (item, budget) => walk(steps, item, budget);
  } else if (reader.next === "'" || reader.next === '"') {
    const text = reader.quoted();
    operand = () => [text];
  } else {
    const word = readWord(reader);
    operand = () => [word];
  }
  reader.spaces();
  return operand;
}

function readWord(reader: Reader): unknown {
  let word = "";
  while (/[\w.+-]/.test(reader.next)) word += reader.take();
  if (word === "true" || word === "false") return word === "true";
  if (word === "" || Number.isNaN(Number(word))) throw new JsonPathError(`unrecognized operand ${word}`);
  return Number(word);
}

function compare(left: unknown, right: unknown, operator: Operator): boolean {
  if (operator === "==") return deepEqual(left, right);
  if (operator === "!=") return !deepEqual(left, right);
  if (typeof left !== typeof right || (typeof left !== "number" && typeof left !== "string")) return false;
  const [a, b] = [left, right as typeof left]; // cast: compared only when both have one type
  if (operator === "<") return a < b;
  if (operator === ">") return a > b;
  return operator === "<=" ? a <= b : a >= b;
}

import { type FieldError, formatFieldErrors, index, invalidValue, mapKey } from "../errors/field-error.ts";
import { badRequest } from "../errors/status-error.ts";
import type { LabelSelector as LabelSelectorObject } from "../meta/types.ts";
import { labelValueProblems, qualifiedNameProblems } from "../validation/qualified-name.ts";
import { type Token, tokenize } from "./lexer.ts";
import { listHas } from "./value-list.ts";

type Operator = "in" | "notin" | "=" | "==" | "!=" | "gt" | "lt" | "exists" | "!";

/** A requirement on one label. `values` are sorted and distinct. */
interface Requirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

type Labels = Readonly<Record<string, string>> | undefined | null;

const binaryOperators = ["in", "notin", "=", "==", "!=", "gt", "lt"] as const;

/**
 * An immutable label selector.
 * Source: k8s.io/apimachinery pkg/labels/selector.go
 */
export class LabelSelector {
  /** Matches every object. */
  static readonly everything = new LabelSelector([], false);
  /** Matches no object. */
  static readonly nothing = new LabelSelector([], true);

  /** Sorted by key. */
  readonly requirements: readonly Requirement[];
  readonly #nothing: boolean;
  #text: string | undefined;
  #index: Index | undefined;
  /** An object was matched. The index is made for the second one only: validation matches none, and some users match one. */
  #used = false;

  private constructor(requirements: readonly Requirement[], nothing: boolean) {
    this.requirements = requirements;
    this.#nothing = nothing;
  }

  /**
   * @param text as in `?labelSelector=` and `kubectl -l`: `app=web,tier in (a,b),!old,x>5`
   * @throws BadRequest with upstream's text
   */
  static parse(text: string): LabelSelector {
    const requirements = new Parser(text).parse();
    return requirements.length === 0 ? LabelSelector.everything : new LabelSelector(byKey(requirements), false);
  }

  /** Matches objects with all of these labels; an empty set matches everything. Keys and values are not validated. */
  static fromSet(labels: Labels): LabelSelector {
    const all = labels ?? {};
    // Object.entries of many takes several times as long as their keys.
    const requirements = Object.keys(all).map((key): Requirement => ({ key, operator: "=", values: [all[key]!] }));
    return requirements.length === 0 ? LabelSelector.everything : new LabelSelector(byKey(requirements), false);
  }

  /**
   * @param selector a selector of the API; undefined and null match nothing, `{}` matches everything
   * @throws BadRequest for an invalid operator, key or value
   */
  static fromObject(selector: LabelSelectorObject | undefined | null): LabelSelector {
    if (selector === undefined || selector === null) return LabelSelector.nothing;
    const requirements: Requirement[] = [];
    const equal = selector.matchLabels ?? {};
    for (const key of Object.keys(equal)) requirements.push(newRequirement(key, "=", [equal[key]!]));
    for (const { key, operator, values } of selector.matchExpressions ?? []) {
      const known = Object.hasOwn(objectOperators, operator) ? objectOperators[operator] : undefined;
      if (known === undefined) throw badRequest(`"${operator}" is not a valid label selector operator`);
      requirements.push(newRequirement(key, known, values ?? []));
    }
    return requirements.length === 0 ? LabelSelector.everything : new LabelSelector(byKey(requirements), false);
  }

  /**
   * As `fromObject`, for a selector in an object from a cache, which does not change. One of many requirements is remembered: some are used
   * for each event of each pod.
   */
  static ofCached(selector: LabelSelectorObject | undefined | null): LabelSelector {
    const known = selector && large.get(selector);
    if (known) return known;
    const made = LabelSelector.fromObject(selector);
    if (selector && made.requirements.length > fewRequirements) large.set(selector, made);
    return made;
  }

  /** A selector with requirements that are known to be valid. */
  static fromRequirements(requirements: readonly Requirement[]): LabelSelector {
    return requirements.length === 0 ? LabelSelector.everything : new LabelSelector(byKey(requirements), false);
  }

  /** True when the selector matches every object. */
  get empty(): boolean {
    return !this.#nothing && this.requirements.length === 0;
  }

  /** True when the labels meet every requirement; an empty selector matches everything. */
  matches(labels: Labels): boolean {
    if (this.#nothing) return false;
    if (this.requirements.length > fewRequirements && this.#used) {
      this.#index ??= newIndex(this.requirements);
      return matchesIndex(this.#index, labels);
    }
    this.#used = true;
    for (const requirement of this.requirements) if (!meets(requirement, labels)) return false;
    return true;
  }

  /** The conjunction of both selectors. */
  and(other: LabelSelector): LabelSelector {
    if (this.#nothing || other.#nothing) return LabelSelector.nothing;
    return LabelSelector.fromRequirements([...this.requirements, ...other.requirements]);
  }

  /** The only value that the first requirement on the label allows; undefined when it does not require one value. */
  requiresExact(key: string): string | undefined {
    const requirement = this.requirements.find((one) => one.key === key);
    if (requirement === undefined || requirement.values.length !== 1) return undefined;
    return requirement.operator === "=" || requirement.operator === "==" || requirement.operator === "in"
      ? requirement.values[0]
      : undefined;
  }

  /** The canonical form, which parses back to an equal selector. */
  toString(): string {
    this.#text ??= this.requirements.map(formatRequirement).join(",");
    return this.#text;
  }
}

/** Selectors with more requirements are matched through an index by key. */
const fewRequirements = 16;

/** Selectors of more than `fewRequirements`, by the object that they were made from. */
const large = new WeakMap<LabelSelectorObject, LabelSelector>();

/**
 * Requirements by key. A selector may have tens of thousands of requirements and be matched against thousands of objects
 * with few labels; with the index only the requirements on an object's own keys are evaluated.
 */
interface Index {
  readonly byKey: ReadonlyMap<string, readonly Requirement[]>;
  /** Keys that a matching object must have. */
  readonly needed: ReadonlySet<string>;
}

function newIndex(requirements: readonly Requirement[]): Index {
  const needed = requirements.filter(({ operator }) => !["!=", "notin", "!"].includes(operator)).map(({ key }) => key);
  const byKey = new Map(
    [...Map.groupBy(requirements, ({ key }) => key)].map(([key, own]) => {
      const isForbidding = ({ operator }: Requirement): boolean => operator === "!=" || operator === "notin";
      const forbidden = own.filter(isForbidding);
      const others = own.filter((requirement) => !isForbidding(requirement));
      const values = [...new Set(forbidden.flatMap((requirement) => requirement.values))];
      return [key, values.length === 0 ? others : [...others, { key, operator: "notin" as const, values }]];
    }),
  );
  return { byKey, needed: new Set(needed) };
}

function matchesIndex({ byKey, needed }: Index, labels: Labels): boolean {
  const keys = Object.keys(labels ?? {});
  if (needed.size > keys.length) return false;
  for (const key of needed) if (!Object.hasOwn(labels ?? {}, key)) return false;
  return keys.every((key) => byKey.get(key)?.every((requirement) => meets(requirement, labels)) ?? true);
}

const objectOperators: Readonly<Record<string, Operator>> = { In: "in", NotIn: "notin", Exists: "exists", DoesNotExist: "!" };

/** @throws BadRequest with all validation errors */
function newRequirement(key: string, operator: Operator, values: readonly string[]): Requirement {
  const errors = checkRequirement(key, operator, values);
  if (errors.length > 0) throw badRequest(formatFieldErrors(errors));
  return { key, operator, values: values.length < 2 ? values : [...new Set(values)].sort() };
}

/** Operators other than these have one value, by the form of their requirement. */
function checkRequirement(key: string, operator: Operator, values: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  const keyErrors = qualifiedNameProblems(key);
  if (keyErrors.length > 0) errors.push(invalidValue("key", key, keyErrors.join("; ")));
  const at = "values";
  switch (operator) {
    case "in":
    case "notin":
      if (values.length === 0) errors.push(invalidValue(at, values, "for 'in', 'notin' operators, values set can't be empty"));
      break;
    case "exists":
    case "!":
      if (values.length !== 0) errors.push(invalidValue(at, values, "values set must be empty for exists and does not exist"));
      break;
    case "gt":
    case "lt":
      for (const [i, value] of values.entries()) {
        if (parseInteger(value) === undefined) {
          errors.push(invalidValue(index(at, i), value, "for 'Gt', 'Lt' operators, the value must be an integer"));
        }
      }
  }
  for (const [i, value] of values.entries()) {
    const valueErrors = labelValueProblems(value);
    if (valueErrors.length > 0) errors.push(invalidValue(mapKey(index(at, i), key), value, valueErrors.join("; ")));
  }
  return errors;
}

function meets({ key, operator, values }: Requirement, labels: Labels): boolean {
  const value = labels !== undefined && labels !== null && Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "=":
    case "==":
    case "in":
      return value !== undefined && listHas(values, value);
    case "!=":
    case "notin":
      return value === undefined || !listHas(values, value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    default: {
      const left = value === undefined ? undefined : parseInteger(value);
      const right = parseInteger(values[0]!);
      if (left === undefined || right === undefined) return false;
      return operator === "gt" ? left > right : left < right;
    }
  }
}

function parseInteger(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]{1,30}$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function formatRequirement({ key, operator, values }: Requirement): string {
  switch (operator) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    case "in":
    case "notin":
      return `${key} ${operator} (${values.join(",")})`;
    case "gt":
      return `${key}>${values[0]}`;
    case "lt":
      return `${key}<${values[0]}`;
    default:
      return `${key}${operator}${values[0]}`;
  }
}

function byKey(requirements: readonly Requirement[]): Requirement[] {
  return [...requirements].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** Recursive descent parser. `in` and `notin` are identifiers except at the position of an operator. */
class Parser {
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  parse(): Requirement[] {
    const requirements: Requirement[] = [];
    for (;;) {
      const { type, text } = this.#peek();
      if (type === "end") return requirements;
      if (type !== "identifier" && type !== "!") throw badRequest(`found '${text}', expected: !, identifier, or 'end of string'`);
      requirements.push(this.#requirement());
      const next = this.#take();
      if (next.type === "end") return requirements;
      if (next.type !== ",") throw badRequest(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (after.type !== "identifier" && after.type !== "!")
        throw badRequest(`found '${after.text}', expected: identifier after ','`);
    }
  }

  #requirement(): Requirement {
    const negated = this.#peek().type === "!";
    if (negated) this.#take();
    const { type, text: key } = this.#take();
    if (type !== "identifier") throw broken(`found '${key}', expected: identifier`);
    const keyErrors = qualifiedNameProblems(key);
    if (keyErrors.length > 0) throw broken(formatFieldErrors([invalidValue("", key, keyErrors.join("; "))]));
    const next = this.#peek().type;
    if (negated) return checked(key, "!", []);
    if (next === "end" || next === ",") return checked(key, "exists", []);
    const operator = this.#operator();
    return checked(key, operator, operator === "in" || operator === "notin" ? this.#values() : [this.#value()]);
  }

  #operator(): Operator {
    const { type, text } = this.#takeRaw();
    if (type === ">") return "gt";
    if (type === "<") return "lt";
    if (type === "in" || type === "notin" || type === "=" || type === "==" || type === "!=") return type;
    throw broken(`found '${text}', expected: ${binaryOperators.join(", ")}`);
  }

  #values(): string[] {
    const open = this.#take();
    if (open.type !== "(") throw broken(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    if (first.type === ")") {
      this.#take();
      return [""];
    }
    if (first.type !== "identifier" && first.type !== ",")
      throw broken(`found '${first.text}', expected: ',', ')' or identifier`);
    const values = this.#list();
    this.#take(); // the parenthesis at which the list ends
    return values;
  }

  /** Values may be empty: `(a,,b)` includes "". */
  #list(): string[] {
    const values = new Set<string>();
    for (;;) {
      const { type, text } = this.#take();
      if (type === "identifier") {
        values.add(text);
        const next = this.#peek();
        if (next.type === ")") return [...values];
        if (next.type !== ",") throw broken(`found '${next.text}', expected: ',' or ')'`);
      } else if (type === ",") {
        if (values.size === 0) values.add("");
        const next = this.#peek().type;
        if (next === ")" || next === ",") values.add("");
        if (next === ")") return [...values];
      } else throw broken(`found '${text}', expected: ',', or identifier`);
    }
  }

  #value(): string {
    const next = this.#peek();
    if (next.type === "end" || next.type === ",") return "";
    const { type, text } = this.#take();
    if (type !== "identifier") throw broken(`found '${text}', expected: identifier`);
    return text;
  }

  #peek(): Token {
    return asValue(this.#tokens[this.#position] ?? end);
  }

  #take(): Token {
    return asValue(this.#takeRaw());
  }

  #takeRaw(): Token {
    return this.#tokens[this.#position++] ?? end;
  }
}

const end: Token = { type: "end", text: "" };
const broken = (message: string): Error => badRequest(`unable to parse requirement: ${message}`);

function asValue(token: Token): Token {
  return token.type === "in" || token.type === "notin" ? { type: "identifier", text: token.text } : token;
}

function checked(key: string, operator: Operator, values: readonly string[]): Requirement {
  const distinct = [...new Set(values)].sort();
  const errors = checkRequirement(key, operator, distinct);
  if (errors.length > 0) throw broken(formatFieldErrors(errors));
  return { key, operator, values: distinct };
}

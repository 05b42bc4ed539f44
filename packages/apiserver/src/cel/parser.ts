/**
 * Recursive-descent parser.
 * Source: cel-go v0.9 parser/parser.go, parser/gen/CEL.g4; error texts and error recovery follow ANTLR
 */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { type Expression, qualifiedName } from "./ast.ts";
import { isDeeperThan } from "./depth.ts";
import type { Issue } from "./issues.ts";
import { endOfInput, expectation, type Token, type TokenKind, tokenize } from "./lexer.ts";
import { bytesOf, numberOf, textOf } from "./literals.ts";
import { expandMacro } from "./macros.ts";

interface Parsed {
  /** Meaningless when there are issues. */
  readonly expression: Expression;
  readonly issues: readonly Issue[];
}

const longest = 100_000;
/** Maximum recursion of each grammar rule. */
const mostLevels = 250;
/** Maximum nesting of all rules together. */
const mostLevelsOfAll = 500;

/** Never throws; syntax errors are returned as issues. */
export function parse(text: string): Parsed {
  const size = [...text].length;
  if (size > longest) {
    const message = `expression code point size exceeds limit: size: ${size}, limit ${longest}`;
    return { expression: nothing(0), issues: [{ at: undefined, message }] };
  }
  const { tokens, issues } = tokenize(text);
  return new Parser(tokens, [...issues]).parse();
}

const nothing = (at: number): Expression => ({ kind: "constant", at, value: null });

const reserved: ReadonlySet<string> = new Set(
  "as break const continue else false for function if import in let loop package namespace null return true var void while".split(
    " ",
  ),
);

/** Tokens that can start an expression. */
const openers: readonly TokenKind[] = "[ { ( . - ! true false null NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER".split(" ");

/** Tokens that can follow an operand in any context. */
const followers: readonly TokenKind[] = "== != in < <= >= > && || [ { . - ? + * / %".split(" ");

const relations: ReadonlyMap<TokenKind, string> = new Map([
  ...["==", "!=", "<", "<=", ">=", ">"].map((kind) => [kind, `_${kind}_`] as const),
  ["in", "@in"],
]);
const sums: ReadonlyMap<TokenKind, string> = new Map(["+", "-"].map((kind) => [kind, `_${kind}_`]));
const products: ReadonlyMap<TokenKind, string> = new Map(["*", "/", "%"].map((kind) => [kind, `_${kind}_`]));
/** Literals that may include a minus sign. */
const numbers: readonly TokenKind[] = ["NUM_FLOAT", "NUM_INT"];

/** Aborts a grammar rule after a syntax error that was already reported. */
class Stuck extends Error {}
class TooDeep extends Error {}

type Rule = "expression" | "relation" | "calculation" | "member";

class Parser {
  readonly #tokens: readonly Token[];
  readonly #issues: Issue[];
  readonly #depths: Record<Rule, number> = { expression: 0, relation: 0, calculation: 0, member: 0 };
  /** Closing tokens of the open brackets, innermost last. */
  readonly #enders: TokenKind[] = [endOfInput];
  #next = 0;
  /** After a syntax error, further ones are suppressed until a token matches again. */
  #isRecovering = false;

  constructor(tokens: readonly Token[], issues: Issue[]) {
    this.#tokens = tokens;
    this.#issues = issues;
  }

  parse(): Parsed {
    let expression = nothing(0);
    try {
      expression = this.#expression();
      this.#expect(endOfInput);
      if (isDeeperThan(mostLevelsOfAll, expression)) throw new TooDeep();
    } catch (err) {
      if (err instanceof TooDeep) {
        this.#issues.push({ at: undefined, message: `expression recursion limit exceeded: ${mostLevels}` });
      } else if (!(err instanceof Stuck)) throw err;
    }
    return { expression, issues: this.#issues };
  }

  get #token(): Token {
    return this.#tokens[this.#next]!;
  }

  get #kindAfter(): TokenKind {
    return this.#tokens[this.#next + 1]?.kind ?? endOfInput;
  }

  #take(): Token {
    const token = this.#token;
    if (token.kind !== endOfInput) this.#next++;
    this.#isRecovering = false;
    return token;
  }

  #takeIf(kind: TokenKind): Token | undefined {
    return this.#token.kind === kind ? this.#take() : undefined;
  }

  #reportSyntax(message: string, at = this.#token.at): void {
    if (!this.#isRecovering) this.#issues.push({ at, message: `Syntax error: ${message}` });
    this.#isRecovering = true;
  }

  #report(at: number, message: string): Expression {
    this.#issues.push({ at, message });
    return nothing(at);
  }

  /** Consumes a token of this kind. Recovers from a single extraneous or missing token after reporting it. @throws Stuck */
  #expect(kind: TokenKind, also: readonly TokenKind[] = []): Token {
    const token = this.#token;
    if (token.kind === kind) return this.#take();
    if (this.#kindAfter === kind && token.kind !== endOfInput) {
      this.#reportSyntax(`extraneous input '${token.text}' expecting ${expectation([kind])}`);
      this.#next++;
      return this.#take();
    }
    const canFollow = kind !== ":" && kind !== endOfInput && (this.#canFollow(token.kind) || also.includes(token.kind));
    if (canFollow) {
      this.#reportSyntax(`missing ${expectation([kind])} at '${token.text}'`);
      return { kind, text: "", at: token.at };
    }
    this.#reportSyntax(`mismatched input '${token.text}' expecting ${expectation([kind])}`);
    throw new Stuck();
  }

  #canFollow(kind: TokenKind): boolean {
    return followers.includes(kind) || this.#enders.includes(kind);
  }

  /** Checks the kind of the current token; skips a single extraneous token after reporting it. @throws Stuck */
  #expectOneOf(kinds: readonly TokenKind[]): void {
    const token = this.#token;
    if (kinds.includes(token.kind)) return;
    const expected = expectation(kinds);
    if (token.kind !== endOfInput && kinds.includes(this.#kindAfter)) {
      this.#reportSyntax(`extraneous input '${token.text}' expecting ${expected}`);
      this.#next++;
      this.#isRecovering = false;
      return;
    }
    this.#reportSyntax(`mismatched input '${token.text}' expecting ${expected}`);
    throw new Stuck();
  }

  /** Recovers from Stuck: skips to a token that can follow an operand and returns `otherwise`. */
  #attempt<T>(parse: () => T, otherwise: T): T {
    try {
      return parse();
    } catch (err) {
      if (!(err instanceof Stuck)) throw err;
      while (!this.#canFollow(this.#token.kind) && this.#token.kind !== endOfInput) this.#next++;
      return otherwise;
    }
  }

  /** @param levels change of the depth of the rule; negative when leaving it @throws TooDeep */
  #deeper(rule: Rule, levels = 1): void {
    this.#depths[rule] += levels;
    if (this.#depths[rule] > mostLevels) throw new TooDeep();
  }

  #within<T>(ender: TokenKind, parse: () => T): T {
    this.#enders.push(ender);
    try {
      return parse();
    } finally {
      this.#enders.pop();
    }
  }

  #expression(): Expression {
    this.#deeper("expression");
    const condition = this.#logical("||", () => this.#logical("&&", () => this.#relation()));
    const mark = this.#takeIf("?");
    let expression = condition;
    if (mark !== undefined) {
      const yes = this.#within(":", () => this.#logical("||", () => this.#logical("&&", () => this.#relation())));
      this.#expect(":");
      expression = { kind: "call", at: mark.at, name: "_?_:_", args: [condition, yes, this.#expression()] };
    }
    this.#deeper("expression", -1);
    return expression;
  }

  /** Builds a balanced tree from a chain of `&&` or `||`. Source: parser/helper.go balancer */
  #logical(kind: "&&" | "||", operand: () => Expression): Expression {
    const terms = [operand()];
    const at: number[] = [];
    for (let operator = this.#takeIf(kind); operator !== undefined; operator = this.#takeIf(kind)) {
      at.push(operator.at);
      terms.push(operand());
    }
    const tree = (first: number, last: number): Expression => {
      const middle = (first + last + 1) >> 1;
      const left = middle === first ? terms[middle] : tree(first, middle - 1);
      const right = middle === last ? terms[middle + 1] : tree(middle + 1, last);
      const args = [left!, right!];
      return { kind: "call", at: at[middle]!, name: `_${kind}_`, args };
    };
    return at.length === 0 ? terms[0]! : tree(0, at.length - 1);
  }

  #relation(): Expression {
    return this.#chain("relation", relations, () =>
      this.#chain("calculation", sums, () => this.#chain("calculation", products, () => this.#unary())),
    );
  }

  #chain(rule: Rule, names: ReadonlyMap<TokenKind, string>, operand: () => Expression): Expression {
    let levels = 0;
    let left = operand();
    for (let name = names.get(this.#token.kind); name !== undefined; name = names.get(this.#token.kind)) {
      const { at } = this.#take();
      levels++;
      this.#deeper(rule);
      left = { kind: "call", at, name, args: [left, operand()] };
    }
    this.#deeper(rule, -levels);
    return left;
  }

  #unary(): Expression {
    return this.#attempt(() => this.#signed(), nothing(this.#token.at));
  }

  /** Unary operators: an even number of them cancels out. A single minus before a number is part of the literal. */
  #signed(): Expression {
    this.#expectOneOf(openers);
    const { kind, at } = this.#token;
    if (kind !== "-" && kind !== "!") return this.#member();
    let count = 0;
    while (this.#tokens[this.#next + count]?.kind === kind) count++;
    const after = this.#tokens[this.#next + count]!;
    if (kind === "-" && count === 1 && numbers.includes(after.kind)) return this.#member();
    if (kind === "-" && (after.kind === "!" || !openers.includes(after.kind))) {
      this.#next += count - 1;
      const text = after.kind === endOfInput ? "-" : `-${after.text}`;
      this.#reportSyntax(`no viable alternative at input '${text}'`, after.at);
      throw new Stuck();
    }
    for (let i = 0; i < count; i++) this.#take();
    this.#expectOneOf(openers);
    const operand = this.#member();
    return count % 2 === 0 ? operand : { kind: "call", at, name: `${kind}_`, args: [operand] };
  }

  #member(): Expression {
    let levels = 0;
    let expression = this.#primary();
    for (;;) {
      const operator = this.#takeIf(".") ?? this.#takeIf("[") ?? this.#takeIf("{");
      if (operator === undefined) break;
      levels++;
      this.#deeper("member");
      expression = this.#suffix(expression, operator);
    }
    this.#deeper("member", -levels);
    return expression;
  }

  #suffix(operand: Expression, { kind, at }: Token): Expression {
    if (kind === "[") {
      const index = this.#within("]", () => this.#expression());
      this.#expect("]");
      return { kind: "call", at, name: "_[_]", args: [operand, index] };
    }
    if (kind === "{") return this.#message(operand, at);
    const { text: field } = this.#expect("IDENTIFIER", ["("]);
    const open = this.#takeIf("(");
    if (open === undefined) return { kind: "select", at, operand, field, isTest: false };
    return this.#expanded({ kind: "call", at: open.at, name: field, target: operand, args: this.#list(")") });
  }

  #expanded(call: Expression & { kind: "call" }): Expression {
    const expansion = expandMacro(call);
    if (expansion === undefined) return call;
    return "expression" in expansion
      ? expansion.expression
      : this.#report(expansion.issue.at ?? call.at, expansion.issue.message);
  }

  #message(type: Expression, at: number): Expression {
    const name = qualifiedName(type);
    if (name === undefined) this.#report(type.at, "expected a qualified name");
    const values: Expression[] = [];
    this.#entries(["IDENTIFIER"], () => {
      this.#take();
      this.#expect(":");
      values.push(this.#expression());
    });
    this.#expect("}");
    return { kind: "message", at, type: name ?? "", values };
  }

  /** Entries between braces, optionally with a trailing comma. @param openers tokens that can start an entry */
  #entries(openers: readonly TokenKind[], entry: () => void): void {
    this.#within("}", () => {
      this.#expectOneOf([...openers, "}", ","]);
      this.#attempt(() => {
        while (openers.includes(this.#token.kind)) {
          entry();
          if (!openers.includes(this.#kindAfter) || this.#takeIf(",") === undefined) break;
        }
      }, undefined);
      this.#takeIf(",");
    });
  }

  /** Comma-separated expressions and the closing token; a list, but not an argument list, may have a trailing comma. */
  #list(ender: ")" | "]"): Expression[] {
    const items: Expression[] = [];
    this.#within(ender, () => {
      this.#expectOneOf([...openers, ender, ...(ender === "]" ? [","] : [])]);
      if (!openers.includes(this.#token.kind)) return;
      do items.push(this.#expression());
      while ((ender === ")" || openers.includes(this.#kindAfter)) && this.#takeIf(",") !== undefined);
    });
    if (ender === "]") this.#takeIf(",");
    this.#expect(ender);
    return items;
  }

  #primary(): Expression {
    this.#expectOneOf(openers);
    const token = this.#take();
    const { kind, text, at } = token;
    switch (kind) {
      case "(": {
        const inner = this.#within(")", () => this.#expression());
        this.#expect(")");
        return inner;
      }
      case "[":
        return { kind: "list", at, items: this.#list("]") };
      case "{":
        return this.#map(at);
      case ".":
        return this.#name(this.#expect("IDENTIFIER"), ".");
      case "IDENTIFIER":
        return this.#name(token, "");
      case "true":
      case "false":
        return { kind: "constant", at, value: kind === "true" };
      case "null":
        return { kind: "constant", at, value: null };
      case "STRING":
        return this.#literal(at, () => textOf(text));
      case "BYTES":
        return this.#literal(at, () => bytesOf(text));
      case "-": {
        const number = this.#token;
        if (!numbers.includes(number.kind)) {
          this.#reportSyntax(`no viable alternative at input '-${number.kind === endOfInput ? "" : number.text}'`);
          throw new Stuck();
        }
        this.#take();
        return this.#literal(at, () => numberOf(number.kind, `-${number.text}`));
      }
      default:
        return this.#literal(at, () => numberOf(kind, text));
    }
  }

  #literal(at: number, read: () => string | Uint8Array | ReturnType<typeof numberOf>): Expression {
    try {
      return { kind: "constant", at, value: read() };
    } catch (err) {
      return this.#report(at, messageOf(err));
    }
  }

  #name({ text, at }: Token, dot: string): Expression {
    const isReserved = reserved.has(text);
    if (isReserved) this.#report(at, `reserved identifier: ${text}`);
    const open = this.#takeIf("(");
    if (open !== undefined) {
      const args = this.#list(")");
      return isReserved ? nothing(at) : this.#expanded({ kind: "call", at: open.at, name: `${dot}${text}`, args });
    }
    return isReserved ? nothing(at) : { kind: "name", at, name: `${dot}${text}` };
  }

  #map(at: number): Expression {
    const entries: { key: Expression; value: Expression }[] = [];
    this.#entries(openers, () => {
      const key = this.#within(":", () => this.#expression());
      this.#expect(":");
      entries.push({ key, value: this.#expression() });
    });
    this.#expect("}");
    return { kind: "map", at, entries };
  }
}

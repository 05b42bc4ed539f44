import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { Budget, BudgetExceeded } from "./budget.ts";
import { compile } from "./program.ts";
import { dyn, int, string, type Type } from "./types.ts";
import { Failure, type Value } from "./values.ts";

function run(text: string, variables: Readonly<Record<string, readonly [Type, Value]>> = {}): Value {
  const entries = Object.entries(variables);
  const program = compile(text, new Map(entries.map(([name, [type]]) => [name, type])));
  if ("fault" in program) throw new Error(program.fault);
  return atOnce(program.evaluate(new Map(entries.map(([name, [, value]]) => [name, value])), new Budget(100_000)));
}

const most = 2n ** 63n - 1n;
const int64 = fc.bigInt({ min: -most - 1n, max: most });
const text = fc.string({ unit: "binary", maxLength: 12 });

test("arithmetic on ints is that of whole numbers, or an error beyond 64 bits", () => {
  const operators: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "%": (a, b) => a % b,
  };
  fc.assert(
    fc.property(int64, int64, fc.constantFrom(...Object.keys(operators)), (a, b, operator) => {
      const result = run(`a ${operator} b`, { a: [int, a], b: [int, b] });
      if ((operator === "/" || operator === "%") && b === 0n) return result instanceof Failure;
      const exact = (operators[operator] as (a: bigint, b: bigint) => bigint)(a, b);
      return exact > most || exact < -most - 1n ? result instanceof Failure : result === exact;
    }),
  );
});

test("an int that is written is the int that is read", () => {
  fc.assert(fc.property(int64, (value) => run(String(value)) === value));
  fc.assert(fc.property(int64, (value) => run(`int(string(${value}))`) === value));
});

test("a text that is written with escapes is the text that is read", () => {
  const escaped = (value: string): string =>
    [...value].map((each) => `\\U${(each.codePointAt(0) as number).toString(16).padStart(8, "0")}`).join("");
  fc.assert(fc.property(text, (value) => run(`'${escaped(value)}'`) === value));
  fc.assert(fc.property(text, (value) => run("s.split('').join()", { s: [string, value] }) === value));
  fc.assert(fc.property(text, (value) => run("string(bytes(s))", { s: [string, value] }) === value));
});

test("texts are ordered by their bytes", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const order = Buffer.compare(Buffer.from(a), Buffer.from(b));
      return run("a < b", { a: [string, a], b: [string, b] }) === order < 0;
    }),
  );
});

test("the substring at the result of indexOf starts with the searched text", () => {
  fc.assert(
    fc.property(text, text, text, (before, part, after) => {
      const s = `${before}${part}${after}`;
      const at = run("s.indexOf(p)", { s: [string, s], p: [string, part] });
      if (at instanceof Failure) return s === "";
      return run("s.substring(at).startsWith(p)", { s: [string, s], p: [string, part], at: [int, at] }) === true;
    }),
  );
});

/** Operands that are true, false or an error. */
const outcome = fc.constantFrom("true", "false", "1 / 0 > 0", "dyn(1)");

test("the order of operands does not matter to && and ||, but for which error is reported", () => {
  const kind = (value: Value): unknown => (value instanceof Failure ? "fails" : value);
  fc.assert(
    fc.property(outcome, outcome, fc.constantFrom("&&", "||"), (a, b, operator) => {
      assert.equal(kind(run(`${a} ${operator} ${b}`)), kind(run(`${b} ${operator} ${a}`)));
    }),
  );
  fc.assert(
    fc.property(fc.array(outcome, { minLength: 1, maxLength: 9 }), (all) => {
      const decided = all.includes("false") ? false : all.every((each) => each === "true") ? true : "fails";
      assert.equal(kind(run(all.join(" && "))), all.length === 1 && all[0] === "dyn(1)" ? 1n : decided);
    }),
  );
});

const word = fc.constantFrom(
  ..."self x 1 2u 1.5 'a' b'a' true null ( ) [ ] { } , . : ? ! - + * / % < <= == != in && || all exists map filter has size matches type int".split(
    " ",
  ),
);

test("random expressions return a value or an error within a bounded time", () => {
  const either = fc.oneof(
    fc.array(word, { maxLength: 30 }).map((words) => words.join(" ")),
    fc.string({ maxLength: 60 }),
  );
  fc.assert(
    fc.property(either, (expression) => {
      const program = compile(expression, new Map([["self", dyn]]));
      if ("fault" in program) return /^ERROR: <input>:-?\d+:\d+: /.test(program.fault);
      try {
        atOnce(program.evaluate(new Map([["self", 3n]]), new Budget(10_000)));
      } catch (err) {
        assert.ok(err instanceof BudgetExceeded, String(err));
      }
      return true;
    }),
    { numRuns: process.env["COX_TEST_LONG"] ? 50_000 : 2000 },
  );
});

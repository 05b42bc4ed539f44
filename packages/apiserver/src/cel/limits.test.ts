/** Cost limits: no expression blocks the event loop. Expensive work is charged to the budget, deep nesting is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { Budget, BudgetExceeded } from "./budget.ts";
import { MadeList } from "./collections.ts";
import { tokenize } from "./lexer.ts";
import { compile } from "./program.ts";
import { listOf, string } from "./types.ts";
import { Failure, type Value } from "./values.ts";

const most = 1_000_000;

function run(expression: string, s = ""): { readonly value: Value | undefined; readonly spent: number } {
  const program = compile(expression, new Map([["s", string]]));
  assert.ok(!("fault" in program), "fault" in program ? program.fault.slice(0, 200) : "");
  const budget = new Budget(most);
  try {
    const value = atOnce(program.evaluate(new Map([["s", s]]), budget));
    return { value, spent: most - budget.left };
  } catch (err) {
    assert.ok(err instanceof BudgetExceeded, String(err));
    return { value: undefined, spent: most };
  }
}

for (const expression of [
  "'' < s",
  "s > ''",
  "s in {'a': 1}",
  "{'a': 1}[s] == 1",
  "{s: 1} == {}",
  "size(s) == 1",
  "timestamp(0).getHours(s) == 1",
  "timestamp(0).getHours(s + ':') == 1",
])
  test(`a long text has its price: ${expression}`, () => assert.ok(run(expression, "x".repeat(500_000)).spent >= 50_000));

test("looking up a time zone has its price, and a pattern that is used again is compiled once", () => {
  assert.ok(run("timestamp(0).getHours('UTC') == 0").spent >= 1000);
  const twice = run("['a', 'a'].all(x, x.matches('(a{100}){10}') || true)").spent;
  assert.ok(twice < 1.5 * run("['a'].all(x, x.matches('(a{100}){10}') || true)").spent, String(twice));
});

test("what is compared or put in place of something has its price", () => {
  const long = "x".repeat(10_000);
  for (const [expression, least] of [
    ["s.contains(s.substring(1))", 900_000],
    ["s.replace('x', 'yyyyyyyyyy') == ''", 10_000],
    ["s.matches('x*y') || true", 2_500],
  ] as const) {
    const { spent } = run(expression, long);
    assert.ok(spent >= least, `${expression}: ${spent}`);
  }
});

test("a budget may be spent to its last step", () => {
  const budget = new Budget(2);
  budget.spend();
  budget.spend();
  assert.throws(() => budget.spend(), BudgetExceeded);
});

for (const expression of [
  "items.all(x, items.all(y, items.all(z, x + y != z + 'N')))",
  "items.map(x, items.filter(y, items.exists(z, x == z + y))).size() > 0",
  "items.all(x, (items.exists(y, y == x) ? items : []).all(z, [items.exists_one(y, y == z)].size() == 1))",
  "items.all(x, !{x: items.all(y, items.all(z, z != y + x))}[x])",
])
  test(`a loop that uses up the budget yields every few milliseconds: ${expression}`, () => {
    const program = compile(expression, new Map([["items", listOf(string)]]));
    assert.ok(!("fault" in program));
    const budget = new Budget(most);
    const items = new MadeList(Array.from({ length: 300 }, (_, i) => `t${i}`));
    const steps = program.evaluate(new Map([["items", items]]), budget);
    let longest = 0;
    let pauses = 0;
    assert.throws(() => {
      for (let before = budget.left; !steps.next().done; before = budget.left) {
        longest = Math.max(longest, before - budget.left);
        pauses++;
      }
    }, BudgetExceeded);
    assert.ok(pauses <= most / 30_000, `${pauses} pauses`);
    assert.ok(longest >= 30_000 && longest < 40_000, `${longest} steps of the budget between two pauses`);
  });

for (const [pattern, weight] of [
  ["(a{100}){10}", 1000],
  ["((a|b)[)(]{2,50}){20}", 1000],
  ["[[]{1000}", 1000],
  ["(\\\\){500}", 500],
  ["(a", 1],
  ["(?i)[\\pL\\pN]", 100],
  [`${"(".repeat(200)}a${"){1000}".repeat(200)}{1}`, 1e5],
] as const)
  test(`a pattern costs what it becomes: ${pattern}`, () =>
    assert.ok(run(`'a'.matches(r'${pattern}') || true`).spent >= weight * 10));

test("a pattern of usual size costs little", () => {
  const { value, spent } = run("'a-b'.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')");
  assert.equal(value, true);
  assert.ok(spent < 5000, String(spent));
});

test("converting 200,000 digits that do not end as a number takes linear time", () => {
  const tookMs = cpuMsOf(() => assert.ok(run("double(s) > 1.0", `${"1".repeat(200_000)}x`).value instanceof Failure));
  assert.ok(tookMs < 5000, `${tookMs} ms`);
});

test("tokenizing many unterminated quotes stops after 200 issues", () => {
  assert.equal(tokenize('\\"""\n'.repeat(1000)).issues.length, 200);
});

const chained = (chain: string, times: number): string => `${"(".repeat(times)}s${`${chain})`.repeat(times)} == s`;

for (const chain of [" + s".repeat(240), ".a".repeat(240), "[0]".repeat(240), ".map(x, x)".repeat(20)])
  test(`chains within chains are refused when they are too deep: ${chain.slice(0, 20)}`, () => {
    const program = compile(chained(chain, 100), new Map([["s", string]]));
    assert.ok("fault" in program);
    assert.equal(program.fault, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
  });

test("chains up to the maximum depth are accepted", () => {
  assert.equal(run(chained(" + s".repeat(240), 2)).value, true);
  assert.equal(run(`${"(".repeat(240)}s${")".repeat(240)} == s`).value, true);
});

test("lists within lists are looked at as deep as expressions go", () => {
  const nested = (levels: number): Value | undefined =>
    run(
      `[[${Array(levels).fill(1)}].map(x, size(__result__) == 0 ? dyn([]) : dyn([__result__[size(__result__) - 1]]))]` +
        `.all(all, all[${levels - 1}] == all[${levels - 1}])`,
    ).value;
  assert.equal(nested(400), true);
  assert.equal(nested(9000), undefined);
});

test("many lists beside each other are not deep", () => {
  const side = `[1]${".map(x, [x])".repeat(3)}`;
  assert.equal(run(`[${Array(300).fill(1)}].all(n, ${side} == ${side})`).value, true);
});

test("types that double with each step are refused before they are large", () => {
  const program = compile(`[1]${".map(a, {a: a})".repeat(12)}.all(x, x == x)`, new Map());
  assert.deepEqual(program, { fault: "ERROR: <input>:-1:0: the types of the expression are too large" });
});

const characters = 99_000;

for (const [name, expression] of [
  ["a long list", `[${"1,".repeat(characters / 2)}1].size() > 0`],
  ["undeclared names", `[${"x,".repeat(characters / 2)}x].size() > 0`],
  ["lists in a list", `[${"[1],".repeat(characters / 4)}[1]].size() > 0`],
  ["comparisons", `${"1==1&&".repeat(characters / 6)}true`],
  ["macros", `[${"[1].all(x,x>0),".repeat(characters / 15)}true].size() > 0`],
  ["signs", `${"-".repeat(characters)}1 > 0`],
  ["open parentheses", "(".repeat(characters)],
  ["text that is no token", "'a\n".repeat(characters / 3)],
  ["too long a text", "x".repeat(3_000_000)],
] as const)
  test(`the longest expression is compiled in a tenth of a second: ${name}`, () => {
    const tookMs = cpuMsOf(() => compile(expression, new Map([["s", string]])));
    assert.ok(tookMs < 300, `${tookMs} ms`);
  });

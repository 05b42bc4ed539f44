import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../../testing/cpu-time.ts";
import { instructionsOf, mostInstructions, mostMatchSteps, Pattern, PatternError } from "./pattern.ts";

/** CPU time limit: 100 ms with slack for slower or loaded machines. */
const mostMs = 300;

test("matches anywhere in the text, as Go does", () => {
  assert.equal(new Pattern("b+").matches("abbc"), true);
  assert.equal(new Pattern("^b+$").matches("abbc"), false);
  assert.equal(new Pattern("\\pL{2}").matches("1é2"), false);
  assert.equal(new Pattern(`^(?:a|b){${600}}$`).matches("ab".repeat(300)), true);
  assert.equal(new Pattern(`^(?:a|b){${600}}$`).matches("ab".repeat(299)), false);
});

test("syntax that is not RE2's is an error in Go's words", () => {
  assert.throws(() => new Pattern("a("), { message: "error parsing regexp: missing closing ): `a(`" });
  assert.throws(() => new Pattern("(?=a)"), PatternError);
});

for (const [pattern, instructions] of [
  ["abc", 3],
  ["(a{100}){10}", 1000],
  ["((a|b)[)(]{2,50}){20}", 1000],
  ["[[]{1000}", 1000],
  ["(\\\\){500}", 500],
  ["a{0}b{3,}", 4],
  ["(a", 1],
  [`[${"a".repeat(200)}]`, 200],
  ["(?i)[\\pL\\pN]", 60],
  [`${"(".repeat(200)}a${"){1000}".repeat(200)}{1}`, 1e5],
] as const)
  test(`repetitions are counted as often as they repeat: ${pattern.slice(0, 40)}`, () => {
    assert.ok(instructionsOf(pattern) >= instructions, `${instructionsOf(pattern)}`);
  });

for (const [name, pattern] of [
  ["repeated repetitions", `${"(a?){1000}".repeat(10)}a{1000}`],
  ["a long one", "a?".repeat(50_000)],
  ["a long class", `[${"ab".repeat(50_000)}]`],
  ["groups in groups", `${"(".repeat(900)}a${"){2}".repeat(900)}`],
  ["Unicode classes", "\\pL".repeat(1000)],
  ["nothing but repetitions", `a${"{1000}".repeat(1000)}`],
  ["brackets that nothing ends", "[".repeat(1_000_000)],
] as const)
  test(`too large a pattern is refused before it is compiled: ${name}`, () => {
    const tookMs = cpuMsOf(() => assert.throws(() => new Pattern(pattern), PatternError));
    assert.ok(tookMs < mostMs, `${tookMs} ms`);
  });

for (const [name, pattern] of [
  ["optional parts", "a?".repeat(mostInstructions / 2)],
  ["alternatives", Array.from({ length: 700 }, (_, i) => `[a-z]${i}.{3}`).join("|")],
  ["classes", `(?i)${"[a-z\\pL]".repeat(180)}`],
] as const)
  test(`the largest pattern is compiled in a tenth of a second: ${name}`, () => {
    const tookMs = cpuMsOf(() => new Pattern(pattern));
    assert.ok(tookMs < mostMs, `${tookMs} ms`);
  });

const letters = (count: number): string => {
  let state = 7;
  return Array.from({ length: count }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return state & 64 ? "a" : "b";
  }).join("");
};

for (const [name, pattern] of [
  ["optional parts before the same again", "(a?){900}a{900}[^b]$"],
  ["a hundred places to begin", "(a|b)*a(a|b){100}[^ab]"],
  ["a thousand places to begin", "(a|b)*a(a|b){1000}[^ab]"],
  ["alternatives of each letter", "^(?:[ab]*a|[ab]*b|[ab]*c)*[^a-z]$"],
  ["word boundaries", "(?:\\b[ab]|\\B[ab])*a[ab]{50}[^ab]"],
  ["anything, again and again", "(?:.*a.*b){700}[^ab]"],
  ["a small one", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"],
] as const)
  test(`the longest text that may be matched takes a tenth of a second: ${name}`, () => {
    const compiled = new Pattern(pattern);
    const length = Math.floor(mostMatchSteps / compiled.instructions);
    const text = letters(length);
    assert.ok(compiled.canMatch(text));
    assert.ok(!compiled.canMatch(`${text}a`));
    const tookMs = cpuMsOf(() => compiled.matches(text));
    assert.ok(tookMs < mostMs, `${tookMs} ms for ${length} characters and ${compiled.instructions} instructions`);
  });

/** The search for faults, with targets that have some. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { badRequest, internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import { type Find, fuzz } from "./fuzzer.ts";
import { faultOf, judge } from "./judge.ts";
import { minimised } from "./minimise.ts";
import { belowOf } from "./random.ts";
import { isDeclared, type Target } from "./target.ts";

class Declared extends Error {}
class Derived extends Declared {}

test("a target's errors are those that it declares, and refusals with a 4xx code", () => {
  const declares = [Declared];
  for (const [err, want] of [
    [new Declared(), true],
    [new Derived(), false],
    [new Error("x"), false],
    [badRequest("x"), true],
    [internalError("x"), false],
    ["text", false],
  ] as const)
    assert.equal(isDeclared(err, { declares }), want, String(err));
  assert.equal(isDeclared(new Declared(), {}), false);
});

const failing = (err: unknown): Target => ({
  name: "t",
  seeds: [],
  declares: [Declared],
  run() {
    throw err;
  },
});

test("what a target throws is a fault unless it is declared, also when it comes late", async () => {
  const input = Buffer.from("x");
  assert.equal(await judge(failing(new Declared()), input), undefined);
  assert.equal(await judge({ ...failing(""), run: () => {} }, input), undefined);
  assert.deepEqual(await judge(failing("text"), input), { signature: "no error", text: "throws text" });
  const late = { ...failing(""), run: () => Promise.reject(new RangeError("late")) };
  const fault = await judge(late, input);
  assert.match(fault?.signature ?? "", /^RangeError at tools\/fuzz\/src\/fuzzer\.test\.ts:\d+$/);
  assert.match(fault?.text ?? "", /^RangeError: late\n/);
});

test("a target that takes more than 100 ms of CPU is slow, one that only waits is not", async (t) => {
  let nowMs = 0;
  let cpuMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  t.mock.method(process, "threadCpuUsage", (before?: { user: number; system: number }) => {
    const user = cpuMs * 1_000 - (before?.user ?? 0);
    return { user, system: 0 };
  });
  const takes = (wall: number, ...cpu: number[]): Target => {
    const left = [...cpu];
    const run = (): void => {
      nowMs += wall;
      cpuMs += left.length > 1 ? left.shift()! : (left[0] ?? 0);
    };
    return { name: "t", seeds: [], run };
  };
  const input = Buffer.from("x");
  assert.equal(await judge(takes(99, 500), input), undefined, "the first look is at the clock");
  assert.equal(await judge(takes(101, 5), input), undefined);
  assert.equal(await judge(takes(200, 500, 300, 200, 99), input), undefined, "fast once");
  assert.equal(await judge(takes(200, 500, 100), input), undefined);
  assert.deepEqual(await judge(takes(200, 500, 150, 120, 130), input), { signature: "slow", text: "takes 120 ms of CPU" });
});

test("faults are the same by their error and the first line of this repository", () => {
  const err = new TypeError("x");
  err.stack = [
    "TypeError: x",
    "at a (node:internal/x:1)",
    "at b (file:///r/packages/a/src/b.ts:7:1)",
    "at c (/r/packages/a/src/c.ts:8:1)",
  ].join("\n");
  assert.deepEqual(faultOf(err), { signature: "TypeError at packages/a/src/b.ts:7", text: err.stack });
  err.stack = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  assert.deepEqual(faultOf(err), { signature: "TypeError at ", text: err.stack.split("\n").slice(0, 12).join("\n") });
});

test("an input becomes as short as its property allows, within the number of looks", async () => {
  const has = (text: string) => async (candidate: Buffer) => text.split("").every((letter) => candidate.includes(letter));
  assert.equal((await minimised(Buffer.from("xxxaxxxxxbxxxx"), has("ab"))).toString(), "ab");
  assert.equal((await minimised(Buffer.from("abc"), async () => true)).length, 0);
  const whole = Buffer.from("x".repeat(100));
  assert.equal(await minimised(whole, async () => false), whole);
  let looks = 0;
  const counting = async (): Promise<boolean> => ++looks < 0;
  await minimised(whole, counting, 5);
  assert.equal(looks, 5);
});

test("random numbers follow from the seed and stay below their limit", () => {
  const numbers = (seed: number): number[] =>
    Array.from({ length: 200 }, () => belowOf(seed)(1)).concat(Array.from({ length: 200 }, belowOf(seed).bind(undefined, 3)));
  assert.deepEqual(numbers(7), numbers(7));
  assert.ok(numbers(7).every((number) => Number.isInteger(number) && number >= 0 && number < 3));
  const below = belowOf(7);
  assert.deepEqual(new Set(Array.from({ length: 100 }, () => below(3))), new Set([0, 1, 2]));
});

test("each fault is found once, in its shortest input; every input begins with the watchdog", async () => {
  const begun: Buffer[] = [];
  const finds: Find[] = [];
  const target: Target = {
    name: "t",
    seeds: ["good", "some bad one", Buffer.from("another bad one"), "worse"],
    run(input) {
      if (input.includes("bad")) throw new Error("bad");
      if (input.includes("worse")) throw new TypeError("worse");
    },
  };
  const progress = { begins: (input: Buffer) => void begun.push(input), finds: (find: Find) => void finds.push(find) };
  const { inputs, corpus, characters } = await fuzz("none/t", target, { seed: 1, most: 100, cpuSeconds: 60 }, progress);
  assert.deepEqual([inputs, corpus, characters], [100, [], 0]);
  assert.deepEqual(
    finds.map(({ target: name, input, fault }) => [name, input.toString(), fault.text.split("\n")[0]]),
    [
      ["none/t", "bad", "Error: bad"],
      ["none/t", "worse", "TypeError: worse"],
    ],
  );
  assert.ok(begun.length > 104);
  const none = await fuzz("none/t", { ...target, seeds: ["x"] }, { seed: 1, most: 100, cpuSeconds: 0 }, progress);
  assert.equal(none.inputs, 0);
});

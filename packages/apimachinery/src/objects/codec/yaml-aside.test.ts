import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYamlAside } from "./yaml-aside.ts";

const lines = (n: number, line: (i: number) => string): string => Array.from({ length: n }, (_, i) => line(i)).join("\n");

test("a text that takes longer than a minute is refused with 413, and the next one is read", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let ended = false;
  const slow = parseYamlAside(lines(20_000, (i) => `k${i}: v`)).finally(() => (ended = true));
  t.mock.timers.tick(59_999);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  assert.equal(ended, false);
  t.mock.timers.tick(1);
  await assert.rejects(slow, { code: 413, message: "Request entity too large: the YAML takes too long to parse" });
  t.mock.timers.reset();
  assert.equal(Object.keys((await parseYamlAside(lines(5_000, (i) => `k${i}: v`))) as object).length, 5_000);
});

test("reads a text that is too long for the event loop, and costs the loop little", async () => {
  const value = `'${"more ".repeat(20)}'`;
  const cpu = process.threadCpuUsage();
  const all = process.cpuUsage();
  const parsed = (await parseYamlAside(lines(40_000, (i) => `k${i}: ${value}`))) as Record<string, string>;
  const here = process.threadCpuUsage(cpu);
  const whole = process.cpuUsage(all);
  assert.deepEqual([Object.keys(parsed).length, parsed.k39999], [40_000, "more ".repeat(20)]);
  assert.ok((here.user + here.system) * 3 < whole.user + whole.system, `${here.user} of ${whole.user} µs`);
});

test("reports duplicate keys, and keeps integers beyond 2^53 and the key __proto__", async () => {
  const repeated: string[] = [];
  const text = `${lines(20_000, (i) => `k${i}: 9007199254740993`)}\n__proto__: {a: 1}\nm: &m {b: 1}\nn: {<<: *m, <<: *m}\nk0: 1`;
  const parsed = (await parseYamlAside(text, repeated)) as Record<string, unknown>;
  assert.deepEqual(repeated, ['line 20004: key "k0" already set in map']);
  assert.equal(parsed.k1, 9007199254740993n);
  assert.ok(Object.hasOwn(parsed, "__proto__"));
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
});

for (const { name, text, code, message } of [
  {
    name: "a mistake far below",
    text: `${lines(20_000, (i) => `k${i}: v`)}\na: b: c`,
    code: 400,
    message: /^error.* line 20001: mapping/,
  },
  { name: "many aliases", text: `a: &a 1\n${lines(20_000, (i) => `k${i}: *a`)}`, code: 400, message: /^error.*alias count/ },
  { name: "3 MB of ? ", text: "? ".repeat(1.5 * 1024 * 1024), code: 413, message: /tokens/ },
  { name: "200,000 entries", text: lines(200_000, (i) => `k${i}: v`), code: 413, message: /tokens|values/ },
  { name: "2,000 levels", text: lines(2000, (i) => `${" ".repeat(i)}a:`), code: 400, message: /exceeded max depth/ },
]) {
  test(`answers ${code} to ${name}`, () => assert.rejects(parseYamlAside(text), { code, message }));
}

test("queues a limited number of bodies, refuses more with 429, and serves later ones", async () => {
  const text = lines(5_000, (i) => `k${i}: v`);
  const answers = await Promise.allSettled(Array.from({ length: 20 }, () => parseYamlAside(text)));
  const codes = answers.map((answer) => (answer.status === "fulfilled" ? 200 : answer.reason.code));
  assert.deepEqual(codes, [...Array(16).fill(200), ...Array(4).fill(429)]);
  const [refused] = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
  assert.equal(refused.message, "too many large YAML bodies at once, please try again later");
  assert.equal(Object.keys((await parseYamlAside(text)) as object).length, 5_000);
});

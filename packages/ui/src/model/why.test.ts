import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Api } from "../api.ts";
import type { Row } from "./row.ts";
import { Explanations } from "./why.ts";

const row = (uid: string, more: Partial<Row> = {}): Row =>
  ({ resource: "pods", uid, namespace: "a b", name: uid, ...more }) as Row;

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const asked: string[] = [];
  const waiting: PromiseWithResolvers<unknown>[] = [];
  const api = {
    get(path: string) {
      asked.push(path);
      const answer = Promise.withResolvers<unknown>();
      waiting.push(answer);
      return answer.promise;
    },
  };
  let changes = 0;
  const explanations = new Explanations(api as unknown as Api, () => changes++); // cast: all that is called
  return {
    explanations,
    waiting,
    changes: () => changes,
    asked: () => asked.splice(0),
    pass: (ms: number) => t.mock.timers.tick(ms),
  };
}

test("an object is asked about once, at its own path", async (t) => {
  const { explanations, asked, waiting, changes } = setUp(t);
  const pod = row("p/1");
  for (let i = 0; i < 3; i++) assert.deepEqual(explanations.of(pod), { state: "asking" });
  explanations.of(row("n", { resource: "nodes", namespace: "" }));
  await settle();
  assert.deepEqual(asked(), ["/debug/explain/namespaces/a%20b/pods/p%2F1", "/debug/explain/nodes/n"]);
  waiting[0]?.resolve({ healthy: true });
  await settle();
  assert.deepEqual(explanations.of(pod), { state: "answered", explanation: { healthy: true }, atMs: 1_000_000, row: pod });
  assert.equal(changes(), 1);
});

test("three are asked about at once, the others in their order", async (t) => {
  const { explanations, asked, waiting } = setUp(t);
  for (const uid of ["a", "b", "c", "d", "e"]) explanations.of(row(uid, { namespace: "" }));
  await settle();
  assert.equal(asked().length, 3);
  waiting[1]?.reject(new Error("no"));
  await settle();
  assert.deepEqual(asked(), ["/debug/explain/pods/d"]);
  assert.deepEqual([explanations.of(row("b", { namespace: "" })).state, explanations.of(row("e")).state], ["failed", "asking"]);
});

test("an answer is good for 15 s, for an object that has changed for 1.5 s; the old one is shown until then", async (t) => {
  const { explanations, asked, waiting, pass } = setUp(t);
  const before = row("a");
  explanations.of(before);
  await settle();
  waiting[0]?.resolve({ healthy: false });
  await settle();
  asked();
  const requests = async (of: Row): Promise<number> => {
    assert.equal(explanations.of(of).state, "answered");
    await settle();
    return asked().length;
  };
  const after = row("a");
  pass(1_499);
  assert.deepEqual([await requests(before), await requests(after)], [0, 0]);
  pass(1);
  assert.equal(await requests(after), 1);
  waiting[1]?.resolve({ healthy: true });
  await settle();
  pass(14_999);
  assert.equal(await requests(after), 0);
  pass(1);
  assert.equal(await requests(after), 1);
});

test("the five hundred last answers are kept", async (t) => {
  const { explanations, waiting, asked } = setUp(t);
  for (let i = 0; i <= 500; i++) {
    explanations.of(row(`${i}`));
    await settle(1);
    waiting[i]?.resolve({ healthy: true });
    await settle(1);
  }
  asked();
  assert.deepEqual([explanations.of(row("1")).state, explanations.of(row("500")).state], ["answered", "answered"]);
  assert.equal(explanations.of(row("0")).state, "asking");
});

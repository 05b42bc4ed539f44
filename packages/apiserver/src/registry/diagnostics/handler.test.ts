/** Watches of questions by clients that do not read, or that go. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type Question, questionsRef } from "@coxswain/apimachinery/decisions/question";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { LoopbackExchange } from "../../loopback/exchange.ts";
import type { RequestContext } from "../../request/context.ts";
import { handleQuestions } from "./handler.ts";
import { aBoard, added, recipient, ref } from "./testing.ts";

/** A kubelet's watch of the questions to it. */
async function aWatch(t: { after(fn: () => void): void }) {
  const board = aBoard(t);
  await settle();
  const { group, version, resource } = questionsRef;
  const exchange = new LoopbackExchange({ method: "GET", path: "/", headers: {} });
  const stopping = new AbortController();
  const ctx = {
    ...{ exchange, signal: stopping.signal, user: { name: "system:node:n1", groups: ["system:nodes"] } },
    info: { isResourceRequest: true, group, version, resource, subresource: "", verb: "watch", name: recipient },
  } as unknown as RequestContext;
  const watch = () => {
    let isOver = false;
    void handleQuestions(board.questions, ctx)?.then(() => {
      isOver = true;
    });
    return () => isOver;
  };
  const ask = (id: string, refs = [ref("pods", id)]) =>
    board.asked.watches[0]?.push(added(id, { requested: [{ recipient, refs }] }));
  const textOf = (id: string): string => {
    const object: Question = {
      ...{ apiVersion: "diagnostics.coxswain.dev/v1", kind: "Question", metadata: { name: id } },
      refs: [ref("pods", id)],
    };
    return `${JSON.stringify({ type: "ADDED", object })}\n`;
  };
  return { ...board, ctx, exchange, stopping, watch, ask, textOf };
}

for (const { name, user, recipient: of, code } of [
  { name: "another node", user: { name: "system:node:n2", groups: ["system:nodes"] }, recipient, code: 403 },
  { name: "a user with a node's name", user: { name: "system:node:n1", groups: [] }, recipient, code: 403 },
  { name: "a node", user: { name: "system:node:n1", groups: ["system:nodes"] }, recipient: "kube-scheduler", code: 403 },
  { name: "another daemon", user: { name: "system:kube-proxy", groups: [] }, recipient: "kube-scheduler", code: 403 },
  { name: "nobody's daemon", user: { name: "system:kube-scheduler", groups: [] }, recipient: "", code: 400 },
  { name: "the daemon", user: { name: "system:kube-scheduler", groups: [] }, recipient: "kube-scheduler", code: 200 },
  {
    name: "the daemon by its account",
    user: { name: "system:serviceaccount:kube-system:kube-scheduler", groups: [] },
    ...{ recipient: "kube-scheduler", code: 200 },
  },
  { name: "an administrator", user: { name: "a", groups: ["b", "system:masters"] }, recipient, code: 200 },
]) {
  test(`the questions to ${of === "" ? "an unnamed recipient" : of} are ${code === 200 ? "shown to" : "kept from"} ${name}`, async (t) => {
    const { ctx, exchange, questions, stopping } = await aWatch(t);
    const asked = { ...ctx, user, info: { ...ctx.info, name: of } } as RequestContext;
    if (code !== 200) return assert.throws(() => handleQuestions(questions, asked), { code });
    void handleQuestions(questions, asked);
    stopping.abort();
    assert.equal((await exchange.response).status, code);
  });
}

/** Refs whose text is larger than what a response keeps for a reader. */
const large = Array.from({ length: 1000 }, (_, i) => ref("pods", `p${i}`));

test("a watch has a line for each question, also for those asked before, and ends by itself between 30 and 60 minutes", async (t) => {
  const { clock, exchange, watch, ask, textOf } = await aWatch(t);
  await ask("before");
  const isOver = watch();
  await ask("after");
  await clock.advance(30 * 60_000 - 1);
  assert.equal(isOver(), false);
  await clock.advance(30 * 60_000 + 1);
  await settle();
  assert.equal(isOver(), true);
  await ask("too late");
  const { status, headers, body } = await exchange.response;
  assert.deepEqual([status, headers["content-type"]], [200, "application/json"]);
  assert.equal((await body.toArray()).join(""), textOf("before") + textOf("after"));
});

test("a client that does not read gets no question until it reads again", async (t) => {
  const { exchange, watch, ask, textOf } = await aWatch(t);
  watch();
  const parts = (await exchange.response).parts!();
  await ask("large", large);
  await ask("missed");
  assert.match(String((await parts.next()).value), /^[^\n]*"name":"large"[^\n]*\n$/);
  const next = parts.next();
  await settle();
  await ask("heard");
  assert.equal(String((await next).value), textOf("heard"));
});

test("a watch ends when its client has gone while a question waits for it", async (t) => {
  const { clock, exchange, stopping, watch, ask } = await aWatch(t);
  const isOver = watch();
  const parts = (await exchange.response).parts!();
  await ask("large", large);
  assert.equal(isOver(), false);
  await parts.return!();
  await settle();
  assert.deepEqual([isOver(), clock.waiting, getEventListeners(stopping.signal, "abort").length], [true, 0, 0]);
});

for (const isEarly of [true, false])
  test(`a watch ends with its request, ${isEarly ? "before" : "after"} it has begun, and leaves nothing`, async (t) => {
    const { clock, exchange, stopping, watch, ask } = await aWatch(t);
    if (isEarly) stopping.abort();
    const isOver = watch();
    stopping.abort();
    await settle();
    await ask("too late");
    assert.deepEqual([isOver(), clock.waiting, getEventListeners(stopping.signal, "abort").length], [true, 0, 0]);
    assert.deepEqual(await (await exchange.response).body.toArray(), []);
  });

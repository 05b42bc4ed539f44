import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "@coxswain/apimachinery/decisions/decision";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newServedResources } from "../handlers/served-resources.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { RegistryStore, ResourceDefinition } from "../registry/generic/resource.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { ExplainPages } from "./pages.ts";

/** Pages about one widget. @returns `refuse`, after which a daemon refuses it for that reason, or for none */
function somePages() {
  const clock = newFakeClock(Date.parse("2026-03-01T12:00:00Z"));
  const widget = { kind: "Widget", apiVersion: "v1", metadata: { name: "w", namespace: "a", uid: "u" } };
  const names = { group: "", resource: "widgets", kind: "Widget", singular: "widget" };
  const definition = { ...names, namespaced: true, hub: "v1" } as unknown as ResourceDefinition;
  const resources = newServedResources();
  const store = { get: async () => ({ object: () => widget }) } as unknown as RegistryStore;
  resources.add(definition, { version: "v1" }, store);
  const events = { ...definition, resource: "events", kind: "Event", singular: "event" };
  resources.add(events, { version: "v1" }, { list: async () => ({ entries: [] }) } as unknown as RegistryStore);
  let reason: string | undefined;
  let since = "";
  let questions = 0;
  const decision = (): Decision => ({
    ...{ component: "daemon", source: "daemon", verdict: "refused", reason: reason ?? "", summary: `it says ${reason}` },
    ...{ since, lastAt: formatTime(clock.now()), count: 1 },
    object: { group: "", resource: "widgets", kind: "Widget", namespace: "a", name: "w", uid: "u" },
  });
  const pages = new ExplainPages({
    resources,
    authorize: () => ({ decision: "allow" }),
    decisions: {
      of: async () => {
        questions++;
        return { decisions: reason === undefined ? [] : [decision()], silent: [] };
      },
    },
    turns: new Turns(),
    clock,
  });
  const open = (query: string, deadlineMs = clock.now() + 600_000) => {
    const path = `/debug/explain/namespaces/a/widgets/w?output=json${query}`;
    const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
    const request = new ServerRequest(exchange, parseRequestInfo("GET", path), clock.now(), false);
    request.deadlineMs = deadlineMs;
    const done = Promise.resolve(pages.handle(request));
    const reasons = exchange.response.then(async ({ body }) => {
      const text = Buffer.concat(await Array.fromAsync(body as AsyncIterable<Buffer>)).toString();
      return text
        .trim()
        .split("\n")
        .map((line): string | undefined => JSON.parse(line).cause?.reason);
    });
    reasons.catch(() => {}); // of a request that was aborted
    return { exchange, request, done, reasons };
  };
  const refuse = (why: string | undefined): void => {
    reason = why;
    since = formatTime(clock.now());
  };
  return { clock, open, refuse, questions: () => questions };
}

test("an explanation is given at once; another path is left to others", async () => {
  const { open, refuse } = somePages();
  refuse("Full");
  for (const query of ["", "&watch=0", "&watch=False"]) assert.deepEqual(await open(query).reasons, ["Full"], query);
});

test("a watch asks every two seconds, sends what has changed, and ends when the object is healthy", async () => {
  const { clock, open, refuse, questions } = somePages();
  refuse("Full");
  const { reasons, done } = open("&watch=1");
  await settle();
  await clock.advance(2_000);
  assert.equal(questions(), 2);
  refuse("Broken");
  await clock.advance(2_000);
  await clock.advance(1_999);
  refuse(undefined);
  assert.equal(questions(), 3);
  await clock.advance(1);
  await done;
  assert.deepEqual([await reasons, questions()], [["Full", "Broken", undefined], 4]);
});

test("a watch gives its seats back while it waits", async () => {
  const { clock, open, refuse } = somePages();
  refuse("Full");
  const { exchange, done } = open("&watch=1");
  let given = 0;
  exchange.onUnread = () => void given++;
  await settle();
  assert.equal(given, 1);
  refuse(undefined);
  await clock.advance(2_000);
  await done;
});

test("a watch ends before the next look would come too close to its deadline", async () => {
  const { clock, open, refuse } = somePages();
  refuse("Full");
  const { done, reasons } = open("&watch=1", clock.now() + 5_001);
  let ended = false;
  void done.then(() => {
    ended = true;
  });
  await settle();
  assert.equal(ended, false);
  await clock.advance(2_000);
  await settle();
  assert.equal(ended, false, "4 s is before 5.001 s less one second");
  await clock.advance(2_000);
  await done;
  assert.deepEqual(await reasons, ["Full"]);
});

test("beyond 64 watches another one is refused; one that ended or was aborted makes room", async () => {
  const { clock, open, refuse } = somePages();
  refuse("Full");
  const watches = Array.from({ length: 64 }, () => open("&watch=1"));
  await settle();
  await assert.rejects(open("&watch=1").done, { code: 429 });
  assert.deepEqual(await open("").reasons, ["Full"], "an explanation that is not watched is not limited");
  watches[0]!.request.abort(new Error("gone"));
  await assert.rejects(watches[0]!.done, /gone/);
  const next = open("&watch=1");
  await settle();
  assert.equal(next.exchange.status, 200);
  await assert.rejects(open("&watch=1").done, { code: 429 });
  refuse(undefined);
  await clock.advance(2_000);
  await Promise.all([next, ...watches.slice(1)].map(({ done }) => done));
  assert.equal((await open("&watch=1").reasons).length, 1);
});

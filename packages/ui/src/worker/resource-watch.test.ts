import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Api, ApiError } from "../api.ts";
import { kindOf } from "../model/kinds.ts";
import type { Source } from "../model/protocol.ts";
import type { Row } from "../model/row.ts";
import { ResourceWatch } from "./resource-watch.ts";
import { Rows } from "./rows.ts";

type Answer = object | ApiError | readonly object[];

/** An API that gives these answers one after the other: a list is an object, the events of a watch an array. */
function script(answers: readonly Answer[]) {
  const requested: string[] = [];
  const left = [...answers];
  const next = async (path: string, signal: AbortSignal): Promise<unknown> => {
    requested.push(path);
    const answer = left.shift();
    if (answer instanceof Error) throw answer;
    if (answer !== undefined) return answer;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const api = {
    get: next,
    open: async (path: string, signal: AbortSignal) => {
      const events = (await next(path, signal)) as readonly object[];
      return new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
    },
  };
  return { api: api as unknown as Api, requested };
}

const pod = (name: string, version: number, phase = "Running"): KubeObject =>
  ({
    metadata: { name, namespace: "a", uid: name, resourceVersion: String(version) },
    spec: { containers: [] },
    status: { phase },
  }) as KubeObject;
const list = (items: readonly KubeObject[], resourceVersion: string, next = "") => ({
  metadata: { resourceVersion, continue: next },
  items,
});

async function run(t: { after(fn: () => void): void }, answers: readonly Answer[], { namespace = "" } = {}) {
  const { api, requested } = script(answers);
  const rows = new Map<string, Row>();
  const sent: string[] = [];
  const outbox = {
    set: (row: Row) => {
      rows.set(row.uid, row);
      sent.push(row.uid);
    },
    gone: (uid: string) => void rows.delete(uid),
  };
  const states: Source["state"][] = [];
  const refused: string[] = [];
  const kind = kindOf("pods");
  assert.ok(kind);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const watch = new ResourceWatch({
    api,
    kind,
    rows: new Rows(kind, outbox),
    namespace,
    isWatched: true,
    report: ({ state }) => void states.push(state),
    refused: (message) => {
      refused.push(message);
      stop.abort();
    },
  });
  void watch.run(stop.signal);
  const requestedFor = (count: number) =>
    waitFor(() => requested.length >= count, { what: `${count} requests, not ${requested.join("\n")}` });
  return { rows, sent, states, refused, requested, requestedFor };
}

test("a list in pages is followed by a watch from its version, and that by one from the last event", async (t) => {
  const events = [
    { type: "ADDED", object: pod("c", 11) },
    { type: "DELETED", object: pod("a", 12) },
    { type: "BOOKMARK", object: { metadata: { resourceVersion: "20" } } },
  ];
  const { rows, requested, requestedFor, states } = await run(t, [
    list([pod("a", 1)], "10", "more"),
    list([pod("b", 2)], "10"),
    events,
  ]);
  await requestedFor(4);
  assert.deepEqual([...rows.keys()], ["b", "c"]);
  assert.match(requested[1] ?? "", /continue=more/);
  assert.match(requested[2] ?? "", /watch=1.*resourceVersion=10$/);
  assert.match(requested[3] ?? "", /watch=1.*resourceVersion=20$/);
  assert.deepEqual(states.slice(0, 3), ["loading", "live", "live"]);
});

test("a version that is too old leads to a list, which removes missing objects and sends only changed ones", async (t) => {
  const { rows, sent, requestedFor } = await run(t, [
    list([pod("a", 1), pod("b", 2)], "10"),
    [{ type: "ERROR", object: { code: 410, message: "too old", metadata: {} } }],
    list([pod("b", 2), pod("c", 30)], "30"),
  ]);
  await requestedFor(4);
  assert.deepEqual([...rows.keys()], ["b", "c"]);
  assert.deepEqual(sent, ["a", "b", "c"]);
});

test("an interrupted watch resumes from the last event without a list", async (t) => {
  const { requested, requestedFor, states } = await run(t, [
    list([], "10"),
    new ApiError(0, "away"),
    [{ type: "ADDED", object: pod("a", 11) }],
  ]);
  await requestedFor(4);
  assert.match(requested[2] ?? "", /resourceVersion=10$/);
  assert.deepEqual(states, ["loading", "live", "away", "live"]);
});

test("a user who may not list all namespaces sees the selected namespace", async (t) => {
  const { rows, requested, requestedFor } = await run(t, [new ApiError(403, "no"), list([pod("a", 1)], "10")], {
    namespace: "team/a",
  });
  await requestedFor(3);
  assert.match(requested[1] ?? "", /^\/api\/v1\/namespaces\/team%2Fa\/pods\?/);
  assert.equal(rows.size, 1);
});

test("a resource that is forbidden or not served is reported and retried later", async (t) => {
  const denied = await run(t, [new ApiError(403, "no")]);
  await waitFor(() => denied.states.includes("denied"));
  const absent = await run(t, [new ApiError(404, "no")]);
  await waitFor(() => absent.states.includes("absent"));
  assert.deepEqual([denied.requested.length, absent.requested.length], [1, 1]);
});

test("a token that is no longer accepted ends the watch", async (t) => {
  const { refused, requested } = await run(t, [list([], "1"), new ApiError(401, "Unauthorized")]);
  await waitFor(() => refused.length > 0);
  assert.deepEqual([refused, requested.length], [["Unauthorized"], 2]);
});

test("an update that changes no shown field is not sent again", async (t) => {
  const events = [
    { type: "MODIFIED", object: pod("a", 11) },
    { type: "MODIFIED", object: pod("a", 12, "Succeeded") },
  ];
  const { sent, requestedFor } = await run(t, [list([pod("a", 1)], "10"), events]);
  await requestedFor(3);
  assert.deepEqual(sent, ["a", "a"]);
});

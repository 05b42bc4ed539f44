import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, ListOptions, WatchOptions } from "../client/client.ts";
import {
  gone,
  resourceExpired,
  StatusError,
  timeout,
  tooLargeResourceVersion,
  tooManyRequests,
} from "../objects/errors/status-error.ts";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { pods } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aPod } from "../testing/builders.ts";
import { settle } from "../testing/wait-for.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";
import { Reconnection } from "./reconnection.ts";
import { runReflector } from "./reflector.ts";

type Page = { version: string; names: string[]; continue?: string } | Error;
/** Events of a watch and its end after a time: an error or a regular close; `undefined` keeps it open until the test ends. */
type Watch = { events?: ObjectEvent<Pod>[]; afterMs?: number; end?: Error | "closed" };

const named = (name: string, resourceVersion = "1"): Pod => {
  const pod = aPod({ name });
  return { ...pod, metadata: { ...pod.metadata, resourceVersion } };
};

/** An item of a list, which has no apiVersion and kind. */
function listed(name: string): Pod {
  const { apiVersion: _, kind: __, ...pod } = named(name);
  return pod;
}

/** Runs a reflector against scripted responses and records its requests and its store. */
async function reflecting(
  t: { after(fn: () => void): void },
  lists: Page[],
  watches: Watch[],
  periodMs?: number,
  { roll = 0, metadataOnly = false }: { roll?: number; metadataOnly?: boolean } = {},
) {
  const requested: string[] = [];
  /** Selection parameters of each request, which must be the same in all of them. */
  const selections: unknown[] = [];
  const target = { ref: pods, namespace: "web", labelSelector: "app=a", fieldSelector: "spec.nodeName=n1", metadataOnly };
  const watchOptions: WatchOptions[] = [];
  const select = (
    { namespace }: { namespace?: string | undefined },
    { labelSelector, fieldSelector, metadataOnly }: ListOptions,
  ) => selections.push({ ref: pods, namespace, labelSelector, fieldSelector, metadataOnly });
  const reported: string[] = [];
  const clock = newFakeClock();
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const client = {
    async list(_: unknown, scope: { namespace?: string }, options: ListOptions) {
      const { resourceVersion, limit, continue: more } = options;
      select(scope, options);
      requested.push(`list ${more ?? resourceVersion ?? "-"} ${limit ?? "all"}`);
      const page = lists.length > 1 ? lists.shift() : lists[0];
      if (page instanceof Error) throw page;
      const { version, names = [], continue: next } = page ?? { version: "" };
      return { metadata: { resourceVersion: version, continue: next }, items: names.map(listed) };
    },
    async *watch(_: unknown, scope: { namespace?: string }, options: WatchOptions) {
      const { resourceVersion, signal } = options;
      watchOptions.push(options);
      select(scope, options);
      requested.push(`watch ${resourceVersion}`);
      const { events = [], afterMs, end } = watches.shift() ?? {};
      yield* events;
      if (afterMs !== undefined) await clock.sleep(afterMs, signal);
      if (end === "closed") return;
      if (end !== undefined) throw end;
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    },
  } as unknown as Client;
  /** The kinds of objects in all lists. */
  const kinds: string[] = [];
  const sink = {
    replace(objects: Pod[], isOtherHistory: boolean) {
      reported.push(`=${objects.map(({ metadata }) => metadata.name).join()}${isOtherHistory ? " anew" : ""}`);
      kinds.push(...objects.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`));
    },
    set: ({ metadata }: Pod) => void reported.push(`+${metadata.name}`),
    delete: ({ metadata }: Pod) => void reported.push(`-${metadata.name}`),
  };
  const { signal } = stop;
  const random = (): number => roll;
  const reconnection = periodMs === undefined ? undefined : new Reconnection({ periodMs: () => periodMs, clock, random });
  void runReflector<Pod>({ client, target, sink, clock, log: discardLogger, signal, random, reconnection });
  await settle(40);
  const after = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await settle(40);
  };
  return { requested, reported, kinds, selections, watchOptions, target, after };
}

/** Simulates a server restart: its watches end, it refuses connections once, and then has no events from before its start. */
const restart = (afterMs: number, how: "closed" | Error): Watch[] => [
  { afterMs, end: how },
  { end: refused() },
  { end: resourceExpired("too old") },
];

for (const [name, how] of Object.entries({
  "ends watches": "closed" as const,
  "breaks connections": Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
})) {
  test(`a server that restarts every minute and ${name} is listed as soon after the tenth restart as after the first`, async (t) => {
    const watches = Array.from({ length: 10 }, () => restart(60_000, how)).flat();
    const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], watches);
    const lists = (): number => requested.filter((one) => one.startsWith("list")).length;
    for (let restarts = 1; restarts <= 10; restarts++) {
      assert.equal(lists(), restarts);
      // The watch lasts a minute; then waits of at most 0.8 and 1.6 s follow, and of 0.8 s before the list.
      for (const ms of [60_000, 800, 1_600, 800]) await after(ms);
      assert.equal(lists(), restarts + 1, `restart ${restarts}`);
    }
  });
}

test("a server that exits five seconds after each start is retried with growing delays", async (t) => {
  const watches = Array.from({ length: 10 }, () => restart(5_000, "closed")).flat();
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], watches);
  for (let second = 0; second < 120; second++) await after(1_000);
  // After 0.8 + 0.8, 1.6 + 1.6, … s.
  assert.equal(requested.filter((one) => one.startsWith("list")).length, 6);
});

test("a watch refused by a busy server after a long delay does not shorten the next delay", async (t) => {
  const busy = (): Watch => ({ afterMs: 15_000, end: tooManyRequests("busy", 1) });
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], [busy(), busy(), busy()]);
  await after(15_000);
  await after(800);
  await after(15_000);
  await after(1_599);
  assert.equal(requested.length, 3);
  await after(1);
  assert.equal(requested.length, 4);
});

const tooLarge = (): StatusError => {
  const { status } = timeout("Too large resource version: 7, current: 5", 1);
  return new StatusError({
    ...status,
    details: { ...status.details, causes: [{ reason: "Other" }, { reason: "ResourceVersionTooLarge" }] },
  });
};

for (const [name, refusal] of Object.entries({ tooLarge: tooLarge(), gone: gone("gone"), expired: resourceExpired("old") })) {
  test(`a server that refuses the version of a list gets a request for its most recent state (${name})`, async (t) => {
    const { requested, reported } = await reflecting(t, [refusal, { version: "5", names: ["a"] }], []);
    assert.deepEqual(requested, ["list 0 500", "list  500", "watch 5"]);
    assert.deepEqual(reported, ["=a anew"], "its store may have been restored");
  });
}

test("a list of several pages returns all items at the resourceVersion of the first page", async (t) => {
  const pages = [
    { version: "5", names: ["a", "b"], continue: "second" },
    { version: "6", names: ["c"], continue: "third" },
    { version: "7", names: ["d", "e"] },
  ];
  const { requested, reported, kinds } = await reflecting(t, pages, []);
  assert.deepEqual(requested, ["list 0 500", "list second 500", "list third 500", "watch 5"]);
  assert.deepEqual(reported, ["=a,b,c,d,e"]);
  assert.deepEqual(kinds, ["v1/Pod", "v1/Pod", "v1/Pod", "v1/Pod", "v1/Pod"], "items of a list have no kind of their own");
});

test("a list whose second page fails with another error is restarted, and its first page is discarded", async (t) => {
  const pages = [{ version: "5", names: ["a"], continue: "second" }, new Error("broken"), { version: "9", names: ["b"] }];
  const { requested, reported, after } = await reflecting(t, pages, []);
  await after(800);
  assert.deepEqual(requested, ["list 0 500", "list second 500", "list 0 500", "watch 9"]);
  assert.deepEqual(reported, ["=b"]);
});

test("a list whose continue token expired is repeated without pages", async (t) => {
  const pages = [
    { version: "5", names: ["a"], continue: "next" },
    resourceExpired("too old"),
    { version: "9", names: ["b", "c"] },
  ];
  const { requested, reported } = await reflecting(t, pages, []);
  assert.deepEqual(requested, ["list 0 500", "list next 500", "list - all", "watch 9"]);
  assert.deepEqual(reported, ["=b,c"]);
});

test("a watch resumes from its last event or bookmark; if that is too old, the next list is a most recent one", async (t) => {
  const bookmark = { type: "BOOKMARK", object: named("", "12") } as ObjectEvent<Pod>;
  const { requested, reported, after } = await reflecting(
    t,
    [
      { version: "5", names: [] },
      { version: "20", names: ["z"] },
    ],
    [
      { events: [{ type: "ADDED", object: named("a", "7") }], end: "closed" },
      { events: [{ type: "DELETED", object: named("a", "8") }, bookmark], end: "closed" },
      { end: gone("too old resource version") },
    ],
  );
  await after(800);
  assert.deepEqual(requested, ["list 0 500", "watch 5", "watch 7", "watch 12", "list  500", "watch 20"]);
  assert.deepEqual(reported, ["=", "+a", "-a", "=z anew"]);
});

test("a server that ends each watch at once gets requests at increasing intervals", async (t) => {
  const closed: Watch[] = Array.from({ length: 20 }, () => ({ end: "closed" }));
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], closed);
  const counts: number[] = [];
  for (const ms of [799, 1, 1_599, 1, 3_199, 1]) {
    await after(ms);
    counts.push(requested.length / 2);
  }
  assert.deepEqual(counts, [1, 2, 2, 3, 3, 4]);
  assert.equal(requested[2], "list 5 all", "never older than what was seen");
});

test("a watch that breaks in the middle resumes at its last event", async (t) => {
  const broken = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
  const events: ObjectEvent<Pod>[] = [{ type: "ADDED", object: named("a", "7") }];
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], [{ events, end: broken }]);
  await after(800);
  assert.deepEqual(requested, ["list 0 500", "watch 5", "watch 7"]);
});

test("a watch refused for a version too new causes one list of any state, which may be of another history", async (t) => {
  const lists = [
    { version: "9", names: ["a", "b"] },
    { version: "4", names: ["a"] },
    { version: "5", names: ["a"] },
  ];
  const watches: Watch[] = [{ end: tooLargeResourceVersion(9, 4, 0) }, { end: "closed" }];
  const { requested, reported, after } = await reflecting(t, lists, watches);
  await after(800);
  await after(1600);
  assert.deepEqual(
    requested.filter((one) => one.startsWith("watch") || !one.startsWith("list 0")),
    ["watch 9", "list - 500", "watch 4", "list 4 all", "watch 5"].map((one) => one.replace("list -", "list ")),
  );
  assert.deepEqual(reported, ["=a,b", "=a anew", "=a"]);
});

test("a failed list after a watch that was too old does not remove the requirement of a most recent list", async (t) => {
  const pages = [{ version: "5", names: ["a"] }, new Error("broken"), { version: "5", names: ["a"] }];
  const { reported, after } = await reflecting(t, pages, [{ end: resourceExpired("old") }]);
  await after(800);
  await after(1_600);
  assert.deepEqual(reported, ["=a", "=a anew"]);
});

test("a watch resumes after a deletion that was its last event", async (t) => {
  const { requested, reported } = await reflecting(
    t,
    [{ version: "5", names: ["a"] }],
    [{ events: [{ type: "DELETED", object: named("a", "7") }], end: "closed" }],
  );
  assert.deepEqual(
    [requested.slice(1), reported],
    [
      ["watch 5", "watch 7"],
      ["=a", "-a"],
    ],
  );
});

test("an event whose object has no metadata is not delivered, and everything is listed again", async (t) => {
  const bad = { type: "MODIFIED", object: {} } as ObjectEvent<Pod>;
  const events: ObjectEvent<Pod>[] = [
    { type: "ADDED", object: named("a", "7") },
    bad,
    { type: "ADDED", object: named("b", "9") },
  ];
  const lists = [
    { version: "5", names: [] },
    { version: "9", names: ["a", "b"] },
  ];
  const { requested, reported, after } = await reflecting(t, lists, [{ events }]);
  await after(800);
  assert.deepEqual(requested, ["list 0 500", "watch 5", "list 7 all", "watch 9"]);
  assert.deepEqual(reported, ["=", "+a", "=a,b"]);
});

test("an event without a version leaves the watch at the one before it", async (t) => {
  const bookmark = { type: "BOOKMARK", object: { ...named("", "12"), metadata: {} } } as ObjectEvent<Pod>;
  const events = [{ type: "ADDED", object: named("a", "11") }, bookmark] as ObjectEvent<Pod>[];
  const { requested, after } = await reflecting(t, [{ version: "10", names: [] }], [{ events, end: "closed" }]);
  await after(0);
  assert.deepEqual(requested, ["list 0 500", "watch 10", "watch 11"]);
});

test("each request, also for a next page and for all at once, has the selectors of the target", async (t) => {
  const pages = [
    { version: "5", names: ["a"], continue: "second" },
    { version: "5", names: ["b"], continue: "third" },
    resourceExpired("too old"),
    { version: "9", names: ["a", "b"] },
  ];
  const { requested, selections, target } = await reflecting(t, pages, []);
  assert.deepEqual(requested, ["list 0 500", "list second 500", "list third 500", "list - all", "watch 9"]);
  assert.deepEqual(selections, Array(5).fill(target));
});

test("a watch refused by a busy server is retried with growing delays and without a list", async (t) => {
  const busy = (): Watch => ({ end: tooManyRequests("busy", 1) });
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], [busy(), busy()]);
  const first = ["list 0 500", "watch 5"];
  assert.deepEqual(requested, first);
  await after(799);
  assert.deepEqual(requested, first);
  await after(1);
  assert.deepEqual(requested, [...first, "watch 5"]);
  await after(1599);
  assert.deepEqual(requested, [...first, "watch 5"]);
  await after(1);
  assert.deepEqual(requested, [...first, "watch 5", "watch 5"]);
});

test("a request for the most recent state that is refused as too old is not repeated at once", async (t) => {
  const lists = [{ version: "5", names: [] }, resourceExpired("too old"), { version: "9", names: ["a"] }];
  const { requested, after } = await reflecting(t, lists, [{ end: resourceExpired("too old") }]);
  await after(800);
  assert.deepEqual(requested, ["list 0 500", "watch 5", "list  500"]);
  await after(1600);
  assert.deepEqual(requested, ["list 0 500", "watch 5", "list  500", "list  500", "watch 9"]);
});

const refused = (): Error => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const lost = (): Error => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

for (const { name, failures } of [
  { name: "refuses connections", failures: refused },
  { name: "accepts connections and closes them", failures: lost },
]) {
  test(`with a reconnection, a server that ${name} is tried as often after five minutes as at first, and the watch resumes`, async (t) => {
    const away: Watch[] = Array.from({ length: 599 }, () => ({ end: failures() }));
    const { requested, reported, after } = await reflecting(
      t,
      [{ version: "5", names: ["a"] }],
      [...away, { events: [{ type: "ADDED", object: named("b", "6") }] }],
      1_000,
    );
    for (let second = 0; second < 299; second++) await after(1_000);
    assert.equal(requested.length, 2 + 2 * 299, "every 500 ms without jitter");
    assert.deepEqual(reported, ["=a"]);
    await after(500);
    assert.deepEqual(reported, ["=a", "+b"]);
    assert.equal(requested.filter((one) => one.startsWith("list")).length, 1);
    assert.equal(requested.at(-1), "watch 5");
  });
}

test("with a reconnection, the first list is tried as often, too", async (t) => {
  const { requested, after } = await reflecting(t, [refused()], [], 1_000);
  for (let second = 0; second < 60; second++) await after(1_000);
  assert.equal(requested.length, 1 + 2 * 60);
});

test("a busy server is not asked before its Retry-After, with a reconnection too", async (t) => {
  const busy = Array.from({ length: 20 }, () => ({ end: tooManyRequests("later", 1) }));
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], busy, 1_000);
  for (let second = 0; second < 60; second++) await after(1_000);
  // After 0.8, 2.4, 5.6, 12, 24.8 and 50.4 s.
  assert.deepEqual(requested, ["list 0 500", ...Array.from({ length: 7 }, () => "watch 5")]);
});

test("a refused list is repeated with growing delays, with a reconnection too", async (t) => {
  const { requested, after } = await reflecting(t, [tooManyRequests("later", 1)], [], 1_000);
  for (let second = 0; second < 60; second++) await after(1_000);
  assert.equal(requested.length, 7);
});

for (const [name, refusal] of Object.entries({ gone: gone("gone"), expired: resourceExpired("old"), tooLarge: tooLarge() })) {
  test(`a server that is back after five minutes and has another state is listed in the same moment (${name})`, async (t) => {
    const away: Watch[] = Array.from({ length: 599 }, () => ({ end: refused() }));
    const lists = [
      { version: "5", names: ["a"] },
      { version: "9", names: ["b"] },
    ];
    const { reported, requested, after } = await reflecting(t, lists, [...away, { end: refusal }], 1_000);
    for (let second = 0; second < 299; second++) await after(1_000);
    assert.deepEqual(reported, ["=a"]);
    await after(500);
    assert.deepEqual(reported, ["=a", "=b anew"]);
    assert.deepEqual(requested.slice(-3), ["watch 5", "list  500", "watch 9"]);
  });
}

for (const [afterMs, isAtOnce] of [
  [9_999, false],
  [10_000, true],
] as const) {
  test(`with a reconnection, a version refused ${afterMs} ms after its list causes one ${isAtOnce ? "at once" : "later"}`, async (t) => {
    const lists = ["5", "9"].map((version) => ({ version, names: [] }));
    const { requested, after } = await reflecting(t, lists, [{ afterMs, end: gone("gone") }], 1_000);
    await after(afterMs);
    assert.deepEqual(requested, ["list 0 500", "watch 5", ...(isAtOnce ? ["list  500", "watch 9"] : [])]);
  });
}

test("a server that calls each version too old is listed at increasing intervals, with a reconnection too", async (t) => {
  const tooOld: Watch[] = Array.from({ length: 20 }, () => ({ end: gone("too old resource version") }));
  const { requested, after } = await reflecting(t, [{ version: "5", names: [] }], tooOld, 1_000);
  for (let second = 0; second < 20; second++) await after(1_000);
  // At 0, 0.8, 2.4, 5.6 and 12 s.
  assert.equal(requested.filter((one) => one.startsWith("list")).length, 5);
});

test("a watch asks for bookmarks, and ends after five to ten minutes, at random", async (t) => {
  for (const [roll, want] of [
    [0, 300],
    [0.5, 450],
    [0.999, 599],
  ] as const) {
    const { watchOptions } = await reflecting(t, [{ version: "5", names: [] }], [], undefined, { roll });
    const [{ allowWatchBookmarks, timeoutSeconds } = {}] = watchOptions as Partial<WatchOptions>[];
    assert.deepEqual([allowWatchBookmarks, timeoutSeconds], [true, want]);
  }
});

test("listed metadata are not given the kind of the resource", async (t) => {
  const { kinds } = await reflecting(t, [{ version: "5", names: ["a"] }], [], undefined, { metadataOnly: true });
  assert.deepEqual(kinds, ["undefined/undefined"]);
});

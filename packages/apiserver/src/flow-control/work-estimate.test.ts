import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { parseRequestInfo } from "../request/request-info.ts";
import { newObjectCounts } from "./object-counts.ts";
import { newWatchCounts } from "./watch-counts.ts";
import { estimateWork, type WorkFacts } from "./work-estimate.ts";

const requested = (method: string, url: string) => ({
  info: parseRequestInfo(method, url),
  query: new URLSearchParams(url.split("?")[1] ?? ""),
});
const facts = (stored: number | "stale" | undefined, watchers = 0): WorkFacts => ({
  storedObjects: () => stored,
  watchers: () => watchers,
});

for (const { name, query, stored, seats } of [
  { name: "of storage is read and sent", query: "", stored: 150, seats: 3 },
  { name: "of a page counts the page", query: "limit=100", stored: 150, seats: 2 },
  { name: "that selects looks at everything", query: "limit=100&labelSelector=a", stored: 150, seats: 3 },
  { name: "that selects by fields does so, too", query: "limit=100&fieldSelector=a%3Db", stored: 150, seats: 3 },
  { name: "of the cache looks at everything once", query: "resourceVersion=0&limit=10", stored: 150, seats: 2 },
  { name: "at an exact revision reads storage", query: "resourceVersion=5&resourceVersionMatch=Exact", stored: 150, seats: 3 },
  { name: "of a page from a revision reads storage", query: "resourceVersion=5&limit=10", stored: 150, seats: 1 },
  { name: "of a later page reads storage", query: "resourceVersion=0&limit=10&continue=x", stored: 150, seats: 1 },
  { name: "takes ten seats at most", query: "", stored: 100_000, seats: 10 },
  { name: "of a page that is larger than all counts all", query: "limit=900", stored: 150, seats: 3 },
  { name: "with a negative limit counts all", query: "limit=-5", stored: 150, seats: 3 },
  { name: "of nothing takes one", query: "", stored: 0, seats: 1 },
  { name: "of an unknown resource takes one", query: "", stored: undefined, seats: 1 },
  { name: "whose count is old takes the most", query: "", stored: "stale", seats: 10 },
  { name: "with a broken limit takes the most", query: "limit=many", stored: 1, seats: 10 },
] as const) {
  test(`a list ${name}`, () => {
    assert.equal(estimateWork(requested("GET", `/api/v1/pods?${query}`), facts(stored)).initialSeats, seats);
  });
}

for (const { watchers, work } of [
  { watchers: 9, work: { initialSeats: 1, finalSeats: 0, additionalMs: 0 } },
  { watchers: 10, work: { initialSeats: 1, finalSeats: 1, additionalMs: 5 } },
  { watchers: 95, work: { initialSeats: 1, finalSeats: 10, additionalMs: 5 } },
  { watchers: 1000, work: { initialSeats: 1, finalSeats: 10, additionalMs: 50 } },
]) {
  test(`a write that ${watchers} watches see takes ${work.finalSeats} seats for ${work.additionalMs} ms after its answer`, () => {
    assert.deepEqual(estimateWork(requested("POST", "/api/v1/namespaces/a/pods"), facts(0, watchers)), work);
  });
}

test("a get, a request outside of resources and an OPTIONS request take one seat", () => {
  for (const [method, url] of [
    ["GET", "/api/v1/namespaces/a/pods/b"],
    ["GET", "/version"],
    ["OPTIONS", "/api/v1/pods"],
  ] as const)
    assert.equal(estimateWork(requested(method, url), facts(1000, 1000)).initialSeats, 1);
});

test("watches of all, of the namespace and of the object see a write; others do not", () => {
  const counts = newWatchCounts();
  const watch = (url: string) => counts.add(parseRequestInfo("GET", `${url}?watch=1`));
  const forget = watch("/api/v1/pods");
  watch("/api/v1/namespaces/a/pods");
  watch("/api/v1/namespaces/b/pods");
  watch("/api/v1/secrets");
  const write = parseRequestInfo("PUT", "/api/v1/namespaces/a/pods/x");
  assert.equal(counts.interestedIn(write), 2);
  forget();
  assert.equal(counts.interestedIn(write), 1);
  for (const name of ["x", "y"])
    counts.add(parseRequestInfo("GET", `/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3D${name}&watch=1`));
  assert.equal(counts.interestedIn(write), 2);
});

test("a write of an object without a namespace is seen by watches of all and of itself", () => {
  const counts = newWatchCounts();
  for (const query of ["", "fieldSelector=metadata.name%3Dx&", "fieldSelector=metadata.name%3Dy&"])
    counts.add(parseRequestInfo("GET", `/api/v1/nodes?${query}watch=1`));
  assert.equal(counts.interestedIn(parseRequestInfo("PUT", "/api/v1/nodes/x")), 2);
  assert.equal(counts.interestedIn(parseRequestInfo("POST", "/api/v1/nodes")), 1);
  assert.equal(counts.interestedIn(parseRequestInfo("POST", "/healthz")), 0);
});

test("an object count is used until three counts in a row have failed", async () => {
  const clock = newFakeClock();
  const counts = newObjectCounts(clock, 60_000);
  counts.set("pods", -1);
  assert.equal(counts.of("pods"), undefined);
  counts.set("pods", 7);
  counts.set("pods", -1);
  await clock.advance(180_000);
  assert.equal(counts.of("pods"), 7);
  await clock.advance(1);
  assert.equal(counts.of("pods"), "stale");
  counts.set("pods", 0);
  assert.equal(counts.of("pods"), 0, "an empty resource is counted, too");
});

for (const [method, path, seats] of [
  ["POST", "/api/v1/namespaces/a/pods", 1],
  ["PUT", "/api/v1/namespaces/a/pods/b", 1],
  ["PATCH", "/api/v1/namespaces/a/pods/b", 1],
  ["DELETE", "/api/v1/namespaces/a/pods/b", 1],
  ["DELETE", "/api/v1/namespaces/a/pods", 0],
] as const) {
  test(`${method} ${path} takes ${seats} seats for its watchers`, () => {
    assert.equal(estimateWork(requested(method, path), facts(0, 10)).finalSeats, seats);
  });
}

test("the stored objects of a resource are known by its name and group", () => {
  const asked: string[] = [];
  const storedObjects = (resource: string) => {
    asked.push(resource);
    return 0;
  };
  for (const url of ["/api/v1/pods", "/apis/apps/v1/deployments"]) {
    estimateWork(requested("GET", url), { storedObjects, watchers: () => 0 });
  }
  assert.deepEqual(asked, ["pods", "deployments.apps"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { type EntryCodec, newEntry } from "../storage/entry.ts";
import { transition } from "../storage/selection.ts";
import type { Entry, WatchEvent, WatchRequest } from "../storage/storage.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { CacheWatcher, groupName, newWatcherIndex } from "./cache-readers.ts";
import { Change } from "./history.ts";

const codec = {
  memory: unlimitedEntries(),
  fieldsOf: ({ metadata, spec }: { metadata: { name: string }; spec: { nodeName: string } }) => ({
    "metadata.name": metadata.name,
    "spec.nodeName": spec.nodeName,
  }),
} as unknown as EntryCodec;

interface State {
  nodeName: string;
  app: string;
}

function anEntry(key: string, revision: number, { nodeName, app }: State): Entry {
  const [namespace = "", name = ""] = key.split("/");
  return newEntry(codec, key, revision, { metadata: { namespace, name, labels: { app } }, spec: { nodeName } } as never);
}

const signal = new AbortController().signal;
const keys = ["a/x", "a/y", "ab/x"];
const someState = fc.record({ nodeName: fc.constantFrom("", "n1", "n2"), app: fc.constantFrom("web", "db") });
const somePrefix = fc.constantFrom("", "a/", "ab/", ...keys);
const someFields = fc.constantFrom(undefined, "", "spec.nodeName=n1", "spec.nodeName=", "spec.nodeName!=n1,metadata.name=x");
const someLabels = fc.constantFrom(undefined, LabelSelector.nothing, ...["", "app=web", "app!=web"].map(LabelSelector.parse));
const someRequest = fc
  .record({ prefix: somePrefix, fields: someFields, labels: someLabels })
  .map(({ prefix, fields, labels }): WatchRequest => {
    return { prefix, signal, ...(fields !== undefined && { fields: FieldSelector.parse(fields) }), ...(labels && { labels }) };
  });

const reported = (event: WatchEvent): unknown[] =>
  "entry" in event ? [event.type, event.entry.key, event.entry.revision, event.entry.labels] : [event.type];

test("each watcher gets the changes after its revision that its selection matches, while others start and stop", () => {
  const someWatcher = fc.record({ request: someRequest, from: fc.nat(10), until: fc.nat(20), after: fc.nat(6) });
  const someChange = fc.record({ key: fc.constantFrom(...keys), state: fc.option(someState, { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(someWatcher, { maxLength: 8 }), fc.array(someChange, { maxLength: 20 }), (plans, changes) => {
      const index = newWatcherIndex(["spec.nodeName"]);
      const watchers = plans.map(({ request, after }) => {
        return new CacheWatcher(index.groupOf(request), after, new WatchQueue({ signal }));
      });
      const wanted: WatchEvent[][] = plans.map(() => []);
      const present = new Map<string, Entry>();
      for (const [at, { key, state }] of changes.entries()) {
        for (const [i, { from, request, after }] of plans.entries()) {
          if (from !== at) continue;
          watchers[i] = new CacheWatcher(index.groupOf(request), after, new WatchQueue({ signal }));
          index.add(watchers[i]);
        }
        for (const [i, { until }] of plans.entries()) if (until === at) index.remove(watchers[i] as CacheWatcher);
        const revision = at + 1;
        const previous = present.get(key);
        const current = state && anEntry(key, revision, state);
        if (current === undefined) present.delete(key);
        else present.set(key, current);
        index.dispatch(new Change(key, revision, previous, current));
        for (const [i, { request, from, until, after }] of plans.entries()) {
          const { prefix } = request;
          const covered = prefix === "" || key === prefix || (prefix.endsWith("/") && key.startsWith(prefix));
          const event = covered ? transition(request, previous, current, revision) : undefined;
          if (event !== undefined && from <= at && !(from <= until && until <= at) && revision > after) wanted[i]?.push(event);
        }
      }
      assert.deepEqual(
        watchers.map(({ queue }) => queue.take().map(reported)),
        wanted.map((events) => events.map(reported)),
      );
    }),
  );
});

test("a slow watcher is removed during the delivery of an event, and the others get the event", () => {
  const index = newWatcherIndex([]);
  const request: WatchRequest = { prefix: "", signal };
  const [first, slow, last] = [10, 1, 10].map((limit) => {
    const queue = new WatchQueue({ limit, signal, onStop: () => index.remove(watcher) });
    const watcher = new CacheWatcher(index.groupOf(request), 0, queue);
    index.add(watcher);
    return watcher;
  }) as [CacheWatcher, CacheWatcher, CacheWatcher];
  for (const revision of [1, 2, 3]) {
    const entry = anEntry("a/x", revision, { nodeName: "", app: "web" });
    index.dispatch(new Change("a/x", revision, undefined, entry));
  }
  assert.deepEqual(index.all(), [first, last]);
  assert.deepEqual([slow.queue.overflowed, slow.queue.take()], [true, []]);
  for (const { queue } of [first, last]) assert.equal(queue.take().length, 3);
});

test("requests for the same objects share one group, others do not", () => {
  const index = newWatcherIndex([]);
  const requestOf = (prefix: string, fields?: string, labels?: LabelSelector): WatchRequest => {
    return { prefix, signal, ...(fields !== undefined && { fields: FieldSelector.parse(fields) }), ...(labels && { labels }) };
  };
  const watcher = new CacheWatcher(index.groupOf(requestOf("a/")), 0, new WatchQueue({ signal }));
  index.add(watcher);
  assert.equal(index.groupOf(requestOf("a/", "", LabelSelector.everything)), watcher.group);
  index.remove(watcher);
  assert.notEqual(index.groupOf(requestOf("a/")), watcher.group, "the last one has left");
  const others = [
    requestOf("a/", undefined, LabelSelector.nothing),
    requestOf("a/", "metadata.name=x"),
    requestOf("a/", "metadata.name=x\n"),
    requestOf("a"),
  ];
  const names = [requestOf("a/"), ...others, requestOf('a/",true,"'), requestOf("a/\n\nmetadata.name=x")].map(groupName);
  assert.equal(new Set(names).size, names.length);
});

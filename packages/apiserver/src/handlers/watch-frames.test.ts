import assert from "node:assert/strict";
import { test } from "node:test";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { frameWatchEvent } from "@coxswain/apimachinery/objects/codec/stream";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import type { Call } from "./env.ts";
import { watchMetricsOf } from "./metrics.ts";
import type { Output } from "./negotiation.ts";
import { framerFor } from "./watch-frames.ts";

const json: Output = { mediaType: "application/json", pretty: false, stream: true, indent: false };
const call = { served: { watchFramers: new Map(), kind: { group: "", version: "v1", kind: "ConfigMap" }, isHub: true } } as Call;

function anEntry(name: string): Entry {
  const memo = new Map<string, unknown>();
  return {
    key: name,
    json: () => Buffer.from(`{"name":"${name}"}`),
    memo<T>(slot: string, make: (entry: Entry) => T): T {
      if (!memo.has(slot)) memo.set(slot, make(this));
      return memo.get(slot) as T;
    },
    with: (object: unknown) => ({ ...anEntry(name), json: () => Buffer.from(JSON.stringify(object)) }),
  } as Entry;
}

const added = (name: string): WatchEvent => ({ type: "ADDED", entry: anEntry(name) });

test("watches that see the same in one turn share its bytes", async () => {
  const events = [added("a"), added("b")];
  const [first, second] = [framerFor(call, json), framerFor(call, json)];
  const batch = first(events);
  assert.equal(batch.bytes.toString(), '{"type":"ADDED","object":{"name":"a"}}\n{"type":"ADDED","object":{"name":"b"}}\n');
  assert.equal(second([...events]), batch);
  assert.equal(second([events[0] as WatchEvent]).frames[0], batch.frames[0], "with a selection that sees fewer");
  await Promise.resolve();
  const later = second([...events]);
  assert.deepEqual(later, batch);
  assert.notEqual(later.frames[0], batch.frames[0], "the frame is not cached any more");
});

test("frames are counted for each watch that gets them, at the latest at the end of the turn", async () => {
  const registry = newMetricsRegistry();
  const served = { ...call.served, watchFramers: new Map() };
  const counted = { ...call, served } as Call;
  const metrics = watchMetricsOf(registry, served);
  const [some, more] = [[added("a")], [added("a"), added("longer")]];
  for (const events of [some, some, more, some]) framerFor(counted, json, metrics)(events);
  const own = framerFor(counted, json, metrics, (entry) => entry.with({ metadata: {} }));
  own(some);
  await Promise.resolve();
  assert.equal(metrics.events.value, 1 + 1 + 2 + 1 + 1);
  const lines = (await registry.render()).split("\n").filter((line) => /_sizes_(count|sum)/.test(line));
  const [a, longer, changed] = [some, more.slice(1)]
    .map((events) => framerFor(call, json)(events).bytes.length)
    .concat(own(some).bytes.length);
  assert.deepEqual(
    lines.map((line) => Number(line.split(" ")[1])),
    [4 * (a as number) + (longer as number) + (changed as number), 6],
  );
});

test("a watch that shows objects in its own way shares nothing", () => {
  const events = [added("a")];
  const plain = framerFor(call, json)(events);
  const own = framerFor(call, json, undefined, (entry) => entry.with({ metadata: { name: "mine" } }))(events);
  assert.equal(own.bytes.toString(), '{"type":"ADDED","object":{"metadata":{"name":"mine"}}}\n');
  assert.equal(framerFor(call, json)(events), plain);
});

test("in one turn the same object is added for one watch and modified for another; lists that begin alike are not the same", () => {
  const [first, second, third] = [added("a"), added("b"), added("c")];
  const changed = { ...first, type: "MODIFIED" } as WatchEvent;
  const frame = (...events: WatchEvent[]): string => framerFor(call, json)(events).bytes.toString();
  assert.match(frame(first), /"ADDED"/);
  assert.match(frame(changed), /"MODIFIED"/);
  assert.notEqual(frame(first, second), frame(first, third));
});

test("a batch ends with the event that makes 64 KiB full, and has one event at least", () => {
  const half = "x".repeat(32 * 1024);
  const events = [added(half), added(half), added("rest"), added("x".repeat(100 * 1024)), added("last")];
  const counts: number[] = [];
  for (let rest = events; rest.length > 0; rest = rest.slice(counts.at(-1)))
    counts.push(framerFor(call, json)(rest).frames.length);
  assert.deepEqual(counts, [2, 2, 1]);
});

test("metadata is framed in the version that was requested", () => {
  const entry = { ...anEntry("a"), object: () => ({ metadata: { name: "a" } }) } as unknown as Entry;
  for (const version of ["v1", "v1beta1"]) {
    const { bytes } = framerFor(call, { ...json, as: "PartialObjectMetadata", version })([{ type: "ADDED", entry }]);
    assert.equal(JSON.parse(bytes.toString()).object.apiVersion, `meta.k8s.io/${version}`);
  }
});

for (const { as, kind } of [
  { kind: { group: "", version: "v1", kind: "ConfigMap" } },
  { as: "PartialObjectMetadata", kind: { group: "meta.k8s.io", version: "v1", kind: "PartialObjectMetadata" } },
] as { as?: "PartialObjectMetadata"; kind: GroupVersionKind }[]) {
  test(`a bookmark ${as === undefined ? "" : "of metadata "}has kind, version and revision alone, in JSON and in protobuf`, () => {
    const apiVersion = formatGroupVersion(kind);
    const object = { kind: kind.kind, apiVersion, metadata: { resourceVersion: "10", creationTimestamp: null } };
    const event: WatchEvent = { type: "BOOKMARK", revision: 10 };
    const output = { ...json, ...(as && { as, version: "v1" }) };
    assert.deepEqual(JSON.parse(framerFor(call, output)([event]).bytes.toString()), { type: "BOOKMARK", object });
    const { bytes } = framerFor(call, { ...output, mediaType: protobufMediaType })([event]);
    assert.deepEqual(bytes, frameWatchEvent("BOOKMARK", encodeProtobuf(object as never, kind), protobufMediaType));
  });
}

test("an error ends its frame with one line break, whatever form the watch has", () => {
  const error = new StatusError({ status: "Failure", code: 410, message: "too old" } as never);
  for (const as of [undefined, "PartialObjectMetadata"] as const) {
    const { bytes } = framerFor(call, { ...json, ...(as && { as }) })([{ type: "ERROR", error }]);
    assert.match(bytes.toString(), /^\{"type":"ERROR","object":\{[^\n]*"code":410\}\}\n$/);
  }
});

test("a table names its columns in its first event, also when that is a bookmark, and in each watch anew", () => {
  const definition = { table: { columns: [{ name: "A", type: "string" }], cells: () => [] } };
  const services = { now: () => 0 };
  const tableCall = { ...call, env: { services }, ctx: { query: new URLSearchParams() }, served: { ...call.served, definition } };
  for (let watch = 0; watch < 2; watch++) {
    const framer = framerFor(tableCall as unknown as Call, { ...json, as: "Table" });
    const columns = [1, 2].map((revision) => {
      const { bytes } = framer([{ type: "BOOKMARK", revision }]);
      return JSON.parse(bytes.toString()).object.columnDefinitions?.length;
    });
    assert.deepEqual(columns, [1, undefined]);
  }
});

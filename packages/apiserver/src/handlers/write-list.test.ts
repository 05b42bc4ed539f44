/** Lists whose client accepts gzip, disconnects, or resets the connection in the middle. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { createGzip, type Gzip, gunzipSync } from "node:zlib";
import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { jsonMediaType, protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { decodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Entry, ListResult } from "../storage/storage.ts";
import { type Call, handlerGates } from "./env.ts";
import { ListBodies } from "./list-body.ts";
import type { Output } from "./negotiation.ts";
import { writeList } from "./write-list.ts";

const kind = { group: "", version: "v1", kind: "ConfigMap" };

function anEntry(name: string): Entry {
  // Random, so that it stays long when compressed.
  const text = Array.from({ length: 3000 }, () => Math.random().toString(36).slice(2)).join("");
  const object = { kind: "ConfigMap", apiVersion: "v1", metadata: { name }, data: { text } } as unknown as KubeObject;
  const json = encodeJson(object, kind);
  const kept = (_slot: string, make: (object: KubeObject) => Buffer) => make(object);
  const keptSize = (slot: string, make: (object: KubeObject) => Buffer) => kept(slot, make).length;
  return { key: name, revision: 7, object: () => object, json: () => json, kept, keptSize } as unknown as Entry;
}
const entries = Array.from({ length: 30 }, (_, i) => anEntry(`map-${i}`));

/**
 * @param drained called after each chunk, when the client has not read all of it
 * @param found replaces the long list
 */
function listTo(
  mediaType: string,
  gzip: boolean,
  drained: (aborted: AbortController) => Promise<void>,
  found: ListResult = { entries, revision: 9 },
  { indent = false, ...definition }: { custom?: boolean; itemsKeepKind?: boolean; indent?: boolean } = {},
) {
  const aborted = new AbortController();
  const seen = { chunks: [] as Buffer[], headers: {} as Record<string, unknown>, ended: false, destroyed: false };
  const response = {
    write: (chunk: Buffer) => seen.chunks.push(chunk) === 0,
    drained: () => drained(aborted),
    end: () => (seen.ended = true),
  };
  const exchange = {
    headers: gzip ? { "accept-encoding": "gzip" } : {},
    stream(_code: number, headers: Record<string, unknown>) {
      seen.headers = headers;
      return response;
    },
    destroy: () => (seen.destroyed = true),
    respond: (_code: number, headers: Record<string, unknown>, body: Buffer) => {
      seen.headers = headers;
      seen.chunks.push(body);
    },
  };
  const call = {
    env: {
      listBodies: new ListBodies(new ByteShare(1024)),
      services: { turns: new Turns(), featureEnabled: () => true },
      gates: handlerGates(() => true),
    },
    served: { definition: { listKind: "ConfigMapList", ...definition }, kind, hubKind: kind, isHub: true },
    ctx: { exchange, signal: aborted.signal, query: new URLSearchParams() },
  } as unknown as Call;
  const done = writeList(call, found, { mediaType, indent } as Output);
  return { seen, done, signal: aborted.signal };
}

for (const mediaType of [jsonMediaType, protobufMediaType]) {
  test(`${mediaType}: a compressed list is complete, has no length, and leaves no listener behind`, async () => {
    const { seen, done, signal } = listTo(mediaType, true, async () => {});
    await done;
    assert.ok(seen.ended);
    assert.equal(seen.headers["content-encoding"], "gzip");
    assert.equal(seen.headers["content-length"], undefined);
    assert.ok(gunzipSync(Buffer.concat(seen.chunks)).includes("map-29"));
    assert.deepEqual(getEventListeners(signal, "abort"), []);
  });
}

test("writing a list ends when its client has disconnected", async () => {
  const { seen, done } = listTo(jsonMediaType, false, async (aborted) => aborted.abort());
  await done;
  assert.ok(seen.destroyed && !seen.ended);
  assert.equal(seen.chunks.length, 1);
});

for (const mediaType of [jsonMediaType, protobufMediaType]) {
  for (const { name, of = [], metadata } of [
    {
      name: "of an empty page has its continue token and the number of items left",
      metadata: { continue: "token", remainingItemCount: 300 },
    },
    {
      name: "of all items but one has its continue token and the number of items left",
      of: entries.slice(0, 1),
      metadata: { continue: "token", remainingItemCount: 1 },
    },
    { name: "of which nothing is left says so", of: entries.slice(0, 1), metadata: { remainingItemCount: 0 } },
    { name: "of all items has neither", metadata: {} },
  ] as { name: string; of?: Entry[]; metadata: { continue?: string; remainingItemCount?: number } }[]) {
    test(`${mediaType}: a list ${name}`, async () => {
      const { remainingItemCount, continue: continueToken } = metadata;
      const found = {
        ...{ entries: of, revision: 9 },
        ...(continueToken !== undefined && { continueToken }),
        ...(remainingItemCount !== undefined && { remainingItemCount }),
      };
      const { seen, done } = listTo(mediaType, false, async () => {}, found);
      await done;
      const body = Buffer.concat(seen.chunks);
      const list = mediaType === jsonMediaType ? JSON.parse(body.toString()) : decodeProtobuf(body);
      assert.deepEqual({ ...list.metadata }, { resourceVersion: "9", ...metadata });
      assert.equal((list.items ?? []).length, of.length);
    });
  }
}

for (const { of, custom, found, want } of [
  { of: "built-in objects", custom: false, found: {}, want: '{"resourceVersion":"9"}' },
  { of: "custom resources", custom: true, found: {}, want: '{"continue":"","resourceVersion":"9"}' },
  { of: "more custom resources", custom: true, found: { continueToken: "t" }, want: '{"continue":"t","resourceVersion":"9"}' },
]) {
  test(`a complete list of ${of} says ${want}`, async () => {
    const { seen, done } = listTo(jsonMediaType, false, async () => {}, { entries: [], revision: 9, ...found }, { custom });
    await done;
    assert.ok(Buffer.concat(seen.chunks).includes(`"metadata":${want},"items":[]`), Buffer.concat(seen.chunks).toString());
  });
}

test("the second chunk of a list waits until its client has read the first one", async () => {
  const read = Promise.withResolvers<void>();
  let writes = 0;
  // The client reads the beginning at once.
  const { seen, done } = listTo(jsonMediaType, false, () => (writes++ === 0 ? Promise.resolve() : read.promise));
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  assert.deepEqual([seen.chunks.length, seen.ended], [2, false]);
  read.resolve();
  await done;
  assert.ok(seen.ended && seen.chunks.length > 3);
});

const never = () => new Promise<void>(() => {});
for (const { name, drained } of [
  {
    name: "whose client disconnects while it waits for it",
    drained: (aborted: AbortController) => {
      setImmediate(() => aborted.abort());
      return never();
    },
  },
  { name: "whose connection breaks", drained: () => Promise.reject(new Error("reset")) },
]) {
  test(`a compressed list ${name} is given up`, async () => {
    const { seen, done } = listTo(jsonMediaType, true, drained);
    let ended = "";
    done.then(
      () => (ended = "ended"),
      () => (ended = "failed"),
    );
    const outcome = await waitFor(() => ended, { what: "the list to be given up" });
    assert.ok(outcome === "failed" || seen.destroyed, outcome);
    assert.ok(!seen.ended);
  });
}

for (const { name, drained } of [
  { name: "is told so while it waits", drained: (aborted: AbortController) => (setImmediate(() => aborted.abort()), never()) },
  { name: "is told so between two chunks", drained: async (aborted: AbortController) => aborted.abort() },
  { name: "sees the connection break", drained: () => Promise.reject(new Error("reset")) },
]) {
  test(`a compressed list that ${name} leaves no compressor behind`, async (t) => {
    const compressors = new Set<Gzip>();
    const on = t.mock.method(Object.getPrototypeOf(createGzip()), "on");
    const { done } = listTo(jsonMediaType, true, drained);
    await done.catch(() => {});
    for (const { this: compressor } of on.mock.calls) compressors.add(compressor as Gzip);
    assert.equal(compressors.size, 1);
    for (const compressor of compressors) await waitFor(() => compressor.destroyed, { what: "the compressor to be destroyed" });
  });
}

for (const { form, mediaType, indent } of [
  { form: "indented JSON", mediaType: jsonMediaType, indent: true },
  { form: "YAML", mediaType: yamlMediaType, indent: false },
]) {
  for (const { of, itemsKeepKind } of [
    { of: "built-in objects have neither kind nor apiVersion", itemsKeepKind: false },
    { of: "custom resources have both", itemsKeepKind: true },
  ]) {
    test(`${form}: items of ${of}`, async () => {
      const found = { entries: entries.slice(0, 2), revision: 9 };
      const { seen, done } = listTo(mediaType, false, async () => {}, found, { indent, itemsKeepKind });
      await done;
      const list = parseYaml(Buffer.concat(seen.chunks).toString()) as { items: KubeObject[] };
      const names = list.items.map(({ kind, apiVersion, metadata }) => [kind, apiVersion, metadata.name]);
      const [ofKind, version] = itemsKeepKind ? ["ConfigMap", "v1"] : [undefined, undefined];
      assert.deepEqual(names, [
        [ofKind, version, "map-0"],
        [ofKind, version, "map-1"],
      ]);
    });
  }
}

test("YAML: large items are encoded ahead and kept, others are not", async () => {
  const calls: string[] = [];
  const watched = (entry: Entry, isLarge: boolean) => ({
    ...entry,
    isLarge,
    *keepInSteps(slot: string, make: (object: KubeObject) => Steps<Buffer>): Steps<void> {
      calls.push(`${entry.key} ahead in ${slot}: ${String(yield* make(entry.object())).slice(0, 2)}`);
    },
    kept(slot: string, make: (object: KubeObject) => Buffer): Buffer {
      calls.push(`${entry.key} from ${slot}`);
      return make(entry.object());
    },
  });
  const found = [true, false, true].map((isLarge, i) => watched(entries[i]!, isLarge)) as unknown[] as Entry[]; // cast: as `anEntry`
  const { seen, done } = listTo(yamlMediaType, false, async () => {}, { entries: found, revision: 9 });
  await done;
  const slot = "yaml:v1";
  assert.deepEqual(calls, [
    `map-0 ahead in ${slot}: - `,
    `map-2 ahead in ${slot}: - `,
    `map-0 from ${slot}`,
    `map-2 from ${slot}`,
  ]);
  const { items } = parseYaml(Buffer.concat(seen.chunks).toString()) as { items: KubeObject[] };
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    ["map-0", "map-1", "map-2"],
  );
});

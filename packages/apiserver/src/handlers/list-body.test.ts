import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { jsonMediaType, protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { decodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { Entry, ListResult } from "../storage/storage.ts";
import type { Call } from "./env.ts";
import { handlerGates } from "./env.ts";
import { ListBodies, type ListBody, varint } from "./list-body.ts";
import type { Output } from "./negotiation.ts";
import type { ServedResource } from "./served-resources.ts";
import { writeList } from "./write-list.ts";

const kind = { group: "", version: "v1", kind: "ConfigMap" };
const served = { definition: { listKind: "ConfigMapList" }, kind, hubKind: kind, isHub: true } as unknown as ServedResource;

function anEntry(name: string, bytes: number): Entry {
  const data = { text: "x".repeat(bytes) };
  const object = { kind: "ConfigMap", apiVersion: "v1", metadata: { name, resourceVersion: "7" }, data } as unknown as KubeObject;
  let json: Buffer | undefined;
  let kept: Buffer | undefined;
  const keep = (make: (object: KubeObject) => Buffer): Buffer => {
    kept ??= make(object);
    return kept;
  };
  return {
    key: name,
    revision: 7,
    object: () => object,
    json() {
      json ??= encodeJson(object, kind);
      return json;
    },
    kept: (_slot: string, make: (object: KubeObject) => Buffer) => keep(make),
    keptSize: (_slot: string, make: (object: KubeObject) => Buffer) => keep(make).length,
  } as unknown as Entry;
}

const entriesOf = (count: number, bytes: number): Entry[] => Array.from({ length: count }, (_, i) => anEntry(`map-${i}`, bytes));

function readAll(body: ListBody): Buffer[] {
  const chunks: Buffer[] = [];
  for (let chunk = body.chunk(0); chunk !== undefined; chunk = body.chunk(chunks.length)) chunks.push(chunk);
  return chunks;
}

describe("a hundred long lists at once", () => {
  const result: ListResult = { entries: entriesOf(5000, 1500), revision: 9 };

  for (const mediaType of [jsonMediaType, protobufMediaType]) {
    test(`${mediaType}: the event loop is not blocked, and no response is more than a chunk ahead of its client`, async () => {
      let clients: ReturnType<typeof aClient>[] = [];
      let wholeMs = 0;
      const longestMs = await longestTurnOf(60, async () => {
        const before = process.threadCpuUsage();
        clients = Array.from({ length: 100 }, (_, i) => aClient(i === 0));
        // Separate lists, so that each of them is encoded.
        await Promise.all(
          clients.map((client) => writeList(client.call, { ...result, entries: [...result.entries] }, { mediaType } as Output)),
        );
        const { user, system } = process.threadCpuUsage(before);
        wholeMs = Math.max(wholeMs, (user + system) / 1000);
      });
      // On a busy machine everything takes more CPU time, because the processor's caches are shared.
      assert.ok(longestMs < Math.max(60, wholeMs / 8), `one turn of the loop took ${longestMs} of ${wholeMs} ms of CPU`);
      for (const client of clients) {
        assert.ok(client.mostAhead < 256 * 1024, `${client.mostAhead} bytes ahead`);
        assert.ok(client.complete);
      }
      const body = (clients[0] as ReturnType<typeof aClient>).body();
      const list = mediaType === jsonMediaType ? JSON.parse(body.toString()) : decodeProtobuf(body);
      assert.equal(list.kind, "ConfigMapList");
      assert.equal(list.items.length, 5000);
      assert.equal(list.items[4999].metadata.name, "map-4999");
    });
  }
});

describe("the bytes of a list", () => {
  const share = new ByteShare(64 * 1024 * 1024);
  const bodies = new ListBodies(share);

  test("chunks are cached from the second reader on, until the list changes", () => {
    const entries = entriesOf(50, 20_000);
    const [first, second, third] = [1, 2, 3].map(() => readAll(bodies.json(entries, served)));
    assert.ok(first && second && third && first.length > 3);
    assert.deepEqual(Buffer.concat(second), Buffer.concat(first));
    assert.notEqual(second[1], first[1]);
    assert.equal(third[1], second[1]);
    assert.notEqual(readAll(bodies.json([...entries], served))[1], second[1]);
  });

  test("responses whose rows show ages are shared within a second and made again in the next", () => {
    const entries = entriesOf(5, 100);
    const bodyAt = (second: number) => bodies.shared(entries, "rows", () => () => [Buffer.from(`${second};`)], second);
    const [first, second] = [bodyAt(1), bodyAt(1)];
    assert.equal(second, first);
    assert.equal(Buffer.concat(readAll(second)).toString(), "1;1;1;1;1;"); // in how many chunks depends on the time it takes
    assert.equal(Buffer.concat(readAll(bodyAt(2))).toString(), "2;2;2;2;2;");
  });

  test("a chunk that is encoded again ends at the same element, however long it takes", () => {
    const entries = entriesOf(40, 20);
    const inMs = { now: 4 };
    const bytesOf = (entry: Entry) => {
      for (const until = performance.now() + inMs.now; performance.now() < until; ); // simulate an item that has to be encoded
      return [Buffer.from(`${entry.key};`)];
    };
    const body = bodies.shared(entries, "slow", () => bytesOf);
    const slow = readAll(body);
    inMs.now = 0;
    const fast = readAll(bodies.shared(entries, "slow", () => bytesOf));
    assert.equal(slow.length, entries.length);
    assert.deepEqual(fast, slow);
  });

  test("cached bodies stay within the byte limit, and evicted ones are encoded again with the same bytes", () => {
    const lists = Array.from({ length: 12 }, () => entriesOf(8, 1024 * 1024));
    const before = lists.map((entries) => Buffer.concat(readAll(bodies.json(entries, served))));
    for (const entries of lists) for (let reader = 0; reader < 2; reader++) readAll(bodies.json(entries, served));
    assert.ok(share.bytes > share.limitBytes / 2, String(share.bytes));
    assert.ok(share.bytes <= share.limitBytes, String(share.bytes));
    for (const [i, entries] of lists.entries()) {
      assert.ok(Buffer.concat(readAll(bodies.json(entries, served))).equals(before[i] as Buffer));
    }
  });
});

for (const { of, itemsKeepKind, want } of [
  { of: "built-in items lack", itemsKeepKind: undefined, want: [undefined, undefined] },
  { of: "custom resources keep", itemsKeepKind: true, want: ["ConfigMap", "v1"] },
]) {
  test(`${of} kind and version in a list`, () => {
    const definition = { ...served.definition, itemsKeepKind } as ServedResource["definition"];
    const body = new ListBodies(new ByteShare(1000)).json(entriesOf(2, 10), { ...served, definition });
    const items = JSON.parse(`[${Buffer.concat(readAll(body))}]`) as KubeObject[];
    assert.deepEqual(
      items.map(({ kind: of, apiVersion, metadata }) => [of, apiVersion, metadata.name]),
      ["map-0", "map-1"].map((name) => [...want, name]),
    );
  });
}

test("chunks that do not fit are made for each reader, and one that was read again outlives the others", () => {
  const oneEach = (owner: string) => [anEntry(owner, 130 * 1024)];
  const small = new ListBodies(new ByteShare(1000));
  const refused = oneEach("refused");
  readAll(small.json(refused, served));
  assert.notEqual(readAll(small.json(refused, served))[0], readAll(small.json(refused, served))[0]);

  const bodies = new ListBodies(new ByteShare(300 * 1024, 150 * 1024)); // two chunks
  const read = (entries: Entry[]) => readAll(bodies.json(entries, served))[0];
  const [a, b, c] = [oneEach("a"), oneEach("b"), oneEach("c")];
  for (const entries of [a, b, c]) bodies.json(entries, served); // the first reader, who caches nothing
  const [keptA, keptB] = [read(a), read(b)];
  assert.equal(read(a), keptA);
  read(c);
  assert.equal(read(a), keptA, "used since it was kept");
  assert.notEqual(read(b), keptB, "dropped");
});

test("a list of one chunk has no continue token", (t) => {
  t.mock.method(performance, "now", () => 0); // a chunk ends early on a busy machine
  const body = new ListBodies(new ByteShare(1024)).json(entriesOf(2, 10), served);
  assert.ok(body.chunk(0));
  assert.equal(body.hasAfter(0), false);
});

for (const [value, bytes] of [
  [0, [0]],
  [127, [127]],
  [128, [128, 1]],
  [2 ** 35, [128, 128, 128, 128, 128, 1]],
] as const) {
  test(`the varint of ${value}`, () => assert.deepEqual([...varint(value)], bytes));
}

/** A client that reads one event-loop turn later. @param keeps whether it stores the data */
function aClient(keeps = false) {
  const chunks: Buffer[] = [];

  let ahead = 0;
  let drained = Promise.resolve();
  const client = { mostAhead: 0, complete: false, body: () => Buffer.concat(chunks), call: undefined as unknown as Call };
  const response = {
    write(chunk: Buffer) {
      if (keeps) chunks.push(chunk);
      ahead += chunk.length;
      client.mostAhead = Math.max(client.mostAhead, ahead);
      drained = new Promise((resolve) =>
        setImmediate(() => {
          ahead = 0;
          resolve();
        }),
      );
      return false;
    },
    drained: () => drained,
    end() {
      client.complete = true;
    },
  };
  const exchange = { headers: {}, stream: () => response, destroy() {} };
  client.call = {
    env: {
      listBodies: new ListBodies(new ByteShare(64 * 1024 * 1024)),
      services: { turns: new Turns(), featureEnabled: () => true },
      gates: handlerGates(() => true),
    },
    served,
    ctx: { exchange, signal: new AbortController().signal, query: new URLSearchParams() },
  } as unknown as Call;
  return client;
}

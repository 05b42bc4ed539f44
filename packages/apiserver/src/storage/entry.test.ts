import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { ByteShare, idleMs } from "@coxswain/apimachinery/process/memory/byte-share";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import { type EntryCodec, EntryMemory, newEntry } from "./entry.ts";

const limit = 128 * 1024 * 1024;
const encodings = new ByteShare(limit);

const codec: EntryCodec = {
  toJson: (object) => JSON.stringify(object),
  *toJsonInSteps(object) {
    yield;
    return JSON.stringify(object);
  },
  fromStored: (bytes) => JSON.parse(bytes.toString()) as KubeObject,
  fromJson: (bytes) => JSON.parse(bytes.toString()) as KubeObject,
  fieldsOf: () => ({}),
  memory: new EntryMemory(encodings),
};

const anEntry = (name: string) => newEntry(codec, name, 3, { metadata: { name } });

test("kept bytes outlive the object, and are made once", () => {
  const entry = anEntry("a");
  let made = 0;
  const make = (object: KubeObject): Buffer => Buffer.from(`${object.metadata.name} ${++made}`);
  assert.equal(entry.kept("x", make).toString(), "a 1");
  entry.cool();
  assert.equal(entry.kept("x", make).toString(), "a 1");
  assert.equal(entry.kept("y", make).toString(), "a 2");
  assert.equal(entry.keptSize("x", make), 3);
});

test("kept bytes stay within their limit, those that are used the longest; a size is known for ever", () => {
  const size = 4 * 1024 * 1024;
  const often = anEntry("often");
  let made = 0;
  const make = (): Buffer => {
    made++;
    return Buffer.allocUnsafeSlow(size);
  };
  const entries = Array.from({ length: 64 }, (_, i) => anEntry(`entry-${i}`));
  for (const entry of entries) {
    entry.kept("x", make);
    const before = made;
    often.kept("x", make);
    assert.ok(made === before || entry === entries[0], "what is used again and again is not dropped");
    assert.ok(encodings.bytes <= limit, String(encodings.bytes));
  }
  assert.ok(encodings.bytes > limit / 2);
  const before = made;
  for (const entry of entries) assert.equal(entry.keptSize("x", make), size);
  assert.equal(made, before);
  assert.equal(entries[0]?.kept("x", make).length, size);
  assert.equal(made, before + 1, "dropped, so made again");
});

test("an object's JSON is also there as a line, in the same memory", () => {
  const entry = anEntry("a");
  const json = entry.json();
  assert.equal(entry.jsonLine().toString(), `${json}\n`);
  assert.equal(entry.jsonLine().buffer, json.buffer);
  entry.cool();
  assert.equal(entry.jsonLine().toString(), `${json}\n`);
});

test("an entry of a first list holds what etcd holds until its JSON is requested", () => {
  const calls: string[] = [];
  const counting: EntryCodec = {
    ...codec,
    toJson(object) {
      calls.push("encode");
      return codec.toJson(object);
    },
    fromStored(bytes) {
      calls.push("decode");
      return codec.fromStored(bytes);
    },
  };
  const stored = Buffer.from('{"metadata":{"name":"a"}}');
  const entry = newEntry(counting, "a", 3, codec.fromStored(stored));
  entry.cool(stored);
  assert.deepEqual(calls, []);
  assert.deepEqual(entry.object(), { metadata: { name: "a", resourceVersion: "3" } });
  entry.cool();
  assert.deepEqual(calls, ["decode"], "still no JSON");
  const json = entry.json().toString();
  assert.equal(json, '{"metadata":{"name":"a","resourceVersion":"3"}}');
  assert.deepEqual(calls, ["decode", "decode", "encode"]);
  assert.deepEqual(entry.object(), { metadata: { name: "a", resourceVersion: "3" } });
  assert.deepEqual(calls, ["decode", "decode", "encode"], "from the JSON now");
});

test("an entry of a first list that stays decoded is not decoded again until it is cooled, and then from what etcd holds", () => {
  const calls: string[] = [];
  const counting: EntryCodec = {
    ...codec,
    toJson(object) {
      calls.push("encode");
      return codec.toJson(object);
    },
    fromStored(bytes) {
      calls.push("decode");
      return codec.fromStored(bytes);
    },
  };
  const stored = Buffer.from('{"metadata":{"name":"a"}}');
  const entry = newEntry(counting, "a", 3, codec.fromStored(stored));
  entry.stayWarm(stored);
  const want = { metadata: { name: "a", resourceVersion: "3" } };
  assert.deepEqual([entry.object(), entry.object(), calls], [want, want, []]);
  entry.cool();
  assert.deepEqual([entry.object(), calls], [want, ["decode"]]);
});

test("entries of a first list that stay decoded make room for others", () => {
  let decoded = 0;
  const counting: EntryCodec = {
    ...codec,
    fromStored(bytes) {
      decoded++;
      return codec.fromStored(bytes);
    },
    memory: new EntryMemory(encodings),
  };
  const stored = Buffer.from('{"metadata":{"name":"a"}}');
  const first = newEntry(counting, "a", 3, codec.fromStored(stored));
  first.stayWarm(stored);
  for (let i = 0; i < 3 * 4_096; i++) newEntry(counting, `b-${i}`, 3, codec.fromStored(stored)).stayWarm(stored);
  first.object();
  assert.equal(decoded, 1);
});

test("cached bytes that are no longer read are evicted for new ones; those in use stay", (t) => {
  let now = performance.now();
  t.mock.method(performance, "now", () => now);
  let made = 0;
  const make = (): Buffer => {
    made++;
    return Buffer.alloc(1_000);
  };
  const [left, used, other] = [anEntry("left"), anEntry("used"), anEntry("other")];
  for (const entry of [left, used]) entry.kept("x", make);
  used.kept("x", make);
  const before = encodings.bytes;
  now += idleMs + 1;
  other.kept("x", make);
  assert.ok(encodings.bytes <= before, "one went and one came");
  assert.equal(made, 3);
  used.kept("x", make);
  assert.equal(made, 3);
  left.kept("x", make);
  assert.equal(made, 4);
});

test("an entry whose place is taken lets go of its object when it has bytes, and encodes nothing for that", () => {
  const calls: string[] = [];
  const counting: EntryCodec = {
    ...codec,
    toJson(object) {
      calls.push("encode");
      return codec.toJson(object);
    },
  };
  const make = (name: string) => newEntry(counting, name, 3, { metadata: { name } });
  const bare = make("a");
  const object = bare.object();
  bare.retire();
  assert.equal(bare.object(), object, "it has nothing else");

  const written = make("b");
  written.stored(() => Buffer.from('{"metadata":{"name":"b"}}'));
  const before = written.object();
  written.retire();
  assert.deepEqual(calls, []);
  assert.notEqual(written.object(), before);
  assert.deepEqual(written.object(), before);

  const read = make("c");
  const json = read.json();
  read.retire();
  assert.equal(read.json(), json);
  assert.deepEqual(calls, ["encode"]);
});

test("a written entry that is cooled holds what was stored, which later writes compare with, and JSON only after it was read", () => {
  const calls: string[] = [];
  const counting: EntryCodec = {
    ...codec,
    toJson(object) {
      calls.push("encode");
      return codec.toJson(object);
    },
    fromStored(bytes) {
      calls.push("decode");
      return codec.fromStored(bytes);
    },
    fromJson(bytes) {
      calls.push("parse");
      return codec.fromJson(bytes);
    },
  };
  const again = (): Buffer => assert.fail("it is known");
  const stored = Buffer.from('{"metadata":{"name":"a"}}');
  const entry = newEntry(counting, "a", 3, codec.fromStored(stored));
  entry.stored(() => stored);
  entry.cool();
  assert.deepEqual(entry.object(), { metadata: { name: "a", resourceVersion: "3" } });
  assert.deepEqual([entry.encoded, entry.stored(again)], [stored, stored]);
  entry.cool();
  assert.deepEqual([entry.encoded, entry.sizeBytes, calls], [stored, stored.length, ["decode"]]);
  assert.equal(entry.json().toString(), '{"metadata":{"name":"a","resourceVersion":"3"}}');
  entry.cool();
  assert.deepEqual(entry.object(), { metadata: { name: "a", resourceVersion: "3" } });
  assert.deepEqual([entry.encoded, calls], [undefined, ["decode", "decode", "encode", "parse"]]);
});

test("a first entry whose stored form was encoded again holds that one, with defaults that etcd's bytes may lack", () => {
  const found = Buffer.from('{"metadata":{"name":"a"}}');
  const encoded = Buffer.from('{"metadata":{"name":"a"},"kind":"Pod"}');
  const entry = newEntry(codec, "a", 3, codec.fromStored(encoded));
  entry.stayWarm(found);
  assert.equal(entry.encoded, undefined);
  entry.stored(() => encoded);
  entry.cool();
  assert.equal(entry.encoded, encoded);
  assert.equal(entry.object().kind, "Pod");
});

test("an entry that was cooled and is read again makes room for others again", () => {
  let decoded = 0;
  const counting: EntryCodec = {
    ...codec,
    fromJson(bytes) {
      decoded++;
      return codec.fromJson(bytes);
    },
    memory: new EntryMemory(encodings),
  };
  const make = (name: string) => newEntry(counting, name, 3, { metadata: { name } } as KubeObject);
  const first = make("a");
  first.warm();
  for (let round = 1; round <= 2; round++) {
    first.object();
    for (let i = 0; i < 3 * 4_096; i++) make(`b-${i}`).warm();
    first.object();
    assert.equal(decoded, round);
  }
});

test("an entry that no cache keeps takes no room from others, and is not held by them", () => {
  const memory = new EntryMemory(encodings, 100_000);
  const large = (name: string, isKept: boolean) => {
    const stored = Buffer.from(JSON.stringify({ metadata: { name, annotations: { a: "x".repeat(60_000) } } }));
    const entry = newEntry({ ...codec, memory }, name, 3, codec.fromStored(stored));
    entry.decodedFrom(stored);
    if (isKept) entry.warm();
    return entry;
  };
  const cached = large("cached", true);
  const before = memory.largeBytes;
  assert.ok(before > 60_000, "its size is known before it is encoded");
  const object = cached.object();
  for (let i = 0; i < 10; i++) large(`answer-${i}`, false).object();
  assert.equal(memory.largeBytes, before);
  assert.equal(cached.object(), object);
  large("other", true);
  assert.ok(memory.largeBytes <= 100_000, String(memory.largeBytes));
});

test("a replaced entry that no history holds any more is collected, though fewer entries are decoded than may be", async () => {
  const memory = new EntryMemory(encodings, 4 * 1024 * 1024);
  const replaced = (): WeakRef<object> => {
    const entry = newEntry({ ...codec, memory }, "a", 3, { metadata: { name: "a", annotations: { a: "x".repeat(60_000) } } });
    entry.warm();
    entry.json();
    entry.retire();
    return new WeakRef(entry);
  };
  const refs = Array.from({ length: 10 }, replaced);
  const current = newEntry({ ...codec, memory }, "a", 4, { metadata: { name: "a" } });
  current.warm();
  for (const ref of refs) assert.ok(await isReleased(ref));
  assert.equal(current.object(), current.object(), "the current one stays decoded");
});

test("an entry that is decoded again after it was replaced keeps its place from others, and gives it up again", () => {
  const memory = new EntryMemory(encodings, 4 * 1024 * 1024);
  const entry = newEntry({ ...codec, memory }, "a", 3, { metadata: { name: "a" } });
  entry.warm();
  entry.json();
  entry.retire();
  const again = entry.object();
  assert.equal(entry.object(), again);
  for (let i = 0; i < 3 * 4096; i++) newEntry({ ...codec, memory }, `other-${i}`, 3, { metadata: { name: "b" } }).warm();
  assert.notEqual(entry.object(), again, "evicted by the others in the meantime");
});

test("the last state of a deleted object is decoded from what etcd held, at the revision of its deletion", () => {
  const stored = Buffer.from(JSON.stringify({ metadata: { name: "a", annotations: { a: "x".repeat(60_000) } } }));
  const entry = newEntry(codec, "a", 3, codec.fromStored(stored));
  entry.decodedFrom(stored);
  const deleted = entry.atRevision(4);
  assert.equal(deleted.object().metadata.resourceVersion, "4");
  deleted.warm();
  deleted.retire();
  assert.equal(deleted.object().metadata.resourceVersion, "4");
  assert.equal(entry.object().metadata.resourceVersion, "3");
});

test("large decoded objects stay within a limit by size, those that are used the longest", () => {
  const mostBytes = 4 * 1024 * 1024;
  let decoded = 0;
  const counting: EntryCodec = {
    ...codec,
    fromJson(bytes) {
      decoded++;
      return codec.fromJson(bytes);
    },
    memory: new EntryMemory(encodings, mostBytes),
  };
  const large = (name: string) =>
    newEntry(counting, name, 3, { metadata: { name, annotations: { a: "x".repeat(mostBytes / 8) } } });
  const often = large("often");
  const others = Array.from({ length: 40 }, (_, at) => large(`other-${at}`));
  for (const entry of [often, ...others]) {
    entry.warm();
    entry.json();
    often.object();
    assert.ok((counting.memory?.largeBytes ?? 0) <= mostBytes);
  }
  assert.ok(decoded <= 1, "what is used again and again stays decoded, at the latest from the second round on");
  const before = decoded;
  assert.equal(others[0]?.object().metadata.name, "other-0");
  assert.equal(decoded, before + 1, "dropped, so decoded again");
  for (const entry of others) entry.cool();
  often.cool();
  assert.equal(counting.memory?.largeBytes, 0);
});

test("a large entry is counted with the bytes that it has now, once", () => {
  const memory = new EntryMemory(encodings);
  const object = { metadata: { name: "a", annotations: { a: "x".repeat(20_000) } } };
  const stored = Buffer.from(JSON.stringify(object));
  const entry = newEntry({ ...codec, memory }, "a", 3, object);
  entry.stayWarm(stored);
  assert.equal(memory.largeBytes, stored.length);
  const json = entry.json();
  assert.equal(memory.largeBytes, json.length);
  entry.cool();
  assert.equal(memory.largeBytes, 0);
});

test("the size of an entry is that of the bytes it has, JSON before the stored form, and an estimate without any", () => {
  const memory = new EntryMemory(encodings);
  const object = { metadata: { name: "a", resourceVersion: "3" } };
  const stored = Buffer.from('{"metadata":{"name":"a"}}');
  const bare = newEntry({ ...codec, memory }, "a", 3, structuredClone(object));
  assert.equal(bare.sizeBytes, 2048);
  bare.stored(() => stored);
  assert.equal(bare.sizeBytes, stored.length);
  assert.equal(bare.sizeBytes, bare.smallBytes);
  const json = bare.json();
  assert.ok(json.length > stored.length);
  assert.deepEqual([bare.sizeBytes, bare.smallBytes], [json.length, json.length]);
  const listed = newEntry({ ...codec, memory }, "a", 3, structuredClone(object));
  listed.cool(stored);
  assert.equal(listed.sizeBytes, stored.length);
});

test("the size of an encoding is known though there is no room to keep the encoding", () => {
  const memory = new EntryMemory(new ByteShare(0));
  const entry = newEntry({ ...codec, memory }, "a", 3, { metadata: { name: "a" } });
  let made = 0;
  const make = (): Buffer => {
    made++;
    return Buffer.from("12345");
  };
  assert.deepEqual([entry.keptSize("x", make), entry.keptSize("x", make), made], [5, 5, 1]);
});

test("an entry that is kept in steps is encoded once, from its object as it is then", () => {
  const entry = anEntry("a");
  let made = 0;
  const make = (object: KubeObject): Buffer => {
    made++;
    return Buffer.from(object.metadata.name ?? "");
  };
  const inSteps = function* (object: KubeObject) {
    yield;
    return make(object);
  };
  entry.cool();
  const [first, second] = [entry.keepInSteps("x", inSteps), entry.keepInSteps("x", inSteps)];
  for (const steps of [first, second]) steps.next();
  for (const steps of [first, second]) steps.next();
  assert.equal(made, 2, "both began before either had an encoding");
  assert.equal(entry.kept("x", make).toString(), "a");
  assert.equal(entry.keepInSteps("x", inSteps).next().done, true);
  assert.equal(made, 2);
});

test("an entry is large from more than 64 KiB on, and has no small size then", () => {
  const sized = (bytes: number): [boolean, number | undefined] => {
    const entry = newEntry({ ...codec, memory: new EntryMemory(encodings) }, "a", 3, { metadata: { name: "a" } });
    entry.cool(Buffer.alloc(bytes));
    return [entry.isLarge, entry.smallBytes];
  };
  assert.deepEqual(
    [sized(64 * 1024), sized(64 * 1024 + 1)],
    [
      [false, 64 * 1024],
      [true, undefined],
    ],
  );
});

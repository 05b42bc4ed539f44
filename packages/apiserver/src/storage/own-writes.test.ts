import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type Entry, newEntry } from "./entry.ts";
import { newObjectCodec } from "./object-codec.ts";
import { OwnWrite, OwnWrites } from "./own-writes.ts";
import { crowdedTurns, unlimitedEntries } from "./testing.ts";

const turns = new Turns();
const resource = { group: "", resource: "pods", kind: "Pod", namespaced: true, hub: "v1", versions: [{ version: "v1" }] };
const counted = { decodes: 0 };
const plain = newObjectCodec(resource, "application/json", unlimitedEntries());
const codec = {
  ...plain,
  fromStored(bytes: Buffer) {
    counted.decodes++;
    return plain.fromStored(bytes);
  },
};

type Pod = KubeObject & { spec?: object };

function aPod(nodeName: string, labels: Record<string, string> = {}): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "a", labels }, spec: { nodeName } };
}

function written(pod: Pod, before: Entry | undefined, revision: number): Entry {
  const bytes = codec.toStored(pod);
  return new OwnWrite(codec, "web/a", bytes, bytes, before).entry(revision);
}

/** A write, already sent, of an object that is decoded in steps. */
function aLargeWrite(before?: Entry) {
  const labels = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`label-${at}`, "v"]));
  const bytes = codec.toStored(aPod("n1", labels));
  const write = new OwnWrite(codec, "web/a", bytes, bytes, before);
  const own = new OwnWrites(() => 0);
  own.add(write);
  return { labels, bytes, write, own };
}

const specOf = (entry: Entry): object | undefined => (entry.object() as Pod).spec;

test("an update has its own object, whatever the state before shares with it", () => {
  const first = written(aPod("n1"), undefined, 5);
  const second = written(aPod("n1", { color: "red" }), first, 6);
  assert.deepEqual(specOf(second), specOf(first));
  assert.equal(second.object().metadata.labels?.["color"], "red");
  assert.equal(second.object().metadata.resourceVersion, "6");
  assert.equal(first.object().metadata.resourceVersion, "5");
  assert.notDeepEqual(specOf(written(aPod("n2"), second, 7)), specOf(second));
});

test("it is decoded while etcd writes, and once for its answer and its event", async () => {
  const bytes = codec.toStored(aPod("n1"));
  const own = new OwnWrite(codec, "web/a", bytes, bytes, undefined);
  counted.decodes = 0;
  own.prepare(turns);
  await new Promise(setImmediate);
  assert.equal(counted.decodes, 1);
  const entry = own.entry(8);
  assert.equal(own.entry(8), entry);
  assert.equal(counted.decodes, 1);
  assert.notEqual(own.entry(9).object(), entry.object(), "another revision is another object");
});

test("a large one is decoded and encoded in turns, once for its answer and its event", async () => {
  const { labels, bytes, write, own } = aLargeWrite();
  counted.decodes = 0;
  write.prepare(turns);
  const event = own.take("web/a", bytes, 8);
  assert.ok(event instanceof Promise);
  const entry = await write.ready(8);
  assert.equal(await event, entry);
  assert.equal(counted.decodes, 0, "nothing is decoded at once");
  assert.deepEqual(entry.object().metadata.labels, labels);
  assert.deepEqual([...entry.encodeInSteps()], [], "its JSON is there");
  assert.equal((await write.ready(9)).revision, 9, "another revision is another object");
});

test("the event of a large one does not wait for other long work", async () => {
  const { labels, bytes, write, own } = aLargeWrite();
  const { turns, servedBefore } = crowdedTurns(10);
  write.prepare(turns);
  let entry: Entry | undefined;
  void Promise.resolve(own.take("web/a", bytes, 8)).then((made) => {
    entry = made;
  });
  assert.ok((await servedBefore(() => entry !== undefined)) <= 1, "it waits for no more than the rest of its slice");
  assert.deepEqual(entry?.object().metadata.labels, labels);
});

test("a large own write that cannot be decoded fails when its entry is read", async () => {
  const bytes = Buffer.from(`{"metadata":${" ".repeat(100_000)}`);
  const write = new OwnWrite(codec, "web/a", bytes, bytes, undefined);
  write.prepare(turns);
  await assert.rejects(async () => write.ready(8), /unexpected end of JSON/);
});

test("it is not decoded again when the response arrives first", async () => {
  const bytes = codec.toStored(aPod("n1"));
  const own = new OwnWrite(codec, "web/a", bytes, bytes, undefined);
  counted.decodes = 0;
  own.prepare(turns);
  own.entry(8);
  await new Promise(setImmediate);
  assert.equal(counted.decodes, 1);
});

test("an entry that cannot be decoded throws when it is read, not when it is prepared", async () => {
  const bytes = Buffer.from("{");
  const own = new OwnWrite(codec, "web/a", bytes, bytes, undefined);
  own.prepare(turns);
  await new Promise(setImmediate);
  assert.throws(() => own.entry(8), /unexpected end of JSON input/i);
});

test("an entry knows the bytes that etcd holds of it as long as it is hot", () => {
  const before = newEntry(plain, "web/a", 4, plain.fromStored(plain.toStored(aPod("n1"))));
  const entry = written(aPod("n1"), before, 5);
  const bytes = entry.memo("stored", () => assert.fail("it is not encoded again"));
  assert.deepEqual(bytes, plain.toStored(aPod("n1")));
});

/** A write whose entry has this key and, once it is answered, this revision. */
function aWrite(key: string, text = key): OwnWrite {
  const bytes = codec.toStored({ ...aPod(text), metadata: { name: key } });
  return new OwnWrite(codec, key, bytes, bytes, undefined);
}

function answeredAt(own: OwnWrites, key: string, revision: number): OwnWrite {
  const write = aWrite(key);
  own.add(write);
  own.answered(write, revision);
  return write;
}

const other = Buffer.from("other");

test("an entry is taken once, and only by the event of its key and revision", () => {
  const own = new OwnWrites(() => 0);
  const written = answeredAt(own, "web/a", 5);
  assert.equal(own.take("web/a", other, 4), undefined);
  assert.equal(own.take("web/a", written.value, 5), written.entry(5));
  assert.equal(own.take("web/a", written.value, 5), undefined);
  answeredAt(own, "web/a", 6);
  assert.equal(own.take("web/b", other, 6), undefined, "another history has another object at this revision");
  assert.equal(own.take("web/a", other, 6), undefined);
});

test("an event that arrives before the answer takes the entry that the answer has", () => {
  const own = new OwnWrites(() => 0);
  const write = aWrite("web/a");
  own.add(write);
  assert.equal(own.take("web/a", other, 7), undefined, "another process has written the object in between");
  const entry = own.take("web/a", write.value, 8);
  own.answered(write, 8);
  assert.equal(write.entry(8), entry);
  assert.equal(own.take("web/a", write.value, 8), undefined, "its event does not come again");
});

test("after a reset no write is taken whose answer came before", () => {
  const own = new OwnWrites(() => 0);
  const written = answeredAt(own, "web/a", 5);
  own.clear();
  assert.equal(own.take("web/a", written.value, 5), undefined);
});

test("a failed write, and one whose event has passed, wait for no event", () => {
  const own = new OwnWrites(() => 10);
  const failed = aWrite("web/a");
  own.add(failed);
  own.answered(failed, undefined);
  assert.equal(own.take("web/a", failed.value, 11), undefined);
  const late = answeredAt(own, "web/a", 10);
  assert.equal(own.take("web/a", late.value, 10), undefined);
});

test("two writes of one object under way do not disturb each other's answers", () => {
  const own = new OwnWrites(() => 0);
  const [first, second] = [aWrite("web/a", "one"), aWrite("web/a", "two")];
  own.add(first);
  own.add(second);
  own.answered(first, undefined);
  assert.equal(own.take("web/a", second.value, 5), second.entry(5));
});

test("without events the oldest entries are dropped", () => {
  const own = new OwnWrites(() => 0);
  for (let revision = 1; revision <= 1_001; revision++) answeredAt(own, "web/a", revision);
  assert.equal(own.take("web/a", other, 1), undefined);
  assert.equal((own.take("web/a", other, 2) as Entry).revision, 2);
});

test("a state before that cannot be read fails the answer of a large write, not its preparation", async () => {
  const unreadable = { object: () => assert.fail("unreadable") } as unknown as Entry;
  const { write } = aLargeWrite(unreadable);
  write.prepare(turns);
  await assert.rejects(async () => write.ready(8), /unreadable/);
});

test("beyond 64 KiB it is decoded in turns", () => {
  for (const { sizeBytes, inTurns } of [
    { sizeBytes: 64 * 1024, inTurns: false },
    { sizeBytes: 64 * 1024 + 1, inTurns: true },
  ]) {
    const bytes = codec.toStored(aPod("n".repeat(1 + sizeBytes - codec.toStored(aPod("n")).length)));
    assert.equal(bytes.length, sizeBytes);
    const own = new OwnWrites(() => 0);
    const write = new OwnWrite(codec, "web/a", bytes, bytes, undefined);
    own.add(write);
    write.prepare(turns);
    assert.equal(own.take("web/a", bytes, 8) instanceof Promise, inTurns);
  }
});

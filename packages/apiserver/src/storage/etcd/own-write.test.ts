import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { newEntry } from "../entry.ts";
import { newObjectCodec } from "../object-codec.ts";
import type { Entry } from "../storage.ts";
import { ownWrite } from "./own-write.ts";

const resource = { group: "", resource: "pods", kind: "Pod", namespaced: true, hub: "v1", versions: [{ version: "v1" }] };
const counted = { decodes: 0 };
const plain = newObjectCodec(resource, "application/json");
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
  return ownWrite(codec, "web/a", bytes, bytes, before).entry(revision);
}

const specOf = (entry: Entry): object | undefined => (entry.object() as Pod).spec;

test("an update that leaves the spec as it is shares it with the state before", () => {
  const first = written(aPod("n1"), undefined, 5);
  const second = written(aPod("n1", { color: "red" }), first, 6);
  assert.equal(specOf(second), specOf(first));
  assert.equal(second.object().metadata.labels?.["color"], "red");
  assert.equal(second.object().metadata.resourceVersion, "6");
  assert.equal(first.object().metadata.resourceVersion, "5");
  assert.notEqual(specOf(written(aPod("n2"), second, 7)), specOf(second));
});

test("it is decoded while etcd writes, and once for its answer and its event", async () => {
  const bytes = codec.toStored(aPod("n1"));
  const own = ownWrite(codec, "web/a", bytes, bytes, undefined);
  counted.decodes = 0;
  own.prepare();
  await new Promise(setImmediate);
  assert.equal(counted.decodes, 1);
  const entry = own.entry(8);
  assert.equal(own.entry(8), entry);
  assert.equal(counted.decodes, 1);
  assert.notEqual(own.entry(9).object(), entry.object(), "another revision is another object");
});

test("it is not decoded again when the answer is there before", async () => {
  const bytes = codec.toStored(aPod("n1"));
  const own = ownWrite(codec, "web/a", bytes, bytes, undefined);
  counted.decodes = 0;
  own.prepare();
  own.entry(8);
  await new Promise(setImmediate);
  assert.equal(counted.decodes, 1);
});

test("what cannot be decoded is told to whoever wants the entry, and ends nothing before", async () => {
  const bytes = Buffer.from("{");
  const own = ownWrite(codec, "web/a", bytes, bytes, undefined);
  own.prepare();
  await new Promise(setImmediate);
  assert.throws(() => own.entry(8), /unexpected end of JSON input/i);
});

test("an entry knows the bytes that etcd holds of it as long as it is hot", () => {
  const before = newEntry(plain, "web/a", 4, plain.fromStored(plain.toStored(aPod("n1"))));
  const entry = written(aPod("n1"), before, 5);
  const bytes = entry.memo("stored", () => assert.fail("it is not encoded again"));
  assert.deepEqual(bytes, plain.toStored(aPod("n1")));
});

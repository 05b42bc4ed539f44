import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../meta/types.ts";
import { decodeProtobuf, encodeProtobuf } from "./protobuf.ts";
import { decodeProtobufReusing } from "./protobuf-reuse.ts";

const cronJob = (apiVersion: string, uid: string) => ({
  apiVersion,
  kind: "CronJob",
  metadata: { name: "a", uid },
  spec: { schedule: "* * * * *", jobTemplate: {} },
  status: {},
});

/** @param object decoded from its bytes, unless given */
function earlier(apiVersion: string, object?: KubeObject) {
  const bytes = encodeProtobuf(cronJob(apiVersion, "1"));
  return { bytes, object: object ?? decodeProtobuf(bytes) };
}

test("unchanged parts are shared with the earlier revision and changed ones decoded, in a new object", () => {
  const before = earlier("batch/v1");
  const bytes = encodeProtobuf(cronJob("batch/v1", "2"));
  const next = decodeProtobufReusing(bytes, before);
  assert.deepEqual(next, decodeProtobuf(bytes));
  const specOf = (object: KubeObject): unknown => (object as { spec?: unknown }).spec;
  assert.equal(specOf(next), specOf(before.object));
  assert.equal(before.object.metadata.uid, "1");
});

test("a changed part of the same length is decoded", () => {
  const changed = { ...cronJob("batch/v1", "1"), spec: { schedule: "1 * * * *", jobTemplate: {} } };
  const bytes = encodeProtobuf(changed);
  assert.deepEqual(decodeProtobufReusing(bytes, earlier("batch/v1")), decodeProtobuf(bytes));
});

test("nothing is shared with an object of another version, whose fields of the same bytes may mean something else", () => {
  const before = earlier("batch/v1beta1", { ...cronJob("batch/v1beta1", "1"), spec: { schedule: "of v1beta1" } } as KubeObject);
  const bytes = encodeProtobuf(cronJob("batch/v1", "2"));
  assert.deepEqual(decodeProtobufReusing(bytes, before), decodeProtobuf(bytes));
});

test("a part that the earlier object lacks is absent, not undefined", () => {
  const { status: _, ...object } = decodeProtobuf(encodeProtobuf(cronJob("batch/v1", "1"))) as KubeObject & { status?: object };
  const next = decodeProtobufReusing(encodeProtobuf(cronJob("batch/v1", "2")), earlier("batch/v1", object));
  assert.equal("status" in next, false);
});

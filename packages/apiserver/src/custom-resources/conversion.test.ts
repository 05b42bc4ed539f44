import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newTranslation } from "./conversion.ts";

test("the conversion of a large object ends with its request", async () => {
  let now = 0;
  let asked = 0;
  const translation = newTranslation({
    group: "x.example",
    schemas: new Map(),
    version: "v1",
    storageVersion: "v1",
    convert: (objects) => [...objects],
    turns: new Turns(() => (now += 10)), // each step takes a whole turn
  });
  const object = { metadata: { name: "a" }, spec: { list: Array.from({ length: 50_000 }, (_, i) => `v${i}`) } };
  const gone = {
    throwIfAborted() {
      if (++asked === 3) throw new Error("the client has gone");
    },
  };
  await assert.rejects(async () => translation.store(object, gone), /gone/);
  assert.equal(asked, 3);
  asked = 0;
  await assert.rejects(async () => translation.show([object], gone), /gone/);
  assert.equal(asked, 3);
});

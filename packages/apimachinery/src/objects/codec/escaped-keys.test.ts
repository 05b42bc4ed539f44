import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeJson } from "./json.ts";
import { parseJsonText } from "./json-parse.ts";

// In a separate file: V8 makes the mistake only as long as no other object has keys that begin alike.
test("keys that consist of one escaped character are the same after a round trip", () => {
  const text = String.raw`{"\"":false,"\u003c":{},"\u003c ":[],"=":"","\u003e":""}`;
  const read = parseJsonText(text) as object;
  assert.deepEqual(Object.keys(read), ['"', "<", "< ", "=", ">"]);
  assert.equal(Buffer.from(encodeJson(read)).toString(), text);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeObject } from "./codec.ts";
import { jsonMediaType } from "./negotiate.ts";

test("the error of an object without kind has the first 1024 bytes of it", () => {
  const body = JSON.stringify({ apiVersion: "v1", a: "x".repeat(2_000) });
  assert.throws(() => decodeObject(Buffer.from(body), jsonMediaType), {
    code: 400,
    message: `Object 'Kind' is missing in '${body.slice(0, 1024)}'`,
  });
  assert.throws(() => decodeObject(Buffer.from('{"kind":"A"}'), jsonMediaType), {
    message: `Object 'apiVersion' is missing in '{"kind":"A"}'`,
  });
});

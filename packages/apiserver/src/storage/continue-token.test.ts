import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "@coxswain/apimachinery/errors/predicates";
import { decodeContinueToken, encodeContinueToken } from "./continue-token.ts";

test("a token is upstream's JSON in base64url without padding", () => {
  const text = encodeContinueToken({ start: "web/a\0", revision: 12 });
  assert.equal(Buffer.from(text, "base64url").toString(), '{"v":"meta.k8s.io/v1","rv":12,"start":"web/a\\u0000"}');
  assert.doesNotMatch(text, /=/);
  assert.deepEqual(decodeContinueToken(text), { start: "web/a\0", revision: 12 });
});

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

for (const { name, text } of [
  { name: "no base64", text: "a b" },
  { name: "no JSON", text: Buffer.from("{").toString("base64url") },
  { name: "null", text: encoded(null) },
  { name: "another version", text: encoded({ v: "meta.k8s.io/v2", rv: 1, start: "a" }) },
  { name: "no revision", text: encoded({ v: "meta.k8s.io/v1", start: "a" }) },
  { name: "a revision that is no integer", text: encoded({ v: "meta.k8s.io/v1", rv: 1.5, start: "a" }) },
  { name: "no start", text: encoded({ v: "meta.k8s.io/v1", rv: 1 }) },
  { name: "a start out of its prefix", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "../secrets/a" }) },
  { name: "an absolute start", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "/secrets/a" }) },
]) {
  test(`a token with ${name} is a BadRequest`, () => {
    assert.throws(
      () => decodeContinueToken(text),
      (err) => reasonOf(err) === "BadRequest" && /^StatusError: continue key is not valid: /.test(String(err)),
    );
  });
}

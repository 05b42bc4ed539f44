import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "@coxswain/apimachinery/objects/errors/predicates";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { decodeContinueToken, encodeContinueToken } from "./continue-token.ts";

test("a token is upstream's JSON in base64url without padding", () => {
  const text = encodeContinueToken({ start: "web/a\0", revision: 12 });
  assert.equal(Buffer.from(text, "base64url").toString(), '{"v":"meta.k8s.io/v1","rv":12,"start":"web/a\\u0000"}');
  assert.doesNotMatch(text, /=/);
  assert.deepEqual(decodeContinueToken(text), { start: "web/a\0", revision: 12 });
});

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

for (const { name, text, detail } of [
  { name: "no base64", text: "a b", detail: "illegal base64 data at input byte 1" },
  { name: "no base64, and a digit too much", text: "a bcd", detail: "illegal base64 data at input byte 1" },
  { name: "a digit too much", text: "abcde", detail: "illegal base64 data at input byte 4" },
  { name: "no JSON", text: Buffer.from("{").toString("base64url"), detail: undefined },
  { name: "null", text: encoded(null), detail: undefined },
  {
    name: "another version",
    text: encoded({ v: "meta.k8s.io/v2", rv: 1, start: "a" }),
    detail: 'server does not recognize this encoded version "meta.k8s.io/v2"',
  },
  {
    name: "no revision",
    text: encoded({ v: "meta.k8s.io/v1", start: "a" }),
    detail: "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
  },
  {
    name: "revision 0",
    text: encoded({ v: "meta.k8s.io/v1", rv: 0, start: "a" }),
    detail: "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
  },
  { name: "a revision that is no integer", text: encoded({ v: "meta.k8s.io/v1", rv: 1.5, start: "a" }), detail: undefined },
  {
    name: "no start",
    text: encoded({ v: "meta.k8s.io/v1", rv: 1 }),
    detail: "encoded start key empty (version meta.k8s.io/v1)",
  },
  {
    name: "a start out of its prefix",
    text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "../secrets/a" }),
    detail: "../secrets/a",
  },
  { name: "a dot as a part of its start", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "./a" }), detail: "./a" },
  { name: "dots amid its start", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "a/../b" }), detail: "a/../b" },
  { name: "an empty part in its start", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "a//b" }), detail: "a//b" },
  { name: "an absolute start", text: encoded({ v: "meta.k8s.io/v1", rv: 1, start: "/secrets/a" }), detail: "/secrets/a" },
]) {
  test(`a token with ${name} is a BadRequest`, () => {
    assert.throws(
      () => decodeContinueToken(text),
      (err: StatusError) => {
        assert.equal(reasonOf(err), "BadRequest");
        const prefix = "invalid continue token: continue key is not valid: ";
        assert.ok(err.message.startsWith(prefix), err.message);
        if (detail !== undefined) assert.equal(err.message.slice(prefix.length), detail);
        return true;
      },
    );
  });
}

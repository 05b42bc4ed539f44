import assert from "node:assert/strict";
import { test } from "node:test";
import { redacted } from "./sanitize.ts";

const message = "Log message has been redacted.";

for (const [type, ...names] of [
  ["token", "token", "idToken", "access_token", "refresh-token", "BearerToken", "Authorization", "proxy-authorization", "cookie"],
  ["password", "password", "PassPhrase", "stringData"],
  ["security-key", "clientKeyData", "client-key-data", "privateKey", "keyPem"],
] as const) {
  for (const name of names) {
    test(`a value called ${name} is a ${type}, wherever it is`, () => {
      assert.deepEqual(redacted({ [name]: "x" }), { message, fields: { key: name, types: [type] } });
      assert.deepEqual(redacted({ a: 1, b: { list: [{}, { [name]: ["x"] }] } }), {
        message,
        fields: { key: "b", types: [type] },
      });
      for (const absent of ["", null, undefined]) assert.equal(redacted({ [name]: absent }), undefined);
    });
  }
}

test("a key is secret beside its certificate, a secret beside its name", () => {
  assert.deepEqual(redacted({ a: { cert: "c", key: "k" } })?.fields, { key: "a", types: ["security-key"] });
  assert.deepEqual(redacted({ a: { name: "n", secret: "s" } })?.fields, { key: "a", types: ["password"] });
  assert.equal(redacted({ a: { key: "k", secret: "s" } }), undefined);
  assert.equal(redacted({ a: { name: "n", key: "k" }, b: { cert: "c", secret: "s" } }), undefined);
});

test("the data of a Secret is one, that of another object is not", () => {
  assert.deepEqual(redacted({ object: { kind: "Secret", data: { a: "x" } } })?.fields, { key: "object", types: ["password"] });
  assert.equal(redacted({ object: { kind: "ConfigMap", data: { a: "x" } } }), undefined);
  assert.equal(redacted({ object: { kind: "Secret", data: undefined, type: "Opaque" } }), undefined);
});

test("the first field with a secret is named, with all kinds of secrets in it", () => {
  assert.deepEqual(redacted({ a: "x", b: { token: "t", inner: { password: "p", cookie: "c" } }, c: { keyPem: "k" } }), {
    message,
    fields: { key: "b", types: ["token", "password"] },
  });
});

test("secrets are found down to the eighth level", () => {
  const nested = (depth: number): unknown => (depth === 0 ? { token: "t" } : { inner: nested(depth - 1) });
  assert.notEqual(redacted({ a: nested(7) }), undefined);
  assert.equal(redacted({ a: nested(8) }), undefined);
});

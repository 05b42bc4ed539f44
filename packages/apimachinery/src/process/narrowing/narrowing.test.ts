import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { errorCode } from "./error-code.ts";
import { errorOf } from "./error-of.ts";
import { entriesOf, isKeyOf, isOneOf, keysOf, tableOf } from "./keys.ts";
import { listeningPort } from "./listening-port.ts";

test("keys and entries of a table come in its order", () => {
  const table = { b: 1, a: "two" };
  assert.deepEqual(keysOf(table), ["b", "a"]);
  assert.deepEqual(entriesOf(table), [
    ["b", 1],
    ["a", "two"],
  ]);
  assert.deepEqual(
    tableOf(["x", "y"], (key) => key.length),
    { x: 1, y: 1 },
  );
});

test("a key of a table is its own: not one of the prototype, and no value other than a string", () => {
  for (const [key, want] of [
    ["a", true],
    ["b", false],
    ["toString", false],
    [undefined, false],
    [1, false],
  ] as const) {
    assert.equal(isKeyOf({ a: 1, 1: 2 }, key), want, String(key));
  }
  assert.deepEqual([isOneOf(["a", "b"], "a"), isOneOf(["a", "b"], "c"), isOneOf(["a"], undefined)], [true, false, false]);
});

test("the code of an error is that of the system; other values have none", () => {
  let missing: unknown;
  try {
    readFileSync("/does/not/exist");
  } catch (err) {
    missing = err;
  }
  assert.equal(errorCode(missing), "ENOENT");
  for (const other of [new Error("no code"), undefined, null, "ENOENT", { code: 14 }]) assert.equal(errorCode(other), undefined);
});

test("the port of a server is known while it listens", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  assert.ok(listeningPort(server) > 0);
  await new Promise((closed) => server.close(closed));
  assert.throws(() => listeningPort(server), /does not listen/);
});

test("what was caught is an error: itself, or one that has the value as text and cause", () => {
  const err = new Error("own");
  assert.equal(errorOf(err), err);
  const { message, cause } = errorOf("text");
  assert.deepEqual([message, cause], ["text", "text"]);
});

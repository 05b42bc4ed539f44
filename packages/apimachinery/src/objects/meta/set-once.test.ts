import assert from "node:assert/strict";
import { test } from "node:test";
import { SetOnce } from "./set-once.ts";

test("a value is read after it was set, and set once", () => {
  const router = new SetOnce<string>("the router");
  assert.equal(router.current, undefined);
  assert.throws(() => router.get(), /^Error: the router is not available yet$/);
  router.set("route");
  assert.deepEqual([router.get(), router.current], ["route", "route"]);
  assert.throws(() => router.set("another"), /^Error: the router is set already$/);
  assert.equal(router.get(), "route");
});

test("a value may be undefined", () => {
  const value = new SetOnce<string | undefined>("the value");
  value.set(undefined);
  assert.equal(value.get(), undefined);
  assert.throws(() => value.set("another"), /is set already/);
});

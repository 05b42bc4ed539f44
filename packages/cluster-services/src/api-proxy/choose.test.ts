import assert from "node:assert/strict";
import { test } from "node:test";
import { inOrder, isToLeave, type ServerState } from "./choose.ts";

const servers = (...states: ServerState[]) => states.map((state, i) => ({ address: `s${i}`, state }));

for (const { name, states, current, want } of [
  { name: "as given when nothing is known", states: ["unknown", "unknown"], current: undefined, want: ["s0", "s1"] },
  { name: "the current one first among equals", states: ["ready", "ready", "ready"], current: "s2", want: ["s2", "s0", "s1"] },
  { name: "a ready one before the current one that is not", states: ["unready", "ready"], current: "s0", want: ["s1", "s0"] },
  {
    name: "one that ends before one that fails",
    states: ["dead", "unready", "leaving"],
    current: "s0",
    want: ["s2", "s1", "s0"],
  },
  {
    name: "one of which nothing is known before one that ends",
    states: ["leaving", "unknown"],
    current: "s0",
    want: ["s1", "s0"],
  },
  { name: "all, when none works", states: ["dead", "dead"], current: "s1", want: ["s1", "s0"] },
] as const) {
  test(`servers are tried in order: ${name}`, () => assert.deepEqual(inOrder(servers(...states), current), want));
}

for (const { state, others, want } of [
  { state: "dead", others: ["dead", "ready"], want: true },
  { state: "dead", others: ["dead", "unready", "unknown", "leaving"], want: false },
  { state: "dead", others: [], want: false },
  { state: "unready", others: ["unready", "ready"], want: false },
  { state: "leaving", others: ["leaving", "ready"], want: false },
] as const) {
  test(`connections to a server that is ${state} among ${others.join() || "none"} are ${want ? "" : "not "}closed`, () =>
    assert.equal(isToLeave(state, servers(...others)), want));
}

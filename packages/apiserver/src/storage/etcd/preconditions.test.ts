import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../storage.ts";
import { preconditionProblem } from "./preconditions.ts";

const stored = { revision: 7, object: () => ({ metadata: { uid: "u" } }) } as unknown as Entry;

for (const { name, current, wanted, problem } of [
  { name: "none", current: stored, wanted: undefined, problem: undefined },
  { name: "both hold", current: stored, wanted: { uid: "u", resourceVersion: "7" }, problem: undefined },
  { name: "another uid", current: stored, wanted: { uid: "v" }, problem: "UID in precondition: v, UID in object meta: u" },
  {
    name: "another revision, with the right uid",
    current: stored,
    wanted: { uid: "u", resourceVersion: "6" },
    problem: "ResourceVersion in precondition: 6, ResourceVersion in object meta: 7",
  },
  { name: "an empty uid", current: stored, wanted: { uid: "" }, problem: "UID in precondition: , UID in object meta: u" },
  {
    name: "an empty revision",
    current: stored,
    wanted: { resourceVersion: "" },
    problem: "ResourceVersion in precondition: , ResourceVersion in object meta: 7",
  },
  { name: "an absent object", current: undefined, wanted: { uid: "u" }, problem: "UID in precondition: u, UID in object meta: " },
  {
    name: "the revision of an absent object",
    current: undefined,
    wanted: { resourceVersion: "7" },
    problem: "ResourceVersion in precondition: 7, ResourceVersion in object meta: ",
  },
]) {
  test(`preconditions: ${name}`, () => {
    assert.equal(preconditionProblem(current, wanted), problem && `Precondition failed: ${problem}`);
  });
}

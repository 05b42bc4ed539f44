import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "./client.ts";
import { initialMembers, nextStep } from "./join-plan.ts";

const member = (name: string, number: number, isLearner = false): Member => ({
  ...{ id: `${number}`, name, isLearner, clientUrls: [] },
  peerUrls: [`https://10.0.0.${number}:2380`],
});
const own = "https://10.0.0.2:2380";

for (const { name, members, hasData, want } of [
  { name: "is added", members: [member("a", 1)], hasData: false, want: { do: "add" } },
  {
    name: "was added and has not started",
    members: [member("a", 1), member("", 2, true)],
    hasData: false,
    want: { do: "promote", id: "2" },
  },
  { name: "is a learner", members: [member("a", 1), member("b", 2, true)], hasData: true, want: { do: "promote", id: "2" } },
  { name: "is a member", members: [member("a", 1), member("b", 2)], hasData: true, want: { do: "nothing" } },
  { name: "lost its data", members: [member("a", 1), member("b", 2)], hasData: false, want: { do: "remove", id: "2" } },
  {
    name: "lost its data as a learner",
    members: [member("a", 1), member("b", 2, true)],
    hasData: false,
    want: { do: "remove", id: "2" },
  },
])
  test(`a machine that ${name}`, () => assert.deepEqual(nextStep(members, own, hasData), want));

test("a member that joins gets the list of those that have started, and of itself by its own name", () => {
  assert.deepEqual(initialMembers([member("a", 1), member("", 2, true), member("", 3)], "b", own), {
    a: "https://10.0.0.1:2380",
    b: own,
  });
});

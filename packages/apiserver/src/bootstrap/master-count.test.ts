import assert from "node:assert/strict";
import { test } from "node:test";
import { newMasterCount, withServer } from "./master-count.ts";

for (const { name, current, count, want } of [
  { name: "the first server", current: [], count: 1, want: ["10.0.0.5"] },
  { name: "one that is there already", current: ["10.0.0.9", "10.0.0.5"], count: 2, want: ["10.0.0.9", "10.0.0.5"] },
  { name: "one more, as a number stands and not as a text", current: ["10.0.0.10"], count: 2, want: ["10.0.0.5", "10.0.0.10"] },
  { name: "one too many: the next one is removed", current: ["10.0.0.4", "10.0.0.6"], count: 2, want: ["10.0.0.4", "10.0.0.5"] },
  {
    name: "one too many at the end: the first one is removed",
    current: ["10.0.0.3", "10.0.0.4"],
    count: 2,
    want: ["10.0.0.4", "10.0.0.5"],
  },
  { name: "many too many", current: ["10.0.0.1", "10.0.0.6", "10.0.0.7"], count: 1, want: ["10.0.0.5"] },
]) {
  test(name, () => assert.deepEqual(withServer(current, "10.0.0.5", count), want));
}

test("a server that renews adds itself, one that leaves removes itself alone", async () => {
  const servers = newMasterCount(2);
  const renewed = await servers.renew("10.0.0.5");
  assert.deepEqual(renewed(["10.0.0.4", "10.0.0.6"]), ["10.0.0.4", "10.0.0.5"]);
  const left = await servers.remove("10.0.0.5");
  assert.deepEqual(left(["10.0.0.4", "10.0.0.5"]), ["10.0.0.4"]);
});

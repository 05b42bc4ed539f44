import assert from "node:assert/strict";
import { test } from "node:test";
import { userAgentOf } from "./config.ts";

test("a user agent names program, version and platform, and what the client is for", () => {
  assert.match(userAgentOf("kube-scheduler"), /^kube-scheduler\/v1\.23\.\d+ \(linux\/\w+\) kubernetes\/coxswain$/);
  assert.equal(userAgentOf("kube-scheduler", "leader-election"), `${userAgentOf("kube-scheduler")}/leader-election`);
});

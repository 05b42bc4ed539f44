import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { RuntimeError } from "../runtime/runtime.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newPodCidr } from "./pod-cidr.ts";

test("the runtime gets the pod CIDR once, and again after a failed call", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const podCidr = newPodCidr({ runtime, log: discardLogger });
  await podCidr.update("");
  assert.deepEqual(runtime.calls, [], "there is none yet");
  runtime.failNext("UpdateRuntimeConfig", new RuntimeError("Unavailable", "not now"));
  for (const cidr of ["10.1.0.0/24", "10.1.0.0/24", "10.1.0.0/24", "10.2.0.0/24,2001:db8::/64"]) await podCidr.update(cidr);
  assert.deepEqual(runtime.calls, [
    "UpdateRuntimeConfig 10.1.0.0/24",
    "UpdateRuntimeConfig 10.1.0.0/24",
    "UpdateRuntimeConfig 10.2.0.0/24,2001:db8::/64",
  ]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { GrpcCodeName } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import { PluginError } from "../../plugins/plugin-channel.ts";
import { isFinal } from "./csi-client.ts";

test("after these codes a driver may still be executing the call, after others it is not", () => {
  const ongoing: GrpcCodeName[] = ["Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted"];
  const ended: GrpcCodeName[] = ["Unknown", "InvalidArgument", "NotFound", "FailedPrecondition", "OutOfRange", "Internal"];
  const finalOf = (codes: readonly GrpcCodeName[]) => codes.filter((code) => isFinal(new PluginError(code, "no")));
  assert.deepEqual([finalOf(ongoing), finalOf(ended)], [[], ended]);
  assert.equal(isFinal(new Error("the socket is gone")), false);
});

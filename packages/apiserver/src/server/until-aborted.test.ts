import assert from "node:assert/strict";
import { test } from "node:test";
import { untilAborted } from "./until-aborted.ts";

test("it ends with the signal's reason, at once when the signal was aborted before", async () => {
  const reason = new Error("stopped");
  await assert.rejects(untilAborted(AbortSignal.abort(reason)), reason);
  const stopping = new AbortController();
  const ended = assert.rejects(untilAborted(stopping.signal), reason);
  stopping.abort(reason);
  await ended;
});

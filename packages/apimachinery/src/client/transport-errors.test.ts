import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asError,
  ConnectionLost,
  isConnectionLost,
  isConnectionRefused,
  NotProcessed,
  StreamTimeout,
  wasNotProcessed,
} from "./transport-errors.ts";

const withCode = (code: unknown, cause?: unknown): Error => Object.assign(new Error("x", { cause }), { code });

for (const [name, err, kind] of [
  ...[
    "ECONNRESET",
    "EPIPE",
    "ETIMEDOUT",
    "ERR_HTTP2_SESSION_ERROR",
    "ERR_HTTP2_INVALID_SESSION",
    "ERR_HTTP2_GOAWAY_SESSION",
    "ERR_HTTP2_STREAM_CANCEL",
    "ERR_STREAM_PREMATURE_CLOSE",
    "UND_ERR_SOCKET",
  ].map((code) => [code, withCode(code), "lost"] as const),
  ["a lost connection", new ConnectionLost("x"), "lost"],
  ["a refused connection", withCode("ECONNREFUSED"), "refused"],
  ["a request that was not processed", new NotProcessed("x"), "not processed"],
  ["a request without a stream", new StreamTimeout("x"), "none"],
  ["another code", withCode("ENOENT"), "none"],
  ["a number for a code", withCode(104), "none"],
  ["no error", { code: "ECONNRESET" }, "none"],
  ["the code of a cause", new Error("x", { cause: withCode("EPIPE") }), "lost"],
  ["the code of a cause's cause", new Error("x", { cause: new TypeError("y", { cause: withCode("ECONNREFUSED") }) }), "refused"],
  ["its own code before that of its cause", withCode("ENOENT", withCode("EPIPE")), "none"],
  ["the code of its cause for a number of its own", withCode(7, withCode("EPIPE")), "lost"],
] as const) {
  test(`of the failures of a connection, ${name} is: ${kind}`, () => {
    assert.deepEqual(
      [isConnectionLost(err), isConnectionRefused(err), wasNotProcessed(err)],
      [kind === "lost", kind === "refused", kind === "not processed"],
    );
  });
}

test("an error that is its own cause is none of them", () => {
  const loop = new Error("x");
  loop.cause = loop;
  assert.deepEqual([isConnectionLost(loop), isConnectionRefused(loop)], [false, false]);
});

test("a reason that is no error becomes the cause of one", () => {
  const err = new Error("x");
  assert.equal(asError(err), err);
  assert.deepEqual([asError("why").message, asError("why").cause], ["aborted", "why"]);
});

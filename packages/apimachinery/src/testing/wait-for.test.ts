import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "./wait-for.ts";

test("an unexpected error fails at once, with the error itself", async () => {
  let requests = 0;
  const ask = (): boolean => {
    requests++;
    throw new TypeError("no such field");
  };
  await assert.rejects(waitFor(ask, { retry: (err) => err.message === "not found" }), new TypeError("no such field"));
  await assert.rejects(waitFor(ask), new TypeError("no such field"));
  assert.equal(requests, 2);
});

test("an error accepted by retry is repeated", async () => {
  let requests = 0;
  const ask = (): number => {
    if (++requests < 3) throw new Error("not found");
    return requests;
  };
  assert.equal(await waitFor(ask, { retry: (err) => err.message === "not found" }), 3);
});

test("a timeout reports the last state: the value, the inspected object or the retried error", async () => {
  await assert.rejects(
    waitFor(() => 0, { timeoutMs: 1, what: "x" }),
    { message: "waited 1 ms for x; last: 0" },
  );
  const looked = waitFor((seen) => seen({ phase: "Pending" }).phase === "Running", { timeoutMs: 1, what: "x" });
  await assert.rejects(looked, { message: "waited 1 ms for x; last: { phase: 'Pending' }" });
  const cause = new Error("not found");
  const listed = waitFor(() => Promise.reject(cause), { timeoutMs: 1, what: "x", retry: () => true });
  await assert.rejects(listed, { message: "waited 1 ms for x; last: not found", cause });
});

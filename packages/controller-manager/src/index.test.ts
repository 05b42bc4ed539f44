import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newControllerManager } from "./index.ts";
import { startLeaseApi } from "./testing/lease-api.ts";

const lock = "kube-controller-manager";

/** A controller manager in this process, as the leader. */
async function leading(t: TestContext) {
  const api = await startLeaseApi(t);
  const clock = newFakeClock();
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const flags = ["--controllers=ttl", "--kube-api-content-type=application/json"];
  const outcome = newControllerManager(flags)
    .run({ clientConfig: { host: api.host, qps: -1 }, clock, signal: stop.signal })
    .then(
      () => "ended",
      (err: Error) => err.message,
    );
  await waitFor(() => api.leases.get(lock)?.spec.holderIdentity, { what: "the lease to be taken" });
  await waitFor(() => api.watched.includes("/api/v1/nodes"), { what: "the nodes to be watched" });
  return { ...api, clock, stop, outcome };
}

test("a controller manager in another program runs its controllers, and gives its lease back when it is stopped", async (t) => {
  const { leases, stop, outcome } = await leading(t);
  stop.abort(new Error("stopped"));
  assert.equal(await outcome, "ended");
  assert.equal(leases.get(lock)?.spec.holderIdentity, "");
});

test("one that loses its lease fails", async (t) => {
  const { hold, clock, outcome } = await leading(t);
  hold(lock, "another");
  let failure: string | undefined;
  void outcome.then((message) => {
    failure = message;
  });
  await waitFor(
    async () => {
      await clock.advance(2_000);
      return failure;
    },
    { what: "the manager to end" },
  );
  assert.equal(failure, "another controller manager is the leader now");
});

test("flags that are unknown or do not fit are refused before anything runs", () => {
  assert.throws(() => newControllerManager(["--no-such-flag"]), /unknown flag: --no-such-flag/);
  assert.throws(() => newControllerManager(["--controllers=x"]), /"x" is not in the list of known controllers/);
});

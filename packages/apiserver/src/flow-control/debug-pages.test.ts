import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { defaultLevels, defaultSchemas, isMandatory } from "../bootstrap/flow-schemas.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { flowControlPages } from "./debug-pages.ts";
import { FlowControlMetrics } from "./metrics.ts";
import type { PriorityLevel } from "./plan.ts";
import { newFlowControl } from "./priority-and-fairness.ts";

/** A level with one seat, two queues and three requests of one flow: the last two wait in one queue. */
function pages() {
  const clock = newFakeClock();
  const mandatory = { levels: defaultLevels.filter(isMandatory), schemas: defaultSchemas.filter(isMandatory) };
  const limits = { concurrency: 6, requestWaitLimitMs: 15_000 };
  const metrics = new FlowControlMetrics(newMetricsRegistry(), clock);
  const flowControl = newFlowControl({ mandatory, limits, clock, metrics });
  const queuing = { queues: 2, handSize: 1, queueLengthLimit: 5 };
  const own: PriorityLevel = {
    metadata: { name: "own" },
    spec: { type: "Limited", limited: { assuredConcurrencyShares: 1, limitResponse: { type: "Queue", queuing } } },
  };
  flowControl.configure({ levels: [own], schemas: [] });
  const queues = [...flowControl.levels()].find(({ plan }) => plan.name === "own")?.queues;
  const info = parseRequestInfo("PUT", "/apis/apps/v1/namespaces/web/deployments/a/scale");
  const requested = { info, user: { name: "joe", groups: [] }, receivedMs: clock.now() };
  const wide = { initialSeats: 1, finalSeats: 3, additionalMs: 7.5 };
  for (const work of [{ ...wide, finalSeats: 0, additionalMs: 0 }, wide, { ...wide, finalSeats: 0, additionalMs: 0 }]) {
    queues?.start({ schema: "s", flow: "joe", work, counted: metrics.flow("own", "s"), requested });
  }
  const serve = flowControlPages(flowControl);
  const at = queues?.queues.findIndex(({ tickets }) => tickets.length > 0);
  /** @returns undefined for no page */
  const textOf = async (name: string): Promise<string | undefined> => {
    const path = `/debug/api_priority_and_fairness/${name}`;
    const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
    if (!serve(new ServerRequest(exchange, parseRequestInfo("GET", path), 0, false))) return undefined;
    return String(Buffer.concat(await Array.fromAsync((await exchange.response).body as AsyncIterable<Buffer>)));
  };
  return {
    at,
    flowControl,
    textOf,
    /** The rows of a page behind its head, that of the level `own` only; undefined for no page. */
    async rows(name: string, level = "own"): Promise<string[][] | undefined> {
      const rows = (await textOf(name))?.split("\n").map((line) => line.split(/, */));
      return rows?.filter(([first]) => first === level);
    },
  };
}

test("the page of levels counts the queues with waiting requests, and requests", async () => {
  const { rows } = pages();
  assert.deepEqual(await rows("dump_priority_levels"), [["own", "1", "false", "false", "2", "1"]]);
  assert.deepEqual(await rows("dump_priority_levels", "exempt"), [["exempt", ...Array<string>(5).fill("<none>")]]);
});

test("a level that was removed is quiescing while it has requests", async () => {
  const { rows, flowControl } = pages();
  flowControl.configure({ levels: [], schemas: [] });
  assert.deepEqual(await rows("dump_priority_levels"), [["own", "1", "false", "true", "2", "1"]]);
});

test("columns are as wide as their longest cell, and at least 8", async () => {
  const { textOf } = pages();
  const lines = (await textOf("dump_queues"))?.split("\n").map((line) => line.slice(0, 50));
  assert.deepEqual(lines?.slice(0, 1).concat(lines.filter((line) => line.startsWith("own, ")).slice(0, 1)), [
    "PriorityLevelName, Index,  PendingRequests, Execut",
    "own,               0,      " + (lines?.find((line) => line.startsWith("own, "))?.slice(27) ?? ""),
  ]);
});

test("the page of queues sums the seats of waiting requests: those that they begin with, and the most", async () => {
  const { rows, at } = pages();
  const [first, second] = (await rows("dump_queues")) as [string[], string[]]; // cast: of two queues
  const [busy, idle] = at === 0 ? [first, second] : [second, first];
  // 3 ms of one seat for each, and 7.5 ms of three seats.
  assert.deepEqual(busy, ["own", `${at}`, "2", "1", "1", "0.00300000ss", "2", "4", "0.02850000ss"]);
  assert.deepEqual(idle?.slice(2), ["0", "0", "0", "0.00000000ss", "0", "0", "0.00000000ss"]);
});

test("the page of requests shows what they ask for when that is asked for", async () => {
  const { rows, at } = pages();
  const when = "2022-01-01T00:00:00.000Z";
  const plain = [
    ["own", "s", `${at}`, "0", "joe", when, "1", "3", "7.5ms"],
    ["own", "s", `${at}`, "1", "joe", when, "1", "0", "0s"],
  ];
  assert.deepEqual(await rows("dump_requests"), plain);
  const path = "/apis/apps/v1/namespaces/web/deployments/a/scale";
  const details = ["joe", "update", path, "web", "a", "apps/v1", "deployments", "scale"];
  assert.deepEqual(
    await rows("dump_requests?includeRequestDetails=1"),
    plain.map((row) => [...row, ...details]),
  );
});

test("other paths are no pages, nor are names that every object has", async () => {
  const { rows } = pages();
  for (const name of ["", "dump", "constructor"]) assert.equal(await rows(name), undefined);
});

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Turns } from "../process/event-loop/turns.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { Connections, type ServedExchange } from "./connections.ts";

test("a request that begins while the server closes tells its client to leave, and is answered", async () => {
  const handled: string[] = [];
  const handler = async ({ url }: { url: string }): Promise<void> => void handled.push(`handled ${url}`);
  const connections = new Connections({ handler, log: discardLogger, turns: new Turns() }, () => {});
  const exchangeFor = (url: string) =>
    ({ url, method: "GET", goAway: () => handled.push(`leave ${url}`) }) as unknown as ServedExchange; // cast: all that serving reads
  const before = exchangeFor("/before");
  await connections.serve(before, "client", () => handled.push("end"));
  connections.done(before);
  await connections.drain(0, createServer());
  await connections.serve(exchangeFor("/after"), "client", () => handled.push("end"));
  assert.deepEqual(handled, ["handled /before", "end", "leave /after", "handled /after", "end"]);
});

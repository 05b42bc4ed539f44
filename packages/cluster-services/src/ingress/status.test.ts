import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { ingresses, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newStatusController } from "./status.ts";
import { anIngress } from "./testing.ts";

const node: Node = { metadata: { name: "n1" }, spec: {}, status: { addresses: [{ type: "InternalIP", address: "192.0.2.1" }] } };

async function start(t: TestContext, ...names: string[]) {
  return startIn(t, newUnlimitedTurns(), ...names);
}

async function startIn(t: TestContext, turns: Turns, ...names: string[]) {
  const clock = newFakeClock();
  const client = newFakeClient({
    clock,
    objects: [[nodes, node], ...names.map((name) => [ingresses, anIngress(name, [])] as const)],
  });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  const [seen, nodeInformer] = [informers.for<Ingress>(ingresses), informers.for<Node>(nodes)];
  const problems = new Map<string, string[]>();
  const events: string[] = [];
  const notServed = new Set<string>();
  const status = newStatusController({
    ...{ ingresses: seen.lister, nodes: nodeInformer.lister, nodeName: "n1", client, log: discardLogger, clock },
    turns,
    isServed: ({ metadata }) => !notServed.has(metadata.name ?? ""),
    problemsOf: ({ metadata }) =>
      (problems.get(metadata.name ?? "") ?? []).map((message) => ({ reason: "MissingService", message })),
    recorder: {
      event: (object, _, reason, message) =>
        void events.push(`${"metadata" in object ? object.metadata.name : ""} ${reason} ${message}`),
      flush: async () => {},
    },
    sources: [enqueueSelf(seen)],
  });
  informers.start(ending.signal);
  await informers.waitForSync(ending.signal);
  const running = status.run(ending.signal);
  const end = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.after(end);
  const addresses = (name: string) =>
    (client.object<Ingress>(ingresses, `default/${name}`)?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
  const look = async (name: string): Promise<void> => {
    status.enqueue(`default/${name}`);
    await settle();
  };
  return { clock, client, status, problems, events, notServed, addresses, look, end };
}

test("the node's address is written once, and taken back from every Ingress at the end", async (t) => {
  const { client, status, addresses, look, end } = await start(t, "a", "b");
  await waitFor(() => addresses("a").length + addresses("b").length === 2);
  for (const name of ["a", "b"]) await look(name);
  assert.equal(client.writes.length, 2);
  await end();
  client.react("patch", "ingresses", ({ name }) => {
    if (name === "a") client.remove(ingresses, "default/a"); // is gone when it is written
  });
  await status.withdraw(AbortSignal.timeout(60_000));
  assert.deepEqual([addresses("b"), client.objects(ingresses).length], [[], 1]);
});

test("a failure to take the address back is reported", async (t) => {
  const { client, status, addresses, end } = await start(t, "a");
  await waitFor(() => addresses("a").length === 1);
  await end();
  client.react("patch", "ingresses", () => {
    throw forbidden(ingresses, "a", "no right");
  });
  await assert.rejects(status.withdraw(AbortSignal.timeout(60_000)), /no right/);
});

test("problems that last 5 s are reported once: all of them, again after they changed or had been solved, or after it was not served", async (t) => {
  const { clock, problems, events, notServed, addresses, look } = await start(t, "a");
  await waitFor(() => addresses("a").length === 1);
  problems.set("a", ["there is no Service x", "there is no Service y"]);
  await look("a");
  await clock.advance(4_999);
  assert.deepEqual(events, []);
  await look("a"); // by an event of something else
  assert.deepEqual(events, []);
  await clock.advance(1);
  await settle();
  const both = ["a MissingService there is no Service x", "a MissingService there is no Service y"];
  assert.deepEqual(events.splice(0), both);
  await look("a");
  await clock.advance(20_000);
  assert.deepEqual(events, []);
  problems.set("a", ["there is no Service y"]);
  await look("a");
  await clock.advance(5_000);
  await settle();
  assert.deepEqual(events.splice(0), both.slice(1));
  problems.delete("a");
  await look("a");
  problems.set("a", ["there is no Service y"]);
  await look("a");
  await clock.advance(5_000);
  await settle();
  assert.deepEqual(events.splice(0), both.slice(1));
  notServed.add("a");
  await look("a");
  notServed.clear();
  await look("a");
  await clock.advance(5_000);
  await settle();
  assert.deepEqual(events, both.slice(1));
});

test("an Ingress is written as it was seen, so that another node's address is not lost", async (t) => {
  const { client, addresses } = await start(t, "a");
  await waitFor(() => addresses("a").length === 1);
  const { sent } = client.writes[0] ?? {};
  assert.match(String((sent as Ingress).metadata.resourceVersion), /^\d+$/);
});

test("at the end Ingresses of other classes keep their addresses", async (t) => {
  const { client, status, notServed, addresses, end } = await start(t, "a", "b");
  await waitFor(() => addresses("a").length + addresses("b").length === 2);
  await end();
  notServed.add("b");
  client.clearActions();
  await status.withdraw(AbortSignal.timeout(60_000));
  assert.deepEqual([addresses("a"), addresses("b"), client.writes.length], [[], ["192.0.2.1"], 1]);
});

test("Ingresses with thousands of backends are checked in turns", async (t) => {
  let now = 0;
  let [inIteration, most, looks] = [0, 0, 0];
  const names = Array.from({ length: 20 }, (_, i) => `i${i}`);
  const { status, problems } = await startIn(t, new Turns(() => now), ...names);
  await waitFor(() => status.pending === 0);
  await settle();
  const iterate = (): void => {
    inIteration = 0;
    if (looks < 20) setImmediate(iterate);
  };
  iterate();
  problems.get = () => {
    looks++;
    most = Math.max(most, ++inIteration);
    now += 10; // more than a slice
    return [];
  };
  for (const name of names) status.enqueue(`default/${name}`);
  await waitFor(() => looks === 20);
  assert.ok(most <= 2, `${most} in one iteration`);
});

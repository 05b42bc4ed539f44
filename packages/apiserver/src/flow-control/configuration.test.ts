import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import { flowSchemas, priorityLevelConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { followConfiguration } from "./configuration.ts";
import type { Configuration, FlowSchema, PriorityLevel } from "./plan.ts";

const level = (name: string): PriorityLevel => ({ metadata: { name }, spec: { type: "Exempt" } });
const schema = (name: string, levelName: string): FlowSchema => ({
  metadata: { name },
  spec: { priorityLevelConfiguration: { name: levelName }, matchingPrecedence: 1 },
});

async function following(t: TestContext, schemas: FlowSchema[], levels: PriorityLevel[] = [], prepare = (_: FakeClient) => {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  prepare(client);
  client.put(priorityLevelConfigurations, ...levels);
  client.put(flowSchemas, ...schemas);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const configured: Configuration[] = [];
  const flowControl = { configure: (wanted: Configuration) => void configured.push(wanted) };
  const end = new AbortController();
  t.after(() => end.abort());
  followConfiguration({ informers, client, flowControl, clock, log })(end.signal);
  informers.start(end.signal);
  const condition = (name: string) => client.object<FlowSchema>(flowSchemas, name)?.status?.conditions?.[0];
  const dangles = (name: string, status: string) =>
    waitFor(() => condition(name)?.status === status, { what: `${name} to say ${status}`, timeoutMs: 20_000 });
  return { clock, client, configured, condition, dangles, end, errors };
}

test("each schema says whether its level is there, and says it anew when that changes", async (t) => {
  const { client, configured, condition, dangles } = await following(
    t,
    [schema("a", "here"), schema("b", "gone")],
    [level("here")],
  );
  await dangles("a", "False");
  await dangles("b", "True");
  assert.deepEqual([condition("a")?.reason, condition("b")?.reason], ["Found", "NotFound"]);
  assert.match(condition("b")?.message ?? "", /named "gone" but there is no such object/);
  assert.deepEqual(configured[0]?.schemas.map(({ metadata }) => metadata.name).sort(), ["a", "b"]);
  client.put(priorityLevelConfigurations, level("gone"));
  await dangles("b", "False");
  client.remove(priorityLevelConfigurations, "here");
  await dangles("a", "True");
  assert.deepEqual(
    configured.at(-1)?.levels.map(({ metadata }) => metadata.name),
    ["gone"],
  );
  const writes = client.writes.length;
  client.put(flowSchemas, { ...(client.object<FlowSchema>(flowSchemas, "a") as FlowSchema) });
  const before = configured.length;
  await waitFor(() => configured.length > before, { what: "the change" });
  assert.equal(client.writes.length, writes, "a condition that is right is not written again");
});

test("a status that cannot be written is tried again after fifteen seconds, and others after it are written", async (t) => {
  let failures = 0;
  const { client, clock, condition, dangles } = await following(t, []);
  client.react("patch", "flowschemas", () => {
    if (failures++ === 0) throw conflict(flowSchemas, "a", "try again");
    return undefined;
  });
  client.put(flowSchemas, schema("a", "gone"));
  await waitFor(() => failures === 1, { what: "the failure" });
  await waitFor(
    async () => {
      if (condition("a") !== undefined) return true;
      await clock.advance(15_000);
      return false;
    },
    { what: "the second attempt" },
  );
  client.put(flowSchemas, schema("b", "gone"));
  await dangles("b", "True");
});

test("a change that comes while a condition is written is applied after it", async (t) => {
  const { client, configured, dangles } = await following(t, []);
  const written = Promise.withResolvers<undefined>();
  let writes = 0;
  client.react("patch", "flowschemas", () => (writes++ === 0 ? written.promise : undefined));
  client.put(flowSchemas, schema("a", "gone"));
  await waitFor(() => writes === 1, { what: "the write" });
  const before = configured.length;
  client.put(flowSchemas, schema("b", "gone"));
  await settle();
  assert.equal(configured.length, before, "one run at a time");
  written.resolve(undefined);
  await dangles("b", "True");
});

test("a change that comes while a condition cannot be written is applied at once, without waiting for the retry", async (t) => {
  const { client, configured } = await following(t, []);
  const written = Promise.withResolvers<undefined>();
  let writes = 0;
  client.react("patch", "flowschemas", () => {
    writes++;
    return written.promise;
  });
  client.put(flowSchemas, schema("a", "gone"));
  await waitFor(() => writes === 1, { what: "the write" });
  client.put(priorityLevelConfigurations, level("new"));
  await settle();
  written.reject(conflict(flowSchemas, "a", "try again"));
  await waitFor(() => configured.at(-1)?.levels.length === 1, { what: "the change" });
});

test("two servers that contradict each other write six times in a minute, and go on later", async (t) => {
  const { client, clock, condition, dangles } = await following(t, [schema("a", "gone")]);
  await dangles("a", "True");
  const patches = () => client.writes.filter(({ verb }) => verb === "patch").length;
  const contradict = async (): Promise<void> => {
    const now = client.object<FlowSchema>(flowSchemas, "a") as FlowSchema;
    client.put(flowSchemas, { ...now, status: { conditions: [{ type: "Dangling", status: "False", reason: "Found" }] } });
  };
  for (let write = 2; write <= 6; write++) {
    await contradict();
    await waitFor(() => patches() === write, { what: `write ${write}` });
  }
  await contradict();
  await waitFor(() => clock.waiting > 0 && condition("a")?.status === "False", { what: "the retry" });
  await clock.advance(59_000);
  assert.equal(patches(), 6);
  await clock.advance(20_000);
  await waitFor(() => patches() === 7, { what: "the seventh write" });
});

test("nothing is written after the end", async (t) => {
  const { client, dangles, end, configured } = await following(t, [schema("a", "gone")]);
  await dangles("a", "True");
  const writes = client.writes.length;
  end.abort();
  const before = configured.length;
  client.put(flowSchemas, schema("b", "gone"));
  await new Promise(setImmediate);
  assert.deepEqual([client.writes.length, configured.length], [writes, before]);
});

test("a condition that names the former level is written again, though its status is the same", async (t) => {
  const { client, condition } = await following(t, [schema("a", "one")], [level("one"), level("two")]);
  await waitFor(() => condition("a")?.message?.includes('named "one" and it exists'), { what: "the first level" });
  const stored = client.object<FlowSchema>(flowSchemas, "a") as FlowSchema;
  client.put(flowSchemas, { ...stored, spec: schema("a", "two").spec });
  await waitFor(() => condition("a")?.message?.includes('named "two" and it exists'), { what: "the second level" });
});

for (const unknown of ["flowschemas", "prioritylevelconfigurations"]) {
  test(`nothing is applied before the ${unknown} are known`, async (t) => {
    const { client, configured } = await following(t, [schema("a", "one")], [level("one")], (prepared) => {
      prepared.react("list", unknown, () => new Promise(() => {}));
    });
    await waitFor(() => client.actions.filter(({ verb }) => verb === "watch").length === 1, { what: "the others" });
    await settle();
    assert.deepEqual(configured, []);
  });
}

test("a status that cannot be written is an error in the log, unless the server stops", async (t) => {
  const { client, errors, end, clock } = await following(t, []);
  let stops = false;
  client.react("patch", "flowschemas", () => {
    if (stops) end.abort();
    throw conflict(flowSchemas, "a", "try again");
  });
  client.put(flowSchemas, schema("a", "gone"));
  await waitFor(() => errors.length === 1, { what: "the error" });
  assert.deepEqual(errors, ["cannot update the condition Dangling of flow schemas"]);
  stops = true;
  client.put(flowSchemas, schema("b", "gone"));
  await waitFor(() => end.signal.aborted, { what: "the end" });
  await settle();
  await clock.advance(60_000);
  assert.equal(errors.length, 1);
});

test("the writes of a minute are counted for each schema by itself, and one that has had its six is tried again", async (t) => {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const { clock, client, dangles } = await following(
    t,
    names.map((name) => schema(name, "gone")),
  );
  for (const name of names) await dangles(name, "True");
  const patches = () => client.writes.filter(({ verb, name }) => verb === "patch" && name === "a").length;
  const contradict = (): void => {
    const now = client.object<FlowSchema>(flowSchemas, "a") as FlowSchema;
    client.put(flowSchemas, { ...now, status: { conditions: [{ type: "Dangling", status: "False", reason: "Found" }] } });
  };
  while (patches() < 6) {
    const before = patches();
    contradict();
    await waitFor(() => patches() > before, { what: `write ${before + 1}` });
  }
  contradict();
  await waitFor(() => clock.waiting > 0, { what: "the retry" });
  for (let i = 0; i < 5; i++) await clock.advance(15_000);
  await dangles("a", "True");
});

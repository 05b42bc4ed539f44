/** Large objects in audit events: recording them does not block other clients, and the memory they take is bounded. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newObjectRecorder } from "../audit/recorded-object.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-audit-turns-"));
after(() => rmSync(folder, { recursive: true }));
const policy = join(folder, "policy.yaml");
writeFileSync(
  policy,
  "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitManagedFields: true\nrules:\n- level: RequestResponse\n  resources: [{group: '', resources: [configmaps]}]\n- level: None\n",
);
const logFile = join(folder, "audit.log");
const server = await startTestServer({ after }, [`--audit-policy-file=${policy}`, `--audit-log-path=${logFile}`]);
const path = "/api/v1/namespaces/default/configmaps";
const count = 120;
/** One turn for the whole list would take 200 ms. */
const longestTurnMs = 150;

before(async () => {
  const data = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key-${at}`, "<value> ".repeat(8)]));
  for (let at = 0; at < count; at++) await server.request("POST", path, { metadata: { name: `large-${at}` }, data });
});

const isHalfWritten = (err: Error): boolean => err instanceof SyntaxError;

// biome-ignore lint/suspicious/noExplicitAny: events hold objects of every kind.
function eventOf(auditId: unknown): any {
  const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line)).find(({ auditID, stage }) => auditID === auditId && stage === "ResponseComplete");
}

for (const { name, headers } of [
  { name: "JSON", headers: {} },
  { name: "compressed JSON", headers: { "accept-encoding": "gzip" } },
  { name: "protobuf", headers: { accept: "application/vnd.kubernetes.protobuf" } },
]) {
  test(`a list of ${count} config maps as ${name} is recorded in a worker thread`, async () => {
    let id: unknown;
    await server.request("GET", path, undefined, headers); // fill the entries' encoding caches
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const answer = await server.request("GET", path, undefined, headers);
      id = answer.headers["audit-id"];
    });
    const { responseObject } = await waitFor(() => eventOf(id), { what: "the event", retry: isHalfWritten });
    assert.equal(responseObject.kind, "ConfigMapList");
    assert.equal(responseObject.items.length, count);
    assert.equal(responseObject.items[7].data["key-7"], "<value> ".repeat(8));
    assert.equal(responseObject.items[7].metadata.managedFields, undefined);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

test("the recorder refuses what events cannot hold, until something is released", () => {
  const recorder = newObjectRecorder({ maxHeldBytes: 100 });
  assert.deepEqual([recorder.reserve(60), recorder.reserve(41), recorder.reserve(40)], [true, false, true]);
  recorder.release(60);
  assert.equal(recorder.reserve(60), true);
});

/** The parts of a Secret quoted in the Status of a failed patch; see the table in docs/security.md. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";

const server = await startTestServer({ after });
const path = "/api/v1/namespaces/default/secrets";
const stored = Buffer.from("stored").toString("base64");
before(() => server.request("POST", path, { metadata: { name: "s" }, data: { kept: stored } }));

for (const { name, type, patch, code, quotes } of [
  { name: "a conflict", type: "merge", patch: { metadata: { resourceVersion: "1" } }, code: 409, quotes: false },
  { name: "a merge patch that gives no Secret", type: "merge", patch: { data: { a: "!" } }, code: 422, quotes: true },
  {
    name: "a JSON patch that gives no Secret",
    type: "json",
    patch: [{ op: "add", path: "/data/a", value: "!" }],
    code: 422,
    quotes: true,
  },
  {
    name: "a strategic patch that gives no Secret",
    type: "strategic-merge",
    patch: { data: { a: "!" } },
    code: 422,
    quotes: false,
  },
  { name: "an invalid Secret", type: "merge", patch: { data: { "a b": "eA==" } }, code: 422, quotes: false },
]) {
  test(`${name} is ${code}, ${quotes ? "with" : "without"} data that was not in the patch`, async () => {
    const headers = { "content-type": `application/${type}-patch+json` };
    const answer = await server.request("PATCH", `${path}/s`, JSON.stringify(patch), headers);
    assert.equal(answer.code, code, answer.text);
    assert.equal(answer.text.includes(stored), quotes, answer.text);
  });
}

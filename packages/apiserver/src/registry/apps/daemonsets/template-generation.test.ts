import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "../../../testing/start-test-server.ts";

const path = "/apis/apps/v1/namespaces/default/daemonsets";
const annotation = "deprecated.daemonset.template.generation";
const daemonSet = (name: string, image: string, annotations?: Record<string, string>) => ({
  metadata: { name, annotations },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image }] } },
  },
});

test("only DaemonSets report how often their template changed", async (t) => {
  const server = await startTestServer(t);
  const generationOf = ({ body }: { body: { metadata: { annotations: Record<string, string> } } }) =>
    body.metadata.annotations[annotation];
  const created = await server.request("POST", path, daemonSet("d", "i"));
  assert.equal(generationOf(created), "1");
  assert.deepEqual(created.body.metadata.managedFields[0].fieldsV1["f:metadata"], {
    "f:annotations": { ".": {}, [`f:${annotation}`]: {} },
  });
  assert.equal(
    generationOf(await server.request("PUT", `${path}/d`, daemonSet("d", "i", { mine: "x", [annotation]: "9" }))),
    "1",
  );
  assert.equal(generationOf(await server.request("PUT", `${path}/d`, daemonSet("d", "j"))), "2");
  const status = {
    ...daemonSet("d", "j"),
    status: { numberReady: 0, currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 1 },
  };
  assert.equal(generationOf(await server.request("PUT", `${path}/d/status`, status)), "2");
  assert.equal(generationOf(await server.request("POST", path, daemonSet("later", "i", { [annotation]: "7" }))), "7");
});

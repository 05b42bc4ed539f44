import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "../objects/errors/status-error.ts";
import type { Client } from "./client.ts";
import { discoverGroups, discoverPreferredResources } from "./discovery.ts";

type Answer = { readonly status?: number; readonly body: unknown };
const pod = { name: "pods", kind: "Pod", namespaced: true, verbs: ["get"], shortNames: ["po"] };

/** A client whose `raw` gives these answers by path, and 404 otherwise. */
function serving(answers: Record<string, Answer>): Client {
  const raw: Client["raw"] = async (_method, path) => {
    const { status = 200, body } = answers[path] ?? { status: 404, body: "404 page not found" };
    return { status, headers: {}, body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)) };
  };
  return { raw } as Client; // cast: discovery uses nothing else
}
const groups = (...named: [name: string, versions: string[], preferred?: string][]): Record<string, Answer> => ({
  "/api": { body: { versions: ["v1"] } },
  "/api/v1": { body: { resources: [pod, { ...pod, name: "pods/log" }] } },
  "/apis": {
    body: {
      groups: named.map(([name, versions, preferred]) => ({
        name,
        versions: versions.map((version) => ({ version })),
        ...(preferred === undefined ? {} : { preferredVersion: { version: preferred } }),
      })),
    },
  },
});
const resource = (name: string) => ({ name, kind: name.toUpperCase(), namespaced: false, verbs: null });

test("the preferred version of a group comes first, the others in the server's order", async () => {
  const client = serving(groups(["x.io", ["v2", "v1", "v1beta1"], "v1"], ["y.io", ["v3", "v2"]]));
  assert.deepEqual(await discoverGroups(client), [
    { name: "", versions: ["v1"] },
    { name: "x.io", versions: ["v1", "v2", "v1beta1"] },
    { name: "y.io", versions: ["v3", "v2"] },
  ]);
});

test("each resource is listed once, at the preferred version or the next that has it, without subresources", async () => {
  const client = serving({
    ...groups(["x.io", ["v2", "v1"], "v1"], ["y.io", ["v1"]]),
    "/apis/x.io/v1": { body: { resources: [resource("a")] } },
    "/apis/x.io/v2": { body: { resources: [resource("a"), resource("b")] } },
    "/apis/y.io/v1": { body: { resources: [resource("a")] } },
  });
  const { resources, failed } = await discoverPreferredResources(client);
  assert.deepEqual(
    resources.map(({ group, version, resource: name }) => `${group}/${version}/${name}`),
    ["/v1/pods", "x.io/v1/a", "x.io/v2/b", "y.io/v1/a"],
  );
  assert.deepEqual(resources[0], {
    group: "",
    version: "v1",
    resource: "pods",
    kind: "Pod",
    namespaced: true,
    verbs: ["get"],
    shortNames: ["po"],
  });
  assert.deepEqual([resources[1]?.verbs, resources[1]?.shortNames, failed], [[], [], []]);
});

test("a version that went meanwhile is left out, one that fails is reported with the server's error", async () => {
  const status = { kind: "Status", reason: "ServiceUnavailable", message: "away", code: 503 };
  const client = serving({
    ...groups(["gone.io", ["v1"]], ["away.io", ["v1"]], ["odd.io", ["v1"]], ["a/b", ["v1"]]),
    "/apis/away.io/v1": { status: 503, body: status },
    "/apis/odd.io/v1": { status: 500, body: "<html>" },
  });
  const { resources, failed } = await discoverPreferredResources(client);
  assert.equal(resources.length, 1);
  assert.deepEqual(
    failed.map(({ groupVersion, error }) => [
      groupVersion,
      error instanceof StatusError ? [error.code, error.status.reason, error.message] : String(error),
    ]),
    [
      ["a/b/v1", "Error: not a group version: a/b/v1"],
      ["away.io/v1", [503, "ServiceUnavailable", "away"]],
      ["odd.io/v1", [500, undefined, "GET /apis/odd.io/v1: unexpected status 500"]],
    ],
  );
});

test("without the list of groups there is no result", async () => {
  const { "/apis": _, ...rest } = groups();
  await assert.rejects(discoverPreferredResources(serving(rest)), (err: StatusError) => err.code === 404);
});

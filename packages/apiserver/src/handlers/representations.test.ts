/** All representations of every resource, and all input encodings, over HTTP. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { type Answer, aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startShared();
});
after(() => server.stop());

const protobuf = "application/vnd.kubernetes.protobuf";
const as = (kind: string, type = "application/json"): Record<string, string> => ({
  accept: `${type};as=${kind};g=meta.k8s.io;v=v1`,
});

interface Listed {
  readonly path: string;
  readonly kind: string;
  readonly apiVersion: string;
}

/** All listable resources, from discovery. */
async function listable(): Promise<Listed[]> {
  const { body: groups } = await server.request("GET", "/apis");
  const groupVersions: string[] = groups.groups.flatMap(({ versions }: { versions: { groupVersion: string }[] }) =>
    versions.map(({ groupVersion }) => groupVersion),
  );
  const found: Listed[] = [];
  for (const apiVersion of ["v1", ...groupVersions]) {
    const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
    const { body } = await server.request("GET", root);
    for (const { name, kind, verbs } of body.resources) {
      if (verbs.includes("list")) found.push({ path: `${root}/${name}`, kind, apiVersion });
    }
  }
  return found;
}

test("every resource is listed as JSON, protobuf, Table and metadata alone", async () => {
  const resources = await listable();
  assert.ok(resources.length >= 60, String(resources.length));
  for (const { path, kind, apiVersion } of resources) {
    const json = await server.request("GET", path);
    assert.deepEqual([json.code, json.body.kind, json.body.apiVersion], [200, `${kind}List`, apiVersion], path);
    const binary = await server.request("GET", path, undefined, { accept: protobuf });
    assert.deepEqual([binary.code, binary.headers["content-type"]], [200, protobuf], path);
    assert.equal(binary.raw.subarray(0, 4).toString("latin1"), "k8s\0", path);
    const table = await server.request("GET", path, undefined, as("Table"));
    assert.deepEqual([table.code, table.body.kind, table.body.apiVersion], [200, "Table", "meta.k8s.io/v1"], path);
    assert.equal(table.body.columnDefinitions[0].name, kind === "Event" ? "Last Seen" : "Name", path);
    for (const { cells, object } of table.body.rows) {
      assert.equal(cells.length, table.body.columnDefinitions.length, path);
      assert.equal(object.kind, "PartialObjectMetadata", path);
    }
    const metadata = await server.request("GET", path, undefined, as("PartialObjectMetadataList"));
    assert.deepEqual([metadata.code, metadata.body.kind], [200, "PartialObjectMetadataList"], path);
  }
});

test("metadata alone is in the version that was requested, whatever was requested of the same objects before", async () => {
  await server.request("POST", configMaps, aConfigMap("versions"));
  for (const type of ["application/json", "application/yaml"]) {
    for (const version of ["v1", "v1beta1", "v1"]) {
      const accept = (kind: string) => ({ accept: `${type};as=${kind};g=meta.k8s.io;v=${version}` });
      const parse = ({ raw }: Answer) => parseYaml(raw.toString()) as { apiVersion: string; items?: { apiVersion: string }[] };
      const list = parse(await server.request("GET", `${configMaps}?limit=500`, undefined, accept("PartialObjectMetadataList")));
      const one = parse(await server.request("GET", `${configMaps}/versions`, undefined, accept("PartialObjectMetadata")));
      const versions = [list.apiVersion, ...new Set(list.items?.map(({ apiVersion }) => apiVersion)), one.apiVersion];
      assert.deepEqual(versions, new Array(3).fill(`meta.k8s.io/${version}`), type);
    }
  }
});

test("every resource is listed as YAML, which says what JSON says", async () => {
  await server.request("POST", configMaps, aConfigMap("in-yaml", { a: "yes", b: "- 0\n" }));
  for (const { path } of await listable()) {
    const json = await server.request("GET", path);
    const yaml = await server.request("GET", path, undefined, { accept: "application/yaml" });
    assert.deepEqual([yaml.code, yaml.headers["content-type"]], [200, "application/yaml"], path);
    const [list, wanted] = [parseYaml(yaml.raw.toString()) as typeof json.body, json.body];
    assert.deepEqual(list.items, wanted.items, path);
    assert.equal(list.kind, wanted.kind, path);
  }
});

test("protobuf is the four bytes and one Unknown with the kind, the object and two empty fields", async () => {
  await server.request("POST", configMaps, aConfigMap("in-protobuf", { a: "b" }));
  const { raw } = await server.request("GET", `${configMaps}/in-protobuf`, undefined, { accept: protobuf });
  const typeMeta = Buffer.from("\n\u0002v1\u0012\tConfigMap", "latin1");
  const head = Buffer.concat([Buffer.from("k8s\0"), Buffer.from([0x0a, typeMeta.length]), typeMeta, Buffer.from([0x12])]);
  assert.deepEqual(raw.subarray(0, head.length), head);
  assert.deepEqual([...raw.subarray(-4)], [0x1a, 0, 0x22, 0]);
});

for (const { accept, type } of [
  { accept: `${protobuf}, application/json`, type: protobuf },
  { accept: `text/html, ${protobuf};q=0.5, application/json;q=0.9`, type: "application/json" },
  { accept: "application/json;as=Table;g=meta.k8s.io;v=v9, application/yaml", type: "application/yaml" },
  { accept: "*/*", type: "application/json" },
  { accept: "", type: "application/json" },
]) {
  test(`Accept: ${accept} is answered in ${type}`, async () => {
    const { code, headers } = await server.request("GET", configMaps, undefined, accept === "" ? {} : { accept });
    assert.deepEqual([code, headers["content-type"]], [200, type]);
  });
}

for (const { query, agent, indented } of [
  { query: "?pretty=true", agent: "kubectl", indented: true },
  { query: "?pretty=0", agent: "curl/7.1", indented: false },
  { query: "", agent: "curl/7.1", indented: true },
  { query: "?pretty", agent: "Mozilla/5.0 (X11)", indented: true },
  { query: "", agent: "kubectl", indented: false },
]) {
  test(`${agent} and ${query || "no pretty"}: ${indented ? "indented" : "plain"}`, async () => {
    for (const path of ["/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/namespaces/none"]) {
      const { raw } = await server.request("GET", path + query, undefined, { "user-agent": agent });
      assert.equal(raw.toString().startsWith("{\n  "), indented, path);
    }
  });
}

for (const query of [
  "resourceVersionMatch=Exact",
  "resourceVersionMatch=Newest&resourceVersion=5",
  "resourceVersionMatch=NotOlderThan",
]) {
  test(`a list with ${query} is 422`, async () => {
    const { body } = await server.request("GET", `${configMaps}?${query}`);
    assert.partialDeepStrictEqual(body, { code: 422, details: { kind: "ListOptions", group: "meta.k8s.io" } });
  });
}

for (const query of ["dryRun", "dryRun=", "dryRun=all", "dryRun=All&dryRun=None"]) {
  test(`a creation with ?${query} is 422`, async () => {
    const { body } = await server.request("POST", `${configMaps}?${query}`, aConfigMap("bare"));
    hasFields(body, { code: 422, details: { kind: "CreateOptions", causes: [{ field: "dryRun" }] } });
  });
}

test("a watch resumes from any event's version, and from a list's, and misses nothing", async () => {
  const label = "labelSelector=of=resume";
  const { body: list } = await server.request("GET", `${configMaps}?${label}`);
  const names = ["resume-a", "resume-b", "resume-c"];
  for (const name of names) await server.request("POST", configMaps, aConfigMap(name, {}, { of: "resume" }));
  const from = async (resourceVersion: string, count: number) => {
    const watch = await server.watch(`${configMaps}?watch=1&${label}&resourceVersion=${resourceVersion}`);
    const events = [];
    while (events.length < count) events.push(await watch.next());
    watch.close();
    return events.map(({ object }) => object.metadata as { name: string; resourceVersion: string });
  };
  const seen = await from(list.metadata.resourceVersion, 3);
  assert.deepEqual(
    seen.map(({ name }) => name),
    names,
  );
  assert.deepEqual(await from(seen[0]?.resourceVersion ?? "", 2), seen.slice(1));
});

describe("deletion", () => {
  const remove = async (name: string, options?: object, query = ""): Promise<Answer> => {
    await server.request("POST", configMaps, aConfigMap(name));
    return server.request("DELETE", `${configMaps}/${name}${query}`, options);
  };
  for (const { name, options, query, finalizers } of [
    { name: "at-once", finalizers: undefined },
    { name: "foreground", options: { propagationPolicy: "Foreground" }, finalizers: ["foregroundDeletion"] },
    { name: "orphan", query: "?propagationPolicy=Orphan", finalizers: ["orphan"] },
    { name: "orphan-dependents", options: { orphanDependents: true }, finalizers: ["orphan"] },
    { name: "background", options: { propagationPolicy: "Background" }, finalizers: undefined },
  ]) {
    test(`${name}: ${finalizers === undefined ? "removes the object" : `waits for ${finalizers}`}`, async () => {
      const { code, body } = await remove(name, options, query);
      assert.equal(code, 200);
      if (finalizers === undefined) {
        assert.partialDeepStrictEqual(body, { kind: "Status", status: "Success", details: { name, kind: "configmaps" } });
        assert.equal((await server.request("GET", `${configMaps}/${name}`)).code, 404);
      } else {
        assert.deepEqual(body.metadata.finalizers, finalizers);
        assert.ok(body.metadata.deletionTimestamp);
      }
    });
  }

  test("preconditions that do not hold are 409, and nothing is deleted", async () => {
    const { body: made } = await server.request("POST", configMaps, aConfigMap("guarded"));
    const { uid, resourceVersion } = made.metadata;
    for (const preconditions of [{ uid: "other" }, { resourceVersion: "1" }, { uid, resourceVersion: "1" }]) {
      const refused = await server.request("DELETE", `${configMaps}/guarded`, { preconditions });
      assert.partialDeepStrictEqual(refused.body, { code: 409, reason: "Conflict" });
      assert.match(refused.body.message, /the (UID|ResourceVersion) in the precondition .* does not match/);
    }
    const { code } = await server.request("DELETE", `${configMaps}/guarded`, { preconditions: { uid, resourceVersion } });
    assert.equal(code, 200);
  });
});

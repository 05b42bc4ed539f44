import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";
import { readRuntimeConfig } from "./runtime-config.ts";

for (const { config, message } of [
  { config: { "api/all": "false" }, message: "invalid key with only api/all=false" },
  { config: { "api/beta": "no" }, message: "invalid value api/beta=no" },
  { config: { "api/all": "TRUE" }, message: "invalid value api/all=TRUE" },
  { config: { v2: "true" }, message: "runtime-config invalid key v2" },
  { config: { "apps/v1/a/b": "true" }, message: "runtime-config invalid key apps/v1/a/b" },
  { config: { "moon/v1": "true" }, message: "unknown api groups moon" },
  { config: { "apps/v7": "true" }, message: "group version apps/v7 that has not been registered" },
  {
    config: { "batch/v1/cronJobs": "true" },
    message: 'invalid key batch/v1/cronJobs: group/version/resource and resource is always lowercase plural, not "cronJobs"',
  },
  {
    config: { "batch/v1": "maybe" },
    message: 'invalid value of batch/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
  },
] as { config: Record<string, string>; message: string }[]) {
  test(`--runtime-config=${JSON.stringify(config)} is refused`, () => {
    assert.throws(() => readRuntimeConfig(config), { message });
  });
}

test("of a resource, its version, the stage of that and all, the most particular one decides", () => {
  const config: Record<string, string> = { "api/all": "true", "api/beta": "false", "batch/v1beta1": "true" };
  const served = (more: Record<string, string> = {}) => {
    const isServed = readRuntimeConfig({ ...config, ...more });
    return [
      isServed("batch", "v1beta1", "cronjobs", false),
      isServed("policy", "v1beta1", "poddisruptionbudgets", true),
      isServed("apps", "v1", "deployments", false),
    ];
  };
  assert.deepEqual(served(), [true, false, true]);
  assert.deepEqual(served({ "batch/v1beta1/cronjobs": "false" }), [false, false, true]);
  assert.deepEqual(served({ "batch/v1beta1": "false", "batch/v1beta1/cronjobs": "true" }), [true, false, true]);
  assert.deepEqual(served({ "api/ga": "false" }), [true, false, false]);
});

/** Paths of a resource or a group version that a server with these flags serves, and others that it does not serve. */
for (const { flag, served, gone } of [
  {
    flag: "api/legacy=false",
    served: ["/api/v1/pods", "/apis/batch/v1beta1/cronjobs"],
    gone: ["/apis/storage.k8s.io/v1alpha1", "/apis/internal.apiserver.k8s.io/v1alpha1"],
  },
  {
    flag: "api/beta=false",
    served: ["/apis/batch/v1/cronjobs", "/apis/policy/v1/poddisruptionbudgets"],
    gone: ["/apis/batch/v1beta1", "/apis/policy/v1beta1", "/apis/autoscaling/v2beta2"],
  },
  {
    flag: "api/alpha=true",
    served: ["/apis/storage.k8s.io/v1alpha1/csistoragecapacities", "/apis/batch/v1beta1/cronjobs"],
    gone: [],
  },
  {
    flag: "api/all=false,api/ga=true,batch/v1beta1=true,apps/v1/daemonsets=false",
    served: ["/api/v1/pods", "/apis/apps/v1/deployments", "/apis/batch/v1beta1/cronjobs"],
    gone: ["/apis/apps/v1/daemonsets", "/apis/policy/v1beta1", "/apis/autoscaling/v2beta1"],
  },
  {
    flag: "batch/v1beta1=false,api/all=true,batch/v1",
    served: ["/apis/batch/v1/jobs", "/apis/storage.k8s.io/v1alpha1/csistoragecapacities"],
    gone: ["/apis/batch/v1beta1"],
  },
]) {
  test(`--runtime-config=${flag}`, async (t) => {
    const server = await startTestServer(t, [`--runtime-config=${flag}`]);
    for (const path of served) assert.equal((await server.request("GET", path)).code, 200, path);
    for (const path of gone) assert.equal((await server.request("GET", path)).code, 404, path);
    const { body } = await server.request("GET", "/apis");
    const versions = body.groups.flatMap((group: { versions: { groupVersion: string }[] }) =>
      group.versions.map(({ groupVersion }) => groupVersion),
    );
    for (const path of gone.filter((one) => one.split("/").length === 4)) assert.ok(!versions.includes(path.slice(6)), path);
  });
}

test("volume attachments have a status in v1 only", async (t) => {
  const server = await startTestServer(t, ["--runtime-config=storage.k8s.io/v1alpha1=true"]);
  for (const [version, has] of [
    ["v1", true],
    ["v1alpha1", false],
  ] as const) {
    const { body } = await server.request("GET", `/apis/storage.k8s.io/${version}`);
    const names = body.resources.map((row: { name: string }) => row.name);
    assert.ok(names.includes("volumeattachments"), version);
    assert.equal(names.includes("volumeattachments/status"), has, version);
  }
});

test("--runtime-config=v1=false disables the core group", async (t) => {
  const server = await startTestServer(t, ["--runtime-config=v1=true"]);
  assert.equal((await server.request("GET", "/api/v1/namespaces")).code, 200);
  const isServed = readRuntimeConfig({ v1: "false" });
  assert.equal(isServed("", "v1", "pods", true), false);
  assert.equal(isServed("apps", "v1", "deployments", true), true);
});

test("--runtime-config=api/v1 means the core group, too", () => {
  for (const value of ["", "true"]) assert.equal(readRuntimeConfig({ "api/v1": value })("", "v1", "pods", false), true);
  assert.equal(readRuntimeConfig({ "api/v1": "false" })("", "v1", "pods", true), false);
  const isServed = readRuntimeConfig({ "api/v1/pods": "false" });
  assert.deepEqual([isServed("", "v1", "pods", true), isServed("", "v1", "nodes", true)], [false, true]);
  assert.throws(() => readRuntimeConfig({ "api/v2": "true" }), { message: "unknown api groups api" });
});

test("the APIService of a version that is no longer served is deleted with the next start", async (t) => {
  const prefix = `--etcd-prefix=/runtime-config-${randomUUID()}`;
  const path = "/apis/apiregistration.k8s.io/v1/apiservices";
  const first = await startTestServer(undefined, [prefix]);
  assert.equal((await first.request("GET", `${path}/v1beta1.batch`)).code, 200);
  await first.stop();
  const second = await startTestServer(t, [prefix, "--runtime-config=batch/v1beta1=false"]);
  assert.equal((await second.request("GET", `${path}/v1beta1.batch`)).code, 404);
  assert.equal((await second.request("GET", `${path}/v1.batch`)).code, 200);
});

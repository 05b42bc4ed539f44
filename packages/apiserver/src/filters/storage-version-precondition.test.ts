import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { UserInfo } from "../request/context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { type PendingStorageVersions, storageVersionPrecondition } from "./storage-version-precondition.ts";

const admin = { name: "admin", uid: "", groups: ["system:masters"] };
const itself = { name: "system:apiserver", uid: "", groups: ["system:masters"] };
const pods = "/api/v1/namespaces/default/pods";
const leases = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

/** Nothing is published yet; publishing deployments failed. */
function bench(done = Promise.resolve()) {
  const versions: { -readonly [K in keyof PendingStorageVersions]: PendingStorageVersions[K] } = {
    completed: false,
    whenCompleted: done,
    pending: ({ group, resource }) =>
      resource === "reviews" ? undefined : { lastError: group === "apps" ? new Error("no such API") : undefined },
  };
  const wait = storageVersionPrecondition(versions);
  const passed: string[] = [];
  const send = async (method: string, path: string, user: Partial<UserInfo> = admin): Promise<string> => {
    const info = parseRequestInfo(method, path);
    try {
      await wait({ info, user: user as UserInfo });
      passed.push(`${info.verb} ${info.path}`);
      return "passes";
    } catch (err) {
      return (err as Error).message;
    }
  };
  return { versions, send, passed };
}

const waits = (resource: string, error = "<nil>") =>
  `wait for storage version registration to complete for resource: ${resource}, last seen error: ${error}`;

for (const { method, path, user, want } of [
  { method: "GET", path: pods, want: "passes" },
  { method: "GET", path: `${pods}?watch=true`, want: "passes" },
  { method: "POST", path: pods, want: waits("pods") },
  { method: "PUT", path: `${pods}/a`, want: waits("pods") },
  { method: "PATCH", path: `${pods}/a/status`, want: waits("pods") },
  { method: "DELETE", path: pods, want: waits("pods") },
  { method: "POST", path: "/apis/apps/v1/namespaces/a/deployments", want: waits("deployments.apps", "no such API") },
  { method: "POST", path: "/apis/example.com/v1/reviews", want: "passes" },
  { method: "POST", path: "/healthz", want: "passes" },
  { method: "POST", path: "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", want: "passes" },
  { method: "POST", path: leases("kube-system"), want: "passes" },
  { method: "POST", path: leases("default"), want: waits("leases.coordination.k8s.io") },
  { method: "POST", path: "/api/v1/namespaces", want: waits("namespaces") },
  { method: "POST", path: "/api/v1/namespaces", user: { ...itself, groups: [] }, want: waits("namespaces") },
]) {
  const who = user === undefined ? "" : ` of ${user.name} without its group`;
  test(`before the storage versions are published ${method} ${path}${who} ${want === "passes" ? want : "is instructed to wait"}`, async () => {
    const { send, passed } = bench();
    assert.equal(await send(method, path, user), want);
    assert.equal(passed.length, want === "passes" ? 1 : 0);
  });
}

test("the server's own writes wait until the storage versions are published, except for namespaces", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { send, passed } = bench(promise);
  const waiting = send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", itself);
  assert.equal(await send("POST", "/api/v1/namespaces", itself), "passes");
  await settle(5);
  assert.deepEqual(passed, ["create /api/v1/namespaces"]);
  resolve();
  assert.equal(await waiting, "passes");
  assert.equal(passed.length, 2);
});

test("once the storage versions are published every write passes", async () => {
  const { versions, send } = bench();
  versions.completed = true;
  assert.equal(await send("POST", pods), "passes");
});

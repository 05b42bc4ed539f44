import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { after, before, test } from "node:test";
import { startShared, type TestServer } from "./testing.ts";

const pods = "/api/v1/namespaces/default/pods";
/** Proxying to loopback addresses is refused; nothing listens on port 1 of the other local addresses. */
const ownAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

let server: TestServer;
before(async () => {
  server = await startShared(["--disable-admission-plugins=ServiceAccount"]);
  const pod = {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name: "web" },
    spec: { containers: [{ name: "a", image: "a", ports: [{ containerPort: 1 }] }] },
  };
  await server.request("POST", pods, pod);
  const status = { status: { podIP: ownAddress ?? "10.255.255.1", podIPs: [{ ip: ownAddress ?? "10.255.255.1" }] } };
  await server.request("PATCH", `${pods}/web/status`, status, { "content-type": "application/merge-patch+json" });
});
after(() => server.stop());

test("a proxy URL without a trailing slash is redirected to the one with it", async () => {
  for (const method of ["GET", "HEAD"]) {
    const { code, headers } = await server.request(method, `${pods}/web/proxy?x=1`);
    assert.equal(code, 301, method);
    assert.equal(headers.location, `${pods}/web/proxy/?x=1`);
  }
});

test("other methods are proxied without a slash, and an unreachable target is 503", {
  skip: ownAddress === undefined && "this machine has no address besides loopback",
}, async () => {
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const { code, body } = await server.request(method, `${pods}/web/proxy`, undefined, { "content-type": "text/plain" });
    assert.equal(code, 503, method);
    assert.partialDeepStrictEqual(body, {
      reason: "ServiceUnavailable",
      message: `error trying to reach service: dial tcp ${ownAddress}:1: connect: connection refused`,
    });
  }
});

for (const { path, message } of [
  { path: `${pods}/ftp:web:21/proxy/`, message: 'invalid pod request "ftp:web:21"' },
  { path: "/api/v1/namespaces/default/services/ftp:web:21/proxy/", message: 'invalid service request "ftp:web:21"' },
  { path: "/api/v1/nodes/ftp:web:21/proxy/", message: 'invalid node request "ftp:web:21"' },
  { path: `${pods}/web/exec?command=ls&dryRun=All`, message: "dryRun is not supported" },
]) {
  test(`${path} is 400`, async () => {
    const { code, body } = await server.request("GET", path);
    assert.equal(code, 400);
    assert.equal(body.message, message);
  });
}

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const namespaces = "/api/v1/namespaces";
let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, ["--cors-allowed-origins=^https://dashboard\\.example\\.com$,//localhost(:|$)"]);
});
after(() => server.stop());

const nobody = { authorization: undefined };

for (const origin of ["https://dashboard.example.com", "http://localhost:8080"]) {
  test(`a page of ${origin} may ask, its preflight needs no credentials`, async () => {
    const preflight = await server.request("OPTIONS", namespaces, undefined, {
      ...nobody,
      origin,
      "access-control-request-method": "DELETE",
    });
    assert.equal(preflight.code, 204);
    assert.equal(preflight.headers["access-control-allow-origin"], origin);
    assert.equal(preflight.headers["access-control-allow-methods"], "POST, GET, OPTIONS, PUT, DELETE, PATCH");
    assert.equal(
      preflight.headers["access-control-allow-headers"],
      "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
    );
    const requested = await server.request("GET", namespaces, undefined, { origin });
    assert.equal(requested.headers["access-control-expose-headers"], "Date");
    assert.deepEqual([requested.code, requested.headers["access-control-allow-origin"]], [200, origin]);
    assert.equal(requested.headers["access-control-allow-credentials"], "true");
    const refused = await server.request("GET", namespaces, undefined, { ...nobody, origin });
    assert.deepEqual([refused.code, refused.headers["access-control-allow-origin"]], [403, origin]);
  });
}

test("a preflight needs no credentials for paths beside the resources either", async () => {
  const preflight = await server.request("OPTIONS", "/version", undefined, { ...nobody, origin: "http://localhost" });
  assert.deepEqual([preflight.code, preflight.headers["access-control-allow-origin"]], [204, "http://localhost"]);
});

for (const origin of ["https://dashboard.example.com.evil.org", "null", `https://${"a".repeat(10_000)}`]) {
  test(`a page of ${origin.slice(0, 50)} gets no CORS headers`, async () => {
    const preflight = await server.request("OPTIONS", namespaces, undefined, { ...nobody, origin });
    assert.equal(preflight.code, 403);
    assert.equal(preflight.headers["access-control-allow-origin"], undefined);
  });
}

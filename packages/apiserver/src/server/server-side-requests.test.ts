/** Objects with addresses that would make the server or its clients dial restricted targets are rejected when written. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const loopback = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
const linkLocal = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
const linkLocalMulticast = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
const unspecified = (ip: string): string => `may not be unspecified (${ip})`;

for (const { ip, type = "IPv4", want } of [
  { ip: "127.0.0.1", want: loopback },
  { ip: "127.255.0.9", want: loopback },
  { ip: "169.254.169.254", want: linkLocal },
  { ip: "224.0.0.1", want: linkLocalMulticast },
  { ip: "0.0.0.0", want: unspecified("0.0.0.0") },
  { ip: "::1", type: "IPv6", want: loopback },
  { ip: "fe80::1", type: "IPv6", want: linkLocal },
  { ip: "ff02::1", type: "IPv6", want: linkLocalMulticast },
  { ip: "::", type: "IPv6", want: unspecified("::") },
  { ip: "::ffff:127.0.0.1", type: "IPv6", want: loopback },
  { ip: "::ffff:169.254.169.254", type: "IPv6", want: linkLocal },
  { ip: "::ffff:7f00:1", type: "IPv6", want: loopback },
]) {
  test(`endpoints and slices to ${ip} are refused`, async () => {
    const endpoints = { metadata: { name: "e" }, subsets: [{ addresses: [{ ip }], ports: [{ port: 80 }] }] };
    const plain = await server.request("POST", "/api/v1/namespaces/default/endpoints", endpoints);
    assert.equal(plain.code, 422, plain.text);
    assert.ok(plain.body.message.includes(want), plain.body.message);
    const slice = { metadata: { name: "s" }, addressType: type, endpoints: [{ addresses: [ip] }], ports: [] };
    const path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    const { code, body, text } = await server.request("POST", path, slice);
    assert.equal(code, 422, text);
    // An EndpointSlice does not accept an IPv4-mapped address as IPv6 at all.
    const mapped = ip.startsWith("::ffff:");
    assert.ok(body.message.includes(mapped ? "endpoints[0].addresses[0]" : want), body.message);
  });
}

test("a webhook may be at any https address, as upstream has it: who writes it may read every object anyway", async () => {
  const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const webhook = (url: string) => ({
    metadata: { name: "far" },
    webhooks: [{ name: "far.example.com", admissionReviewVersions: ["v1"], sideEffects: "None", clientConfig: { url } }],
  });
  const plain = await server.request("POST", configurations, webhook("http://169.254.169.254/latest"));
  assert.equal(plain.code, 422);
  assert.match(plain.body.message, /'https' is the only allowed URL scheme/);
  assert.equal((await server.request("POST", configurations, webhook("https://169.254.169.254/latest"))).code, 201);
  // Only administrators may write it.
  const jane = { authorization: "Bearer user-token" };
  assert.equal((await server.request("POST", configurations, webhook("https://169.254.169.254/"), jane)).code, 403);
});

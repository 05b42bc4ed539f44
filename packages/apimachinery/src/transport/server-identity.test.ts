import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createServer, type PeerCertificate } from "node:tls";
import { newCa, newCertificate } from "../serving/certificates.ts";
import { listening } from "../testing/listening.ts";
import { connectTls, serverIdentityFault, watchedIdentity } from "./connect.ts";

const ca = await newCa({ commonName: "ca" });
const legacy = "x509: certificate relies on legacy Common Name field, use SANs instead";

/** The error of a handshake with a server of this certificate; undefined when the client accepts it. */
async function faultOf(
  t: test.TestContext,
  certificate: { commonName: string; dnsNames?: string[]; ips?: string[] },
  host: string,
  options: Partial<Parameters<typeof connectTls>[0]> = {},
): Promise<string | undefined> {
  const { certPem: cert, keyPem: key } = await newCertificate({ ...certificate, usages: ["server"], ca });
  const server = createServer({ cert, key }, (socket) => void socket.on("error", () => {}).end());
  server.on("tlsClientError", () => {});
  const port = await listening(t, server);
  const isAddress = /^[\d.]+$/.test(host);
  const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem, ...(!isAddress && { servername: host }), ...options });
  t.after(() => void socket.destroy());
  try {
    await once(socket, "secureConnect");
    return undefined;
  } catch (err) {
    return (err as Error).message;
  }
}

for (const { certificate, host, want } of [
  { certificate: { commonName: "web", dnsNames: ["web.example"] }, host: "web.example", want: undefined },
  { certificate: { commonName: "web", dnsNames: ["*.example.com"] }, host: "web.example.com", want: undefined },
  { certificate: { commonName: "web", ips: ["127.0.0.1"] }, host: "127.0.0.1", want: undefined },
  { certificate: { commonName: "web.example" }, host: "web.example", want: legacy },
  { certificate: { commonName: "*.example.com" }, host: "web.example.com", want: legacy },
  { certificate: { commonName: "127.0.0.1" }, host: "127.0.0.1", want: legacy },
  {
    certificate: { commonName: "web.example", ips: ["127.0.0.1"] },
    host: "web.example",
    want: "x509: certificate is not valid for any names, but wanted to match web.example",
  },
  {
    certificate: { commonName: "other" },
    host: "web.example",
    want: "x509: certificate is not valid for any names, but wanted to match web.example",
  },
  {
    certificate: { commonName: "web.example", dnsNames: ["a.example", "b.example"], ips: ["127.0.0.1"] },
    host: "web.example",
    want: "x509: certificate is valid for a.example, b.example, not web.example",
  },
  {
    certificate: { commonName: "web", dnsNames: ["web.example"] },
    host: "127.0.0.1",
    want: "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
  },
  {
    certificate: { commonName: "web", ips: ["10.0.0.1", "10.0.0.2"] },
    host: "127.0.0.1",
    want: "x509: certificate is valid for 10.0.0.1, 10.0.0.2, not 127.0.0.1",
  },
]) {
  test(`a certificate of ${JSON.stringify(certificate)} for ${host}: ${want ?? "accepted"}`, async (t) => {
    assert.equal(await faultOf(t, certificate, host), want);
  });
}

test("a certificate without alternative names is accepted where none is verified, and noticed where that is asked for", async (t) => {
  assert.equal(await faultOf(t, { commonName: "web.example" }, "web.example", { rejectUnauthorized: false }), undefined);
  let missing = 0;
  const checkServerIdentity = watchedIdentity(() => missing++);
  assert.equal(await faultOf(t, { commonName: "web.example" }, "web.example", { checkServerIdentity }), legacy);
  assert.match((await faultOf(t, { commonName: "other" }, "web.example", { checkServerIdentity })) ?? "", /not valid for any/);
  assert.equal(missing, 1);
});

test("an address in the Common Name is one in any spelling", () => {
  const peer = { subject: { CN: "FD00::1" } } as PeerCertificate; // cast: all that is read
  assert.equal(serverIdentityFault("fd00::1", peer)?.message, legacy);
  assert.match(serverIdentityFault("fd00::2", peer)?.message ?? "", /doesn't contain any IP SANs$/);
});

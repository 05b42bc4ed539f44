/** --client-ca-file over real TLS: requirements on certificates besides the CA, and a change of CAs. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  type KeyPair,
  newCa,
  newCertificate,
  newCertificateRequest,
  signCertificateRequest,
} from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer, type TestServer } from "../testing/start-test-server.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-client-certificates-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** Uses a connection of its own. @returns the user named in the error of a forbidden list, or 401 */
async function whoIs(server: TestServer, pair?: KeyPair, token?: string): Promise<string> {
  const http = newHttp(server.url, server.ca, pair && { cert: pair.certPem, key: pair.keyPem });
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const { code, body } = await http.request("GET", "/api/v1/nodes", undefined, headers);
    return code === 401 ? "401" : (/User "([^"]*)"/.exec(body.message)?.[1] ?? String(code));
  } finally {
    http.close();
  }
}

test("certificates of the right authority that must not work", async (t) => {
  const ca = await newCa({ commonName: "clients" });
  const server = await startTestServer(t, [`--client-ca-file=${write("clients.crt", ca.certPem)}`]);
  const [hourMs, now] = [3_600_000, Date.now()];
  const valid = { from: now - hourMs, to: now + hourMs };
  for (const { name, usage, from, to, want } of [
    { name: "valid", ...valid, usage: "client auth", want: "ann" },
    { name: "expired", from: now - 2 * hourMs, to: now - hourMs, usage: "client auth", want: "401" },
    { name: "not yet valid", from: now + hourMs, to: now + 2 * hourMs, usage: "client auth", want: "401" },
    { name: "for servers", ...valid, usage: "server auth", want: "401" },
    { name: "for code", ...valid, usage: "code signing", want: "401" },
  ]) {
    const { csrPem, keyPem } = await newCertificateRequest({ commonName: "ann" });
    const [notBefore, notAfter] = [new Date(from), new Date(to)];
    const certPem = await signCertificateRequest({ csrPem, ca, usages: ["digital signature", usage], notBefore, notAfter });
    assert.equal(await whoIs(server, { certPem, keyPem }), want, name);
  }
});

test("a new client authority counts without a restart; a new line of the token file does not, as in 1.23", async (t) => {
  const [first, next] = [await newCa({ commonName: "first" }), await newCa({ commonName: "next" })];
  const tokens = write("own-tokens.csv", 'token-1,ann,1,"readers"\n');
  const authorities = write("own-clients.crt", first.certPem);
  const own = await startTestServer(t, [`--client-ca-file=${authorities}`, `--token-auth-file=${tokens}`]);
  const asks = (pair?: KeyPair, token?: string): Promise<string> => whoIs(own, pair, token);
  const joe = await newCertificate({ commonName: "joe", usages: ["client"], ca: next });
  const ann = await newCertificate({ commonName: "ann", usages: ["client"], ca: first });
  assert.deepEqual([await asks(undefined, "token-1"), await asks(joe)], ["ann", "401"]);
  // The tokens first: once the new CA is loaded, they have been loaded, too.
  write("own-tokens.csv", "token-1,ann,1\ntoken-2,eve,2\n");
  write("own-clients.crt", `${first.certPem}${next.certPem}`);
  await waitFor(async () => (await asks(joe)) === "joe", { what: "the new authority" });
  assert.equal(await asks(ann), "ann", "and the one before it");
  assert.deepEqual([await asks(undefined, "token-1"), await asks(undefined, "token-2")], ["ann", "401"]);
});

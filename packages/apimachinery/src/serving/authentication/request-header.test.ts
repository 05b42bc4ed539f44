import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { newCa, newCertificate } from "../certificates.ts";
import type { Exchange } from "../exchange.ts";
import { type FrontProxy, requestHeader } from "./request-header.ts";
import type { CertificatePool } from "./x509.ts";

const proxy: FrontProxy = {
  pool: {} as CertificatePool, // cast: not reached without a client certificate
  allowedNames: [],
  usernameHeaders: ["X-Remote-User"],
  groupHeaders: ["X-Remote-Group"],
  extraHeaderPrefixes: ["X-Remote-Extra-"],
};

const asking = (headers: Record<string, string>): Exchange =>
  ({ headers, rawHeaders: [], tls: undefined }) as unknown as Exchange; // cast: all that is read

test("a front proxy's headers are removed from a request that they do not authenticate, and no others", async () => {
  const exchange = asking({
    "x-remote-user": "root",
    "x-remote-group": "system:masters",
    "x-remote-extra-a": "b",
    accept: "*/*",
  });
  assert.equal(await requestHeader(() => proxy, newFakeClock())(exchange), undefined);
  assert.deepEqual(exchange.headers, { accept: "*/*" });
});

test("a front proxy's headers are removed from a request whose client certificate is refused", async () => {
  const exchange = asking({ "x-remote-user": "root" });
  Object.defineProperty(exchange, "tls", {
    get() {
      throw new Error("refused");
    },
  });
  await assert.rejects(async () => requestHeader(() => proxy, newFakeClock())(exchange), /refused/);
  assert.deepEqual(exchange.headers, {});
});

test("without a trusted front proxy its headers say nothing", async () => {
  assert.equal(await requestHeader(() => undefined, newFakeClock())(asking({ "x-remote-user": "root" })), undefined);
});

/** A request over the connection of a proxy with this CommonName, whose authority is trusted. */
async function through(commonName: string, headers: Record<string, string>, more: Partial<FrontProxy> = {}) {
  const { certPem } = await newCertificate({ commonName, usages: ["client"], ca: await newCa({ commonName: "proxies" }) });
  const leaf = new X509Certificate(certPem);
  const exchange = asking(headers);
  Object.defineProperty(exchange, "tls", { value: { getPeerX509Certificate: () => leaf } });
  const verified: [X509Certificate, number][] = [];
  const pool: Partial<CertificatePool> = {
    verifyClient(...of) {
      verified.push(of);
      return 0;
    },
  };
  const clock = newFakeClock();
  // Cast: no other part of the pool is read.
  const result = await requestHeader(() => ({ ...proxy, pool: pool as CertificatePool, ...more }), clock)(exchange);
  assert.deepEqual(verified, [[leaf, clock.now()]], "its certificate is verified, now");
  return { user: result?.user, left: exchange.headers };
}

test("a front proxy's user is in all groups of its headers, with its extras by decoded key", async () => {
  const headers = {
    "x-remote-user": "jane",
    "x-remote-group": "dev",
    "x-team": "qa",
    "x-remote-extra-scopes": "a",
    "x-remote-extra-s%63opes": "b",
    "x-other-acme.com%2Fid": "7",
    accept: "*/*",
  };
  const more = { groupHeaders: ["X-Remote-Group", "X-Absent", "X-Team"], extraHeaderPrefixes: ["X-Remote-Extra-", "X-Other-"] };
  const { user, left } = await through("proxy", headers, more);
  assert.deepEqual(user, { name: "jane", groups: ["dev", "qa"], extra: { scopes: ["a", "b"], "acme.com/id": ["7"] } });
  assert.deepEqual(left, { accept: "*/*" });
});

test("the first header that is not empty names the user, and an empty group is none", async () => {
  const headers = { "x-first": "", "x-second": "jane", "x-third": "joe", "x-remote-group": "" };
  const { user } = await through("proxy", headers, { usernameHeaders: ["X-First", "X-Second", "X-Third"] });
  assert.deepEqual(user, { name: "jane", groups: [] });
});

for (const { allowedNames, isAllowed } of [
  { allowedNames: [], isAllowed: true },
  { allowedNames: ["first", "proxy"], isAllowed: true },
  { allowedNames: ["first"], isAllowed: false },
]) {
  test(`a proxy may ${isAllowed ? "" : "not "}name users where [${allowedNames}] may`, async () => {
    const asked = through("proxy", { "x-remote-user": "jane" }, { allowedNames });
    if (isAllowed) assert.equal((await asked).user?.name, "jane");
    else await assert.rejects(asked, { message: "x509: subject with cn=proxy is not in the allowed list" });
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
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

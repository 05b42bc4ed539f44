import assert from "node:assert/strict";
import { request } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { dialErrorText } from "./dial-error.ts";

const failureOf = (emitter: { once(event: "error", take: (err: Error) => void): unknown }): Promise<Error> =>
  new Promise((resolve) => emitter.once("error", resolve));

test("a refused connection reads as Go's", async () => {
  assert.equal(
    dialErrorText(await failureOf(connect({ host: "127.0.0.1", port: 1 }))),
    "dial tcp 127.0.0.1:1: connect: connection refused",
  );
  assert.equal(
    dialErrorText(await failureOf(request("http://127.0.0.1:1/"))),
    "dial tcp 127.0.0.1:1: connect: connection refused",
  );
});

for (const { parts, want } of [
  { parts: { code: "ECONNREFUSED", address: "fd00::1", port: 443 }, want: "dial tcp [fd00::1]:443: connect: connection refused" },
  { parts: { code: "EHOSTUNREACH", address: "10.0.0.7", port: 80 }, want: "dial tcp 10.0.0.7:80: connect: no route to host" },
  {
    parts: { code: "ENETUNREACH", address: "10.0.0.7", port: 80 },
    want: "dial tcp 10.0.0.7:80: connect: network is unreachable",
  },
  { parts: { code: "ETIMEDOUT", address: "10.0.0.7", port: 80 }, want: "dial tcp 10.0.0.7:80: connect: connection timed out" },
  ...(
    [
      ["ENOENT", "no such file or directory"],
      ["ECONNREFUSED", "connection refused"],
      ["EACCES", "permission denied"],
    ] as const
  ).map(([code, why]) => ({
    parts: { code, syscall: "connect", address: "/run/x.sock" },
    want: `dial unix /run/x.sock: connect: ${why}`,
  })),
  { parts: { code: "CERT_NOT_YET_VALID" }, want: "x509: certificate has expired or is not yet valid" },
  { parts: { code: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" }, want: "x509: certificate signed by unknown authority" },
  { parts: { code: "ENOTFOUND", hostname: "web.example" }, want: "dial tcp: lookup web.example: no such host" },
  { parts: { code: "CERT_HAS_EXPIRED" }, want: "x509: certificate has expired or is not yet valid" },
  {
    parts: { code: "CERT_HAS_EXPIRED", message: "x509: certificate has expired or is not yet valid: current time 2 is after 1" },
    want: "x509: certificate has expired or is not yet valid: current time 2 is after 1",
  },
  { parts: { code: "ENOENT", syscall: "open", message: "ENOENT: no file /ca.crt" }, want: "ENOENT: no file /ca.crt" },
  { parts: { code: "ECONNRESET", message: "socket hang up" }, want: "EOF" },
  { parts: { message: "something else" }, want: "something else" },
]) {
  test(`${parts.code ?? "no code"}: ${want}`, () => assert.equal(dialErrorText(Object.assign(new Error("x"), parts)), want));
}

test("of several addresses the first one's failure is reported", () => {
  const refused = Object.assign(new Error("x"), { code: "ECONNREFUSED", address: "::1", port: 1 });
  assert.equal(dialErrorText(new AggregateError([refused])), "dial tcp [::1]:1: connect: connection refused");
});

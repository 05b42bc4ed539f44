import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newCsrCleaner, reasonToDelete } from "./controller.ts";

const now = Math.floor(Date.now() / 1000) * 1000; // certificates are issued with the real clock
const minutesAgo = (minutes: number): string => formatTime(now - minutes * 60_000);
const day = 24 * 60;
const expiredCertificate = Buffer.from((await newCa({ commonName: "x", validDays: -1 })).certPem).toString("base64");
const goodCertificate = Buffer.from((await newCa({ commonName: "x" })).certPem).toString("base64");

function aRequest(age: number, decided?: [string, number], certificate?: string): CertificateSigningRequest {
  const conditions = decided && [{ type: decided[0], status: "True" as const, lastUpdateTime: minutesAgo(decided[1]) }];
  return {
    metadata: { name: "csr-1", creationTimestamp: minutesAgo(age) },
    spec: { request: "", signerName: "example.com/x" },
    status: { ...(conditions && { conditions }), ...(certificate && { certificate }) },
  };
}

for (const { name, csr, want } of [
  { name: "an issued one stays for an hour", csr: aRequest(3 * day, ["Approved", 60], goodCertificate), want: undefined },
  { name: "an issued one is deleted after an hour", csr: aRequest(3 * day, ["Approved", 61], goodCertificate), want: /issued/ },
  { name: "an approved one without certificate stays", csr: aRequest(3 * day, ["Approved", 2 * day]), want: undefined },
  { name: "a denied one is deleted after an hour", csr: aRequest(day, ["Denied", 61]), want: /denied/ },
  { name: "a failed one is deleted after an hour", csr: aRequest(day, ["Failed", 61]), want: /failed/ },
  { name: "a pending one stays for a day", csr: aRequest(day), want: undefined },
  { name: "a pending one is deleted after a day", csr: aRequest(day + 1), want: /it was not handled/ },
  { name: "a denied one stays for an hour", csr: aRequest(day, ["Denied", 60]), want: undefined },
  { name: "a failed one stays for an hour", csr: aRequest(day, ["Failed", 60]), want: undefined },
  { name: "a valid one stays", csr: aRequest(10, ["Approved", 5], goodCertificate), want: undefined },
  { name: "an expired one that nobody approved stays", csr: aRequest(10, undefined, expiredCertificate), want: undefined },
  {
    name: "one without a time of creation stays",
    csr: { ...aRequest(3 * day), metadata: { name: "csr-1" } },
    want: undefined,
  },
  { name: "an expired one is deleted", csr: aRequest(10, ["Approved", 5], expiredCertificate), want: /expired/ },
  { name: "a malformed certificate does not expire", csr: aRequest(10, ["Approved", 5], "AAAA"), want: undefined },
]) {
  test(name, () => {
    const why = reasonToDelete(csr, now);
    if (want === undefined) assert.equal(why, undefined);
    else assert.match(why ?? "", want);
  });
}

test("looks at them every hour", async (t) => {
  const { client, ctx, clock, run } = newTestContext(t);
  const created = formatTime(clock.now() - 24 * 3_600_000 + 60_000);
  client.put(certificateSigningRequests, { ...aRequest(0), metadata: { name: "old", creationTimestamp: created } });
  await run(newCsrCleaner(ctx));
  assert.deepEqual(client.writes, []);
  await clock.advance(3_600_000);
  await settle(20);
  assert.deepEqual(
    client.writes.map(({ verb, name }) => [verb, name]),
    [["delete", "old"]],
  );
});

test("one that cannot be deleted keeps no other", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  for (const name of ["a", "b", "c"])
    client.put(certificateSigningRequests, { ...aRequest(0), metadata: { name, creationTimestamp: "2000-01-01T00:00:00Z" } });
  client.react("delete", "certificatesigningrequests", ({ name }) => {
    if (name === "a") throw new Error("the server is away");
    return undefined;
  });
  await run(newCsrCleaner(ctx));
  await settle(20);
  assert.deepEqual(
    client.objects(certificateSigningRequests).map(({ metadata }) => metadata.name),
    ["a"],
  );
});

test("one that is gone already is no failure", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(certificateSigningRequests, { ...aRequest(0), metadata: { name: "a", creationTimestamp: "2000-01-01T00:00:00Z" } });
  client.react("delete", "certificatesigningrequests", ({ name }) => {
    throw notFound(certificateSigningRequests, name);
  });
  const errors: string[] = [];
  await run(newCsrCleaner({ ...ctx, log: { ...discardLogger, error: (message) => void errors.push(message) } }));
  await settle(20);
  assert.deepEqual([client.writes.length, errors], [1, []]);
});

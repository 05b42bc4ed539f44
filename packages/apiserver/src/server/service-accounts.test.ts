import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { ApiserverConfig } from "../config.ts";
import type { RegistryServices } from "../registry/generic/resource.ts";
import { issuerDocumentsOf, serviceAccountKeys, storeGetter, tokenIssuer } from "./service-accounts.ts";

function keyFiles(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "cox-accounts-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return (name: string): { private: string; public: string } => {
    const { keyPem, pubPem } = newServiceAccountKey();
    const paths = { private: join(directory, `${name}.key`), public: join(directory, `${name}.pub`) };
    writeFileSync(paths.private, keyPem, { mode: 0o600 });
    writeFileSync(paths.public, pubPem);
    return paths;
  };
}

const flags = {
  ...{ "service-account-key-file": [], "tls-private-key-file": "", "service-account-issuer": ["https://a", "https://b"] },
  ...{ "service-account-signing-key-file": "", "service-account-max-token-expiration": 0, "external-hostname": "" },
  ...{ "service-account-extend-token-expiration": true, "service-account-jwks-uri": "", "secure-port": 6443 },
};
const configOf = (given: object, advertiseAddress = "192.0.2.1"): ApiserverConfig =>
  ({ flags: { ...flags, ...given }, apiAudiences: ["api"], advertiseAddress }) as unknown as ApiserverConfig;

test("tokens are verified by the keys of all files, and only without any by the key of the TLS certificate", (t) => {
  const make = keyFiles(t);
  const [one, two, tls] = [make("one"), make("two"), make("tls")];
  const ids = (given: object): string[] => serviceAccountKeys(configOf(given)).map(({ id }) => id);
  const ofTls = ids({ "tls-private-key-file": tls.private });
  assert.equal(ofTls.length, 1);
  const named = ids({ "service-account-key-file": [one.public, two.public], "tls-private-key-file": tls.private });
  assert.deepEqual([named.length, named.includes(ofTls[0] ?? "")], [2, false]);
  assert.deepEqual(ids({}), []);
});

test("the first issuer signs, with the longest lifetime of the flag, and without a flag with none", (t) => {
  const { private: key } = keyFiles(t)("sa");
  const issuerOf = (given: object) => tokenIssuer(configOf({ "service-account-signing-key-file": key, ...given }));
  hasFields(issuerOf({}), { issuer: "https://a", defaultAudiences: ["api"], extendExpiration: true });
  assert.equal(issuerOf({})?.maxExpirationSeconds, undefined);
  assert.equal(issuerOf({ "service-account-max-token-expiration": 7_200_000 })?.maxExpirationSeconds, 7_200);
  assert.equal(issuerOf({ "service-account-issuer": [] }), undefined);
  assert.equal(issuerOf({ "service-account-signing-key-file": "" }), undefined);
});

for (const { name, given, address, want } of [
  { name: "its address", given: {}, want: "https://192.0.2.1:6443/openid/v1/jwks" },
  { name: "its IPv6 address", given: {}, address: "2001:db8::1", want: "https://[2001:db8::1]:6443/openid/v1/jwks" },
  {
    name: "its hostname",
    given: { "external-hostname": "api.example.com" },
    want: "https://api.example.com:6443/openid/v1/jwks",
  },
  {
    name: "another address",
    given: { "service-account-jwks-uri": "https://keys.example.com/", "external-hostname": "api.example.com" },
    want: "https://keys.example.com/",
  },
]) {
  test(`the discovery document names ${name} for the keys`, (t) => {
    const config = configOf({ "service-account-key-file": [keyFiles(t)("sa").public], ...given }, address);
    const documents = issuerDocumentsOf(config, serviceAccountKeys(config), discardLogger);
    assert.equal(JSON.parse(String(documents?.configuration)).jwks_uri, want);
  });
}

test("an issuer that cannot be discovered is no failure, but logged; without an issuer there are no documents", (t) => {
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const files = { "service-account-key-file": [keyFiles(t)("sa").public] };
  const documentsOf = (issuers: string[]) => {
    const config = configOf({ ...files, "service-account-issuer": issuers });
    return issuerDocumentsOf(config, serviceAccountKeys(config), log);
  };
  assert.equal(documentsOf([]), undefined);
  assert.equal(warnings.length, 0);
  assert.equal(documentsOf(["kubernetes/serviceaccount"]), undefined);
  assert.deepEqual(warnings, ["the discovery documents of service account tokens are not served"]);
});

test("an account is read from the cache, or as it is stored when that is requested; one that is missing is undefined", async () => {
  const reads: object[] = [];
  const failures: Record<string, Error> = {
    missing: notFound({ group: "", resource: "secrets" }, "missing"),
    broken: new Error("etcd is away"),
  };
  const store = {
    async get(namespace: string, name: string, read: object) {
      reads.push([namespace, name, read]);
      if (failures[name] !== undefined) throw failures[name];
      return { object: () => ({ metadata: { name } }) };
    },
  };
  const getter = storeGetter((() => store) as unknown as RegistryServices["store"]);
  assert.deepEqual(await getter.get("secrets", "web", "a", false), { metadata: { name: "a" } });
  await getter.get("secrets", "web", "a", true);
  assert.deepEqual(reads, [
    ["web", "a", { minimumRevision: 0 }],
    ["web", "a", {}],
  ]);
  assert.equal(await getter.get("secrets", "web", "missing", true), undefined);
  await assert.rejects(getter.get("secrets", "web", "broken", true), /etcd is away/);
});

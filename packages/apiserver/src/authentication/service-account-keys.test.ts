import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import type { ApiserverConfig } from "../config.ts";
import { serviceAccountKeys } from "../server/service-accounts.ts";
import { parseKeys, readSigningKey, readVerificationKeys } from "./service-account-keys.ts";
import { issuerDocuments, newTokenIssuer } from "./token-issuer.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-keys-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const file = (text: string): string => {
  const path = join(folder, String(files++));
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve });
const p256 = ec("P-256");
const pem = (key: KeyObject, type: "spki" | "pkcs1" | "pkcs8" | "sec1"): string =>
  String(key.export({ type, format: "pem" } as never));

for (const { name, text, algorithms } of [
  { name: "an RSA public key", text: pem(rsa.publicKey, "spki"), algorithms: ["RS256"] },
  { name: "an RSA public key of old", text: pem(rsa.publicKey, "pkcs1"), algorithms: ["RS256"] },
  { name: "an RSA private key", text: pem(rsa.privateKey, "pkcs8"), algorithms: ["RS256"] },
  { name: "an RSA private key of old", text: pem(rsa.privateKey, "pkcs1"), algorithms: ["RS256"] },
  { name: "an ECDSA public key", text: pem(p256.publicKey, "spki"), algorithms: ["ES256"] },
  { name: "an ECDSA private key of old", text: pem(p256.privateKey, "sec1"), algorithms: ["ES256"] },
  { name: "a key on the curve P-384", text: pem(ec("P-384").publicKey, "spki"), algorithms: ["ES384"] },
  { name: "a key on the curve P-521", text: pem(ec("P-521").publicKey, "spki"), algorithms: ["ES512"] },
  { name: "a certificate", text: (await newCa({ commonName: "issuer" })).certPem, algorithms: ["ES256"] },
  {
    name: "several keys, and what is none",
    text: `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${pem(p256.privateKey, "sec1")}# and\n${pem(rsa.publicKey, "spki")}`,
    algorithms: ["ES256", "RS256"],
  },
  { name: "nothing", text: "no key", algorithms: [] },
]) {
  test(`a file of service account keys may hold ${name}`, () => {
    const keys = parseKeys(text);
    assert.deepEqual(
      keys.map(({ algorithm }) => algorithm),
      algorithms,
    );
    assert.ok(keys.every(({ key }) => key.type === "public"));
  });
}

test("a key has one name, whichever of its halves is in the file", () => {
  for (const { publicKey, privateKey } of [rsa, p256]) {
    const ids = [pem(publicKey, "spki"), pem(privateKey, "pkcs8")].map((text) => parseKeys(text)[0]?.id);
    assert.equal(ids[0], ids[1]);
    assert.equal(readSigningKey(file(pem(privateKey, "pkcs8"))).id, ids[0]);
  }
});

test("--service-account-key-file may be repeated; without it the key of the serving certificate verifies", () => {
  const [one, two, tls] = [pem(rsa.publicKey, "spki"), pem(p256.publicKey, "spki"), pem(p256.privateKey, "sec1")].map(file);
  const keys = (keyFiles: unknown[], tlsKey: unknown): string[] => {
    const flags = { "service-account-key-file": keyFiles, "tls-private-key-file": tlsKey };
    return serviceAccountKeys({ flags } as unknown as ApiserverConfig).map(({ algorithm }) => algorithm);
  };
  assert.deepEqual(keys([one, two], tls), ["RS256", "ES256"]);
  assert.deepEqual(keys([], tls), ["ES256"]);
  assert.deepEqual(keys([], ""), []);
  const empty = file("nothing");
  assert.throws(() => keys([empty], tls), {
    message: `failed to parse service account issuer key file ${empty}: data does not contain any valid RSA or ECDSA public keys`,
  });
});

test("relying parties are told the algorithms of all keys, each once", () => {
  const keys = [rsa.publicKey, p256.publicKey, rsa.publicKey].flatMap((key) => parseKeys(pem(key, "spki")));
  const { configuration, keySet } = issuerDocuments({ issuer: "https://a.example", jwksUri: "https://a.example/jwks", keys });
  assert.deepEqual(JSON.parse(configuration).id_token_signing_alg_values_supported, ["RS256", "ES256"]);
  assert.deepEqual(
    JSON.parse(keySet).keys.map(({ kid }: { kid: string }) => kid),
    keys.map(({ id }) => id),
  );
});

test("all keys of all files verify, in their order; a file without any is refused by its name", () => {
  const both = file(pem(p256.publicKey, "spki") + pem(rsa.publicKey, "spki"));
  const third = file(pem(ec("P-384").publicKey, "spki"));
  const algorithms = (...paths: string[]) => readVerificationKeys(paths).map(({ algorithm }) => algorithm);
  assert.deepEqual(algorithms(both, third), ["ES256", "RS256", "ES384"]);
  const empty = file("");
  assert.throws(() => algorithms(both, empty), { message: new RegExp(`${empty}: data does not contain any valid`) });
});

for (const issuer of ["http://a.example", "https://a.example?b", "https://a.example#b"]) {
  test(`there are no documents of the issuer ${issuer}`, () => {
    assert.throws(() => issuerDocuments({ issuer, jwksUri: "https://a.example/jwks", keys: [] }), {
      message: `issuer URL ${JSON.stringify(issuer)} must use https scheme and have neither query nor fragment`,
    });
  });
}

test("a token names its key, and its issuer whatever the claims say", async () => {
  const signingKey = readSigningKey(file(pem(p256.privateKey, "pkcs8")));
  const { sign } = newTokenIssuer({
    ...{ issuer: "https://a.example", defaultAudiences: [], signingKey },
    ...{ maxExpirationSeconds: undefined, extendExpiration: false },
  });
  const token = await sign({ sub: "robot", iss: "https://b.example" });
  const parts = token.split(".").slice(0, 2);
  const [header, claims] = parts.map((part): unknown => JSON.parse(String(Buffer.from(part, "base64url"))));
  assert.deepEqual(header, { alg: "ES256", kid: signingKey.id });
  assert.deepEqual(claims, { sub: "robot", iss: "https://a.example" });
});

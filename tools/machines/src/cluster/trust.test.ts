import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { authorityHash } from "./authority-hash.ts";
import { checkAuthority, discoveredIn, isSignedWith } from "./discovery.ts";
import {
  newCertificateKey,
  open,
  openedFiles,
  parseCertificateKey,
  seal,
  sealedData,
  sharedFiles,
} from "./sealed-certificates.ts";
import { newToken, newTokenText, parseToken, secretOf, tokenId, tokenOf, tokenRows } from "./tokens.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64url");

/** A JWS with detached content, as upstream's bootstrap signer writes it. */
function signed(content: string, secret: string, header = '{"alg":"HS256","kid":"abcdef"}'): string {
  const mark = createHmac("sha256", secret)
    .update(`${base64(header)}.${base64(content)}`)
    .digest("base64url");
  return `${base64(header)}..${mark}`;
}

test("cluster-info is trusted when its signature is made with the token's secret, by HS256, over this content", () => {
  const signature = signed("info", "secret");
  assert.equal(isSignedWith("info", signature, "secret"), true);
  assert.equal(isSignedWith("inf0", signature, "secret"), false);
  assert.equal(isSignedWith("info", signature, "Secret"), false);
  assert.equal(isSignedWith("info", signature.slice(0, -3), "secret"), false);
  assert.equal(isSignedWith("info", signed("info", "secret", '{"alg":"none"}'), "secret"), false);
  for (const odd of ["", ".", "..", "a.b.c", `${base64("[")}..${base64("x")}`])
    assert.equal(isSignedWith("info", odd, "secret"), false);
});

test("an authority is pinned by the hash of its key; one match among several hashes and certificates is enough", async () => {
  const [one, two] = await Promise.all([newCa({ commonName: "one" }), newCa({ commonName: "two" })]);
  const [first, second] = [authorityHash(one.certPem), authorityHash(two.certPem)];
  checkAuthority(one.certPem, [second, first.toUpperCase().replace("SHA", "sha")]);
  checkAuthority(`${two.certPem}${one.certPem}`, [first]);
  checkAuthority(one.certPem, []); // the caller has another proof
  assert.throws(() => checkAuthority(one.certPem, [second]), { exitCode: 1, message: new RegExp(first) });
  assert.throws(() => checkAuthority(one.certPem, ["md5:00"]), { exitCode: 2 });
});

test("a discovery file may have a context or only a cluster", () => {
  const cluster = { server: "https://a:1", "certificate-authority-data": Buffer.from("PEM").toString("base64") };
  const bare = { clusters: [{ name: "", cluster }] };
  assert.deepEqual(discoveredIn(JSON.stringify(bare), "f"), { server: "https://a:1", caPem: "PEM" });
  assert.throws(() => discoveredIn("{}", "f"), { exitCode: 2, message: /^f: / });
});

test("encrypted certificates decrypt only with their key and unchanged", () => {
  const key = parseCertificateKey(newCertificateKey());
  const sealed = seal(Buffer.from("plain"), key);
  assert.equal(open(sealed, key).toString(), "plain");
  assert.throws(() => open(sealed, randomBytes(32)), /does not decrypt/);
  sealed[14] = (sealed[14] as number) ^ 1;
  assert.throws(() => open(sealed, key), /does not decrypt/);
  assert.throws(() => open(Buffer.from("x"), key), /does not decrypt/);
  const files = new Map(sharedFiles.map((file) => [file as string, Buffer.from(file)]));
  const data = sealedData(files, key);
  assert.deepEqual(openedFiles(data, key), files);
  assert.throws(() => openedFiles({ ...data, "etcd-ca.key": "" }, key), /lacks etcd\/ca\.key/);
  assert.throws(() => parseCertificateKey("00"), { exitCode: 2, message: /64 hexadecimal digits/ });
});

test("a token is written to a Secret and read from it", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const token = newToken({ token: "abcdef.0123456789abcdef", ttlMs: 3_600_000, description: "d", now });
  assert.deepEqual(tokenOf(secretOf(token) as never), token);
  const lasting = newToken({ token: newTokenText(), ttlMs: 0, usages: ["signing"], groups: [], now });
  assert.deepEqual(tokenOf(secretOf(lasting) as never), lasting);
  const keysOf = (secret: object): string[] => Object.keys((secret as { data: object }).data); // cast: a Secret
  assert.deepEqual(
    keysOf(secretOf(lasting)),
    ["token-id", "token-secret", "usage-bootstrap-signing"],
    "what it lacks is not written",
  );
  const other = secretOf(token);
  assert.equal(tokenOf({ ...other, metadata: { ...other.metadata, name: "bootstrap-token-x" } }), undefined);
  assert.deepEqual(
    tokenRows([token, lasting], now + 3_600_000).map((row) => row[1]),
    ["TTL", "<expired>", "<forever>"],
  );
});

test("a wrong token is refused without being repeated", () => {
  assert.throws(
    () => parseToken("abcdef.0123456789abcdeF"),
    (err: Error) => err.message.includes("abcdef.0123456789abcdef") && !err.message.includes("cdeF"),
  );
  assert.equal(tokenId("abcdef"), "abcdef");
  assert.equal(tokenId("abcdef.0123456789abcdef"), "abcdef");
  assert.throws(() => newToken({ token: "abcdef.0123456789abcdef", ttlMs: 0, usages: ["all"], now: 0 }), /not all/);
  assert.throws(
    () => newToken({ token: "abcdef.0123456789abcdef", ttlMs: 0, groups: ["system:masters"], now: 0 }),
    /not system:masters/,
  );
  const longest = `system:bootstrappers:${"a".repeat(256)}`;
  assert.deepEqual(newToken({ token: "abcdef.0123456789abcdef", ttlMs: 0, groups: [longest], now: 0 }).groups, [longest]);
  assert.throws(() => newToken({ token: "abcdef.0123456789abcdef", ttlMs: 0, groups: [`${longest}a`], now: 0 }), /not system:/);
});

const text64 = (value: string): string => Buffer.from(value).toString("base64");

test("a token's Secret is that of kubeadm", () => {
  const token = newToken({ token: "abcdef.0123456789abcdef", ttlMs: 1_000, description: "d", now: Date.UTC(2026, 0, 1) });
  assert.deepEqual(secretOf(token), {
    apiVersion: "v1",
    kind: "Secret",
    type: "bootstrap.kubernetes.io/token",
    metadata: { namespace: "kube-system", name: "bootstrap-token-abcdef" },
    data: {
      "token-id": text64("abcdef"),
      "token-secret": text64("0123456789abcdef"),
      description: text64("d"),
      expiration: text64("2026-01-01T00:00:01Z"),
      "usage-bootstrap-signing": text64("true"),
      "usage-bootstrap-authentication": text64("true"),
      "auth-extra-groups": text64("system:bootstrappers:kubeadm:default-node-token"),
    },
  });
});

test("what is no token's Secret is none, and a time that is none has passed", () => {
  const secret = secretOf(newToken({ token: "abcdef.0123456789abcdef", ttlMs: 0, now: 0 })) as unknown as {
    data: Record<string, string>;
  };
  const tokenIn = (more: object) => tokenOf({ ...secret, ...more } as never);
  assert.equal(tokenIn({ type: "Opaque" }), undefined);
  assert.equal(tokenIn({ data: {} }), undefined);
  const read = (data: object) => tokenIn({ data: { ...secret.data, ...data } });
  assert.equal(read({ expiration: text64("soon") })?.expiresMs, 0);
  assert.deepEqual(read({ "usage-bootstrap-signing": text64("false") })?.usages, ["authentication"]);
  assert.deepEqual(read({ "auth-extra-groups": text64("a,,b") })?.groups, ["a", "b"]);
});

test("wrong usages and groups are named, all of them", () => {
  const options = { token: "abcdef.0123456789abcdef", ttlMs: 0, now: 0 };
  for (const [more, message] of [
    [{ usages: ["signing", "a", "b"] }, /not a, b$/],
    [
      { groups: ["system:bootstrappers:ok", "x", "system:bootstrappers:", "system:bootstrappers:A", "system:bootstrappers:a-"] },
      /^groups of a token begin with system:bootstrappers:, not x, system:bootstrappers:, system:bootstrappers:A, system:bootstrappers:a-$/,
    ],
  ] as const)
    assert.throws(() => newToken({ ...options, ...more }), { message, exitCode: 2 });
});

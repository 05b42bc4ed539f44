/**
 * Keys that sign and verify service-account tokens, and their key IDs.
 * Source: pkg/serviceaccount/jwt.go, openidmetadata.go; k8s.io/client-go util/keyutil
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";

export interface VerificationKey {
  readonly key: KeyObject;
  readonly id: string;
  readonly algorithm: string;
}

/** Reads public or private keys; a file may contain several. @throws Error when a file contains none. */
export function readVerificationKeys(paths: readonly string[]): VerificationKey[] {
  return paths.flatMap((path) => {
    const keys = parseKeys(readFileSync(path, "utf8"));
    if (keys.length === 0)
      throw new Error(
        `failed to parse service account issuer key file ${path}: data does not contain any valid RSA or ECDSA public keys`,
      );
    return keys;
  });
}

/** Public keys of all key blocks in a PEM text, including those of private keys; empty when there are none. */
export function parseKeys(pem: string): VerificationKey[] {
  const blocks = pem.match(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g) ?? [];
  const keys: VerificationKey[] = [];
  for (const block of blocks) {
    try {
      const key = createPublicKey(block);
      keys.push({ key, id: keyId(key), algorithm: algorithmOf(key) });
    } catch {
      // Skip other PEM blocks, such as EC PARAMETERS; the caller rejects a file without any key.
    }
  }
  return keys;
}

/** @throws Error when the file is unreadable or not a private key. */
export function readSigningKey(path: string): VerificationKey {
  const key = createPrivateKey(readFileSync(path));
  const publicKey = createPublicKey(key);
  return { key, id: keyId(publicKey), algorithm: algorithmOf(publicKey) };
}

/** Key ID: base64url of SHA-256 over the public key in PKIX DER. */
function keyId(publicKey: KeyObject): string {
  return createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");
}

function algorithmOf(key: KeyObject): string {
  if (key.asymmetricKeyType === "rsa") return "RS256";
  if (key.asymmetricKeyType === "ec") {
    switch (key.asymmetricKeyDetails?.namedCurve) {
      case "prime256v1":
        return "ES256";
      case "secp384r1":
        return "ES384";
      case "secp521r1":
        return "ES512";
    }
  }
  throw new Error("unknown key type, must be RSA or ECDSA on P-256, P-384 or P-521");
}

/** JSON Web Key Set for relying parties. */
export function keySet(keys: readonly VerificationKey[]): { keys: Record<string, unknown>[] } {
  return {
    keys: keys.map(({ key, id, algorithm }) => {
      // Cast: Node writes texts for public keys.
      const { kty, n, e, crv, x, y } = createPublicKeyOf(key).export({ format: "jwk" }) as Record<string, string>;
      const material = kty === "RSA" ? { n, e } : { crv, x, y };
      return { use: "sig", kty, kid: id, alg: algorithm, ...material };
    }),
  };
}

function createPublicKeyOf(key: KeyObject): KeyObject {
  return key.type === "private" ? createPublicKey(key) : key;
}

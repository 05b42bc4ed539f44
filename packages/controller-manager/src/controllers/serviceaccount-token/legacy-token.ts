import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

/** Signs tokens that are valid as long as their Secret exists. */
export interface LegacyTokenSigner {
  /** @returns a JWT; the API server checks its Secret, account and namespace on each use */
  sign(claims: { namespace: string; secretName: string; accountName: string; accountUid: string }): string;
}

/**
 * @param pem private key, RSA or ECDSA (P-256, P-384, P-521)
 * @throws Error for other keys
 * Source: pkg/serviceaccount/legacy.go, jwt.go
 */
export function newLegacyTokenSigner(pem: string): LegacyTokenSigner {
  const key = createPrivateKey(pem);
  const { name, hash } = algorithmOf(key);
  const header = { alg: name, kid: keyId(key) };
  return {
    sign({ namespace, secretName, accountName, accountUid }) {
      const claims = {
        iss: "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secretName,
        "kubernetes.io/serviceaccount/service-account.name": accountName,
        "kubernetes.io/serviceaccount/service-account.uid": accountUid,
        sub: `system:serviceaccount:${namespace}:${accountName}`,
      };
      const signed = `${base64(header)}.${base64(claims)}`;
      return `${signed}.${sign(hash, Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
    },
  };
}

function algorithmOf(key: KeyObject): { name: string; hash: string } {
  if (key.asymmetricKeyType === "rsa") return { name: "RS256", hash: "sha256" };
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (curve === "prime256v1") return { name: "ES256", hash: "sha256" };
  if (curve === "secp384r1") return { name: "ES384", hash: "sha384" };
  if (curve === "secp521r1") return { name: "ES512", hash: "sha512" };
  throw new Error(`unknown private key type ${key.asymmetricKeyType}, must be an RSA or ECDSA key`);
}

/** Key ID by which a verifier with several keys selects the right one. Source: jwt.go keyIDFromPublicKey */
function keyId(key: KeyObject): string {
  const der = createPublicKey(key).export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("base64url");
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

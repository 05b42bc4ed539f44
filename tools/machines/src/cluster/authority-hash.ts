import { createHash, X509Certificate } from "node:crypto";

/** `sha256:…` of a certificate's public key, as in `--discovery-token-ca-cert-hash`. */
export function authorityHash(pem: string): string {
  const key = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { KeyPair } from "@coxswain/apimachinery/serving/certificates";
import type { SigningFiles } from "../../config/certificate-signing.ts";

/** A CA certificate and its private key, both PEM. */
export interface SigningPair extends KeyPair {
  readonly notAfter: Date;
}

/**
 * Returns a function that reads the pair on every call, so that replaced files take effect. While the files cannot be
 * read or do not match (during replacement), the last valid pair is used.
 * Source: pkg/controller/certificates/signer/ca_provider.go
 */
export function newSigningPairReader(files: SigningFiles, log: Logger): () => Promise<SigningPair> {
  let last: { text: string; pair: SigningPair } | undefined;
  return async () => {
    try {
      const [certPem, keyPem] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
      const text = certPem + keyPem;
      if (last?.text !== text) last = { text, pair: signingPair(certPem, keyPem, files.cert) };
    } catch (err) {
      if (last === undefined) throw err;
      log.error("cannot reload the signing key pair; using the previous one", err, { file: files.cert });
    }
    return last.pair;
  };
}

/** @throws Error unless the files contain one certificate and its private key */
function signingPair(certPem: string, keyPem: string, file: string): SigningPair {
  const count = certPem.split("-----BEGIN CERTIFICATE-----").length - 1;
  if (count !== 1) throw new Error(`error reading CA cert file "${file}": expected 1 certificate, found ${count}`);
  const certificate = new X509Certificate(certPem);
  if (!certificate.checkPrivateKey(createPrivateKey(keyPem)))
    throw new Error(`error reading CA cert file "${file}": private key does not match public key`);
  return { certPem, keyPem, notAfter: new Date(certificate.validTo) };
}

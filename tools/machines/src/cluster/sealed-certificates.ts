/**
 * The CAs and keys that all control plane machines share, encrypted in a Secret (AES-256-GCM with the certificate key). Source:
 * kubeadm's phase upload-certs
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Failure, UsageFailure } from "../failure.ts";

/** Files below the certificate folder; in the Secret's keys a dash replaces the slash. */
export const sharedFiles = [
  "ca.crt",
  "ca.key",
  "sa.key",
  "sa.pub",
  "front-proxy-ca.crt",
  "front-proxy-ca.key",
  "etcd/ca.crt",
  "etcd/ca.key",
] as const;
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

export const newCertificateKey = (): string => randomBytes(keyBytes).toString("hex");

/** @throws UsageFailure; the message does not repeat the key */
export function parseCertificateKey(hex: string): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(hex)) throw new UsageFailure("the certificate key is not 64 hexadecimal digits");
  return Buffer.from(hex, "hex");
}

/** AES-256-GCM: nonce, ciphertext, tag. */
export function seal(plain: Buffer, key: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** @throws Failure for a wrong key, and for data that was modified */
export function open(sealed: Buffer, key: Buffer): Buffer {
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
    decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, sealed.length - tagBytes)), decipher.final()]);
  } catch {
    throw new Failure(
      "the certificate key does not decrypt the Secret kubeadm-certs; for a new key: coxswain init --upload-certs",
    );
  }
}

const dataKeyOf = (file: string): string => file.replaceAll("/", "-");

/** Data of the Secret. @param files contents by name */
export const sealedData = (files: ReadonlyMap<string, Buffer>, key: Buffer): Record<string, string> =>
  Object.fromEntries([...files].map(([file, content]) => [dataKeyOf(file), seal(content, key).toString("base64")]));

/** @returns contents by file @throws Failure */
export function openedFiles(data: Readonly<Record<string, string>>, key: Buffer): Map<string, Buffer> {
  const missing = sharedFiles.filter((file) => !Object.hasOwn(data, dataKeyOf(file)) || data[dataKeyOf(file)] === "");
  if (missing.length > 0)
    throw new Failure(
      `the Secret kubeadm-certs lacks ${missing.join(", ")}: the authority is an external one; copy the files instead`,
    );
  return new Map(sharedFiles.map((file) => [file, open(Buffer.from(data[dataKeyOf(file)]!, "base64"), key)]));
}

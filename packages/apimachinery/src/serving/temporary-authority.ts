import { generateKeyPairSync, hash, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import { ipToBigInt } from "../objects/meta/ip.ts";
import { bitString, element, objectIdentifier, sequence } from "./der.ts";

interface ServingPairOptions {
  /** Common name of the authority. */
  readonly authority: string;
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
  /** Validity of both certificates, which begins five minutes ago: clocks differ. */
  readonly validDays: number;
}

interface ServingPair {
  readonly caPem: string;
  readonly certPem: string;
  readonly keyPem: string;
}

/**
 * Creates a serving certificate and the authority that signed it, whose key is discarded. Written without the library of `certificates.ts`,
 * which takes 0.2 s of CPU and 8 MB of a daemon that only makes its own certificate.
 * @throws Error for alternative names that cannot be in a certificate
 * Source: RFC 5280
 */
export function pairOfTemporaryAuthority(options: ServingPairOptions): ServingPair {
  const alternatives = [...options.dnsNames.map(dnsName), ...options.ips.map(ipAddress)];
  const now = Date.now();
  const validity = sequence(time(now - 300_000), time(now + options.validDays * 86_400_000));
  const [ca, own] = [newKeys(), newKeys()];
  const issuer = nameOf(options.authority);
  const caKeyId = keyIdOf(ca.publicKey);
  const certificate = (subject: Buffer, key: KeyObject, extensions: readonly Buffer[]): string =>
    signed(ca.privateKey, [
      element(0xa0, integer(Buffer.of(2))), // version 3
      integer(newSerial()),
      ...[ecdsaWithSha256, issuer, validity, subject],
      key.export({ type: "spki", format: "der" }),
      element(0xa3, sequence(...extensions)),
    ]);
  return {
    caPem: certificate(issuer, ca.publicKey, [
      extension("2.5.29.19", sequence(isTrue), true), // basicConstraints
      extension("2.5.29.15", bitString(Buffer.of(0b1010_0110), 1), true), // keyUsage: those of an authority, too
      extension("2.5.29.14", element(0x04, caKeyId)), // subjectKeyIdentifier
    ]),
    certPem: certificate(nameOf(options.commonName), own.publicKey, [
      extension("2.5.29.15", bitString(Buffer.of(0b1010_0000), 5), true), // keyUsage: digitalSignature, keyEncipherment
      extension("2.5.29.37", sequence(objectIdentifier("1.3.6.1.5.5.7.3.1"))), // extKeyUsage: serverAuth
      extension("2.5.29.19", sequence(), true),
      extension("2.5.29.35", sequence(element(0x80, caKeyId))), // authorityKeyIdentifier
      ...(alternatives.length === 0 ? [] : [extension("2.5.29.17", sequence(...alternatives))]), // subjectAltName
    ]),
    keyPem: own.privateKey.export({ type: "sec1", format: "pem" }),
  };
}

const ecdsaWithSha256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
const isTrue = element(0x01, Buffer.of(0xff));

/** A certificate as PEM. */
function signed(key: KeyObject, fields: readonly Buffer[]): string {
  const body = sequence(...fields);
  const lines =
    sequence(body, ecdsaWithSha256, bitString(sign("sha256", body, key), 0))
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function newKeys(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

/** SHA-1 of the point, which ends the key's encoding. */
function keyIdOf(key: KeyObject): Buffer {
  return hash("sha1", key.export({ type: "spki", format: "der" }).subarray(-65), "buffer");
}

/** Positive, of 127 bits. */
function newSerial(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes;
}

const integer = (bytes: Buffer): Buffer => element(0x02, bytes);

/** A Name of one common name. */
function nameOf(commonName: string): Buffer {
  return sequence(element(0x31, sequence(objectIdentifier("2.5.4.3"), element(0x0c, Buffer.from(commonName)))));
}

/** UTCTime until 2049, GeneralizedTime later. Source: RFC 5280 4.1.2.5 */
function time(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().slice(0, 19).replaceAll(/\D/g, "")}Z`;
  return digits < "2050" ? element(0x17, Buffer.from(digits.slice(2))) : element(0x18, Buffer.from(digits));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(objectIdentifier(id), ...(isCritical ? [isTrue] : []), element(0x04, value));
}

/** @throws Error for characters beyond ASCII */
function dnsName(name: string): Buffer {
  if (/[^\0-\x7f]/.test(name)) throw new Error(`${JSON.stringify(name)} is no DNS name`);
  return element(0x82, Buffer.from(name));
}

/** @throws Error for a zone, too */
function ipAddress(ip: string): Buffer {
  if (isIP(ip) === 0 || ip.includes("%")) throw new Error(`${JSON.stringify(ip)} is no IP address`);
  return element(
    0x87,
    Buffer.from(
      ipToBigInt(ip)
        .toString(16)
        .padStart(isIPv4(ip) ? 8 : 32, "0"),
      "hex",
    ),
  );
}

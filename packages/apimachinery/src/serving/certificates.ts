import "reflect-metadata";
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";
import { goQuote } from "../objects/meta/go-quote.ts";
import { readElement } from "./der.ts";
import { nameToSign, subjectOfName } from "./distinguished-name.ts";

/**
 * Creates and signs certificates; the only module that uses @peculiar/x509. Keys are ECDSA P-256; service account keys are RSA
 * 2048.
 */
x509.cryptoProvider.set(webcrypto as never); // cast: the library declares the Crypto of browsers

export { subjectOf } from "./certificate-fields.ts";

export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

type CertificateUsage = "server" | "client";

const dayMs = 86_400_000;
const extendedUsages: Readonly<Record<CertificateUsage, string>> = {
  server: x509.ExtendedKeyUsage.serverAuth,
  client: x509.ExtendedKeyUsage.clientAuth,
};

interface CaOptions {
  readonly commonName: string;
  /** Default 3650. */
  readonly validDays?: number;
  /** Milliseconds since the epoch from which it is valid; default now. */
  readonly now?: number;
  /** An existing key instead of a new one, PEM. */
  readonly keyPem?: string | undefined;
  /** Issuer of an intermediate; undefined: a self-signed root. */
  readonly signedBy?: KeyPair;
  /** Path length constraint; default none. */
  readonly pathLength?: number;
}

/** Creates a CA certificate, self-signed unless `signedBy` is given. */
export async function newCa(options: CaOptions): Promise<KeyPair> {
  const keys = keysOf(options.keyPem);
  const name = subjectName(options.commonName, []);
  const { signedBy } = options;
  const signingKey = signedBy === undefined ? keys.privateKey : createPrivateKey(signedBy.keyPem);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: name,
    issuer: signedBy === undefined ? name : new x509.X509Certificate(signedBy.certPem).subjectName,
    ...validity((options.validDays ?? 3650) * dayMs, options.now),
    publicKey: await toPublic(keys.publicKey),
    signingKey: await toSigning(signingKey),
    signingAlgorithm: signingAlgorithm(signingKey),
    extensions: [
      new x509.BasicConstraintsExtension(true, options.pathLength, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign |
          x509.KeyUsageFlags.cRLSign |
          x509.KeyUsageFlags.digitalSignature |
          x509.KeyUsageFlags.keyEncipherment,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(await toPublic(keys.publicKey)),
    ],
  });
  return { certPem: pemOf(certificate), keyPem: privatePem(keys.privateKey) };
}

export interface CertificateOptions {
  readonly commonName: string;
  /** Groups of a client certificate. */
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ips?: readonly string[];
  readonly usages: readonly CertificateUsage[];
  readonly ca: KeyPair;
  /** Default 365. The certificate never outlives the authority's. */
  readonly validDays?: number;
  /** Milliseconds since the epoch from which it is valid; default now. */
  readonly now?: number;
  /** An existing key instead of a new one, PEM. */
  readonly keyPem?: string | undefined;
}

/** Issues a certificate signed by `ca`, with a new key unless one is given. */
export async function newCertificate(options: CertificateOptions): Promise<KeyPair> {
  const keys = keysOf(options.keyPem);
  const certificate = await sign({
    publicKey: await toPublic(keys.publicKey),
    subject: subjectName(options.commonName, options.organizations ?? []),
    sans: generalNames({ dnsNames: options.dnsNames, ips: options.ips }),
    keyUsages: x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment,
    extendedUsages: options.usages.map((usage) => extendedUsages[usage]),
    ca: options.ca,
    ...notBeyond(options.ca, validity((options.validDays ?? 365) * dayMs, options.now)),
  });
  return { certPem: certificate, keyPem: options.keyPem ?? privatePem(keys.privateKey) };
}

/** The DNS names and IP addresses of a certificate's subjectAltName. */
export function alternativeNamesOf(certPem: string): { dnsNames: string[]; ips: string[] } {
  const names = namesOf(new x509.X509Certificate(certPem));
  const of = (type: x509.GeneralNameType): string[] => names.filter((name) => name.type === type).map((name) => name.value);
  return { dnsNames: of("dns"), ips: of("ip") };
}

/**
 * Reissues a certificate with a later end: subject, alternative names, usages and public key stay.
 * @param options.dnsNames names to add, as are `ips`
 * @param options.validDays default 365; the certificate never outlives the authority's
 */
export async function renewCertificate(options: {
  certPem: string;
  ca: KeyPair;
  dnsNames?: readonly string[];
  ips?: readonly string[];
  validDays?: number;
  now?: number;
}): Promise<string> {
  const old = new x509.X509Certificate(options.certPem);
  const present = namesOf(old);
  const added = generalNames({ dnsNames: options.dnsNames, ips: options.ips })
    // Cast: the library's type lists one of the words it takes.
    .map(({ type, value }) => new x509.GeneralName(type as "dns", value))
    .filter(({ type, value }) => !present.some((name) => name.type === type && name.value === value));
  return sign({
    publicKey: await old.publicKey.export(),
    subject: old.subjectName,
    sans: [...present, ...added],
    keyUsages: old.getExtension(x509.KeyUsagesExtension)?.usages ?? 0,
    extendedUsages: (old.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? []).map(String),
    ca: options.ca,
    ...notBeyond(options.ca, validity((options.validDays ?? 365) * dayMs, options.now)),
  });
}

/** Creates an RSA key pair in the formats of `--service-account-signing-key-file` and `--service-account-key-file`. */
export function newServiceAccountKey(): { keyPem: string; pubPem: string } {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    keyPem: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
    pubPem: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

/** The contents of a certificate signing request. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations: string[];
  readonly dnsNames: string[];
  readonly ips: string[];
  readonly emails: string[];
  readonly uris: string[];
}

/** Creates a certificate signing request as a node sends it. @param options.keyPem an existing key instead of a new one */
export async function newCertificateRequest(options: {
  commonName: string;
  organizations?: readonly string[];
  dnsNames?: readonly string[];
  ips?: readonly string[];
  keyPem?: string;
}): Promise<{ csrPem: string; keyPem: string }> {
  const privateKey = options.keyPem === undefined ? newKeys().privateKey : createPrivateKey(options.keyPem);
  const sans = generalNames(options);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subjectName(options.commonName, options.organizations ?? []),
    // Cast: the library declares the CryptoKey of browsers.
    keys: { privateKey: await toSigning(privateKey), publicKey: await toPublic(createPublicKey(privateKey)) } as never,
    signingAlgorithm: signingAlgorithm(privateKey),
    extensions: sans.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(sans)],
  });
  return { csrPem: `${request.toString("pem")}\n`, keyPem: privatePem(privateKey) };
}

/** @throws Error when the PEM is not a certificate request, or when its signature does not match its key */
export async function parseCertificateRequest(csrPem: string): Promise<CertificateRequest> {
  if (!csrPem.includes("-----BEGIN CERTIFICATE REQUEST-----")) throw new Error("PEM block type must be CERTIFICATE REQUEST");
  const request = readRequest(csrPem);
  // A signature whose numbers do not fit the key's curve throws in the library, with a RangeError or an error of WebCrypto.
  const isSigned = await request.verify().catch(() => false);
  if (!isSigned) throw new Error("the signature of the certificate request does not match its key");
  const names = namesOf(request);
  const of = (type: x509.GeneralNameType): string[] => names.filter((name) => name.type === type).map((name) => name.value);
  return {
    ...subjectOfName(subjectBytes(request)),
    dnsNames: of("dns"),
    ips: of("ip"),
    emails: of("email"),
    uris: of("url"),
  };
}

/** @throws Error for anything but a certificate request; the library's own RangeError of malformed strings is not shown to clients */
function readRequest(csrPem: string): x509.Pkcs10CertificateRequest {
  try {
    return new x509.Pkcs10CertificateRequest(csrPem);
  } catch (err) {
    if (err instanceof RangeError) throw new Error("malformed certificate request", { cause: err });
    throw err;
  }
}

/** The content of the subject's SEQUENCE, in DER. */
function subjectBytes(request: x509.Pkcs10CertificateRequest): Buffer {
  return readElement(Buffer.from(request.subjectName.toArrayBuffer()), 0).content;
}

function namesOf(holder: x509.Pkcs10CertificateRequest | x509.X509Certificate): readonly x509.GeneralName[] {
  const extension = holder.getExtension("2.5.29.17"); // subjectAltName
  return extension === null || extension === undefined
    ? []
    : new x509.SubjectAlternativeNameExtension(extension.rawData).names.items;
}

/**
 * Signs a certificate request. Takes over only its public key, the standard attributes of its subject and its alternative names.
 * @param options.usages upstream's names of key usages: `digital signature`, `client auth`, …
 * @throws Error for an unknown usage
 */
export async function signCertificateRequest(options: {
  csrPem: string;
  ca: KeyPair;
  usages: readonly string[];
  notBefore: Date;
  notAfter: Date;
}): Promise<string> {
  const request = readRequest(options.csrPem);
  const known = (table: Readonly<Record<string, unknown>>, usage: string): boolean => Object.hasOwn(table, usage);
  const unknown = options.usages.filter((usage) => !known(keyUsageFlags, usage) && !known(extendedUsageOids, usage));
  if (unknown.length > 0) throw new Error(`unrecognized usage values: [${unknown.map(goQuote).join(" ")}]`);
  const flags = Object.entries(keyUsageFlags).reduce(
    (all, [usage, flag]) => (options.usages.includes(usage) ? all | flag : all),
    0,
  );
  // Deduplicated and in the table's order, independent of the request's.
  const extended = new Set(
    Object.entries(extendedUsageOids).flatMap(([usage, oid]) => (options.usages.includes(usage) ? [oid] : [])),
  );
  return sign({
    publicKey: await request.publicKey.export(),
    subject: new x509.Name(nameToSign(subjectBytes(request))),
    sans: namesOf(request).filter(({ type }) => signedNames.has(type)),
    keyUsages: flags,
    extendedUsages: [...extended],
    ca: options.ca,
    notBefore: options.notBefore,
    notAfter: options.notAfter,
  });
}

const signedNames: ReadonlySet<x509.GeneralNameType> = new Set(["dns", "ip", "email", "url"] as const);

/** Source: k8s.io/kubernetes pkg/apis/certificates/v1, keyUsageDict and extKeyUsageDict */
const keyUsageFlags: Readonly<Record<string, number>> = {
  signing: x509.KeyUsageFlags.digitalSignature,
  "digital signature": x509.KeyUsageFlags.digitalSignature,
  "content commitment": x509.KeyUsageFlags.nonRepudiation,
  "key encipherment": x509.KeyUsageFlags.keyEncipherment,
  "key agreement": x509.KeyUsageFlags.keyAgreement,
  "data encipherment": x509.KeyUsageFlags.dataEncipherment,
  "cert sign": x509.KeyUsageFlags.keyCertSign,
  "crl sign": x509.KeyUsageFlags.cRLSign,
  "encipher only": x509.KeyUsageFlags.encipherOnly,
  "decipher only": x509.KeyUsageFlags.decipherOnly,
};

const extendedUsageOids: Readonly<Record<string, string>> = {
  any: "2.5.29.37.0",
  "server auth": "1.3.6.1.5.5.7.3.1",
  "client auth": "1.3.6.1.5.5.7.3.2",
  "code signing": "1.3.6.1.5.5.7.3.3",
  "email protection": "1.3.6.1.5.5.7.3.4",
  "s/mime": "1.3.6.1.5.5.7.3.4",
  "ipsec end system": "1.3.6.1.5.5.7.3.5",
  "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
  "ipsec user": "1.3.6.1.5.5.7.3.7",
  timestamping: "1.3.6.1.5.5.7.3.8",
  "ocsp signing": "1.3.6.1.5.5.7.3.9",
  "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
  "netscape sgc": "2.16.840.1.113730.4.1",
};

interface SignOptions {
  publicKey: CryptoKey;
  subject: x509.Name;
  sans: x509.JsonGeneralNames | readonly x509.GeneralName[];
  keyUsages: number;
  extendedUsages: string[];
  ca: KeyPair;
  notBefore: Date;
  notAfter: Date;
}

type CryptoKey = webcrypto.CryptoKey;

async function sign(options: SignOptions): Promise<string> {
  const authority = new x509.X509Certificate(options.ca.certPem);
  const caKey = createPrivateKey(options.ca.keyPem);
  const extensions: x509.Extension[] = [];
  if (options.keyUsages !== 0) extensions.push(new x509.KeyUsagesExtension(options.keyUsages, true));
  if (options.extendedUsages.length > 0) extensions.push(new x509.ExtendedKeyUsageExtension(options.extendedUsages));
  extensions.push(new x509.BasicConstraintsExtension(false, undefined, true));
  const keyId = authority.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
  if (keyId !== undefined) extensions.push(new x509.AuthorityKeyIdentifierExtension(keyId));
  if (options.sans.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(options.sans));
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: options.subject,
    issuer: authority.subjectName,
    notBefore: options.notBefore,
    notAfter: options.notAfter,
    publicKey: options.publicKey,
    signingKey: await toSigning(caKey),
    signingAlgorithm: signingAlgorithm(caKey),
    extensions,
  });
  return pemOf(certificate);
}

function subjectName(commonName: string, organizations: readonly string[]): x509.Name {
  const text = (utf8String: string) => [{ utf8String }];
  return new x509.Name([...organizations.map((organization) => ({ O: text(organization) })), { CN: text(commonName) }]);
}

function generalNames(names: {
  dnsNames?: readonly string[] | undefined;
  ips?: readonly string[] | undefined;
}): x509.JsonGeneralNames {
  const ips = (names.ips ?? []).map((value) => {
    if (isIP(value) === 0) throw new Error(`${JSON.stringify(value)} is no IP address`);
    return { type: "ip" as const, value };
  });
  return [...(names.dnsNames ?? []).map((value) => ({ type: "dns" as const, value })), ...ips];
}

interface Validity {
  notBefore: Date;
  notAfter: Date;
}

/** Starts five minutes in the past, to tolerate clock skew. */
function validity(ms: number, now = Date.now()): Validity {
  return { notBefore: new Date(now - 300_000), notAfter: new Date(now + ms) };
}

/**
 * Truncates the validity to the authority's: the chain is invalid after that anyway, and the certificate's own dates should show
 * it.
 */
function notBeyond(ca: KeyPair, { notBefore, notAfter }: Validity): Validity {
  const end = new x509.X509Certificate(ca.certPem).notAfter;
  return { notBefore, notAfter: end < notAfter ? end : notAfter };
}

/** A random positive serial number of 127 bits. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes.toString("hex");
}

function newKeys(): { privateKey: KeyObject; publicKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function keysOf(keyPem: string | undefined): { privateKey: KeyObject; publicKey: KeyObject } {
  if (keyPem === undefined) return newKeys();
  const privateKey = createPrivateKey(keyPem);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

const curves: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };

function keyAlgorithm(key: KeyObject): webcrypto.RsaHashedImportParams | webcrypto.EcKeyImportParams {
  if (key.asymmetricKeyType === "rsa") return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const namedCurve = curves[key.asymmetricKeyDetails?.namedCurve ?? ""];
  if (namedCurve === undefined) throw new Error(`keys of type ${key.asymmetricKeyType} cannot sign certificates`);
  return { name: "ECDSA", namedCurve };
}

function signingAlgorithm(key: KeyObject): { name: string; hash: string } {
  return { name: keyAlgorithm(key).name, hash: "SHA-256" };
}

async function toSigning(key: KeyObject): Promise<CryptoKey> {
  return key.toCryptoKey(keyAlgorithm(key), true, ["sign"]);
}

async function toPublic(key: KeyObject): Promise<CryptoKey> {
  return key.toCryptoKey(keyAlgorithm(key), true, ["verify"]);
}

/** Exports as SEC1 or PKCS#1, the formats that upstream writes. */
function privatePem(key: KeyObject): string {
  return key.export({ type: key.asymmetricKeyType === "rsa" ? "pkcs1" : "sec1", format: "pem" });
}

function pemOf(certificate: x509.X509Certificate): string {
  return `${certificate.toString("pem").trimEnd()}\n`;
}

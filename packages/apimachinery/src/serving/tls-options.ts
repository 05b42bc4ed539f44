import { constants, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import {
  createSecureContext,
  DEFAULT_CIPHERS,
  type SecureContext,
  type SecureContextOptions,
  type SecureVersion,
} from "node:tls";
import suites from "./cipher-suites.json" with { type: "json" };

export interface ServingCertificate {
  readonly certificate: X509Certificate;
  /** Undefined for a certificate given as PEM. */
  readonly file: string | undefined;
}

interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Certificates and settings of a TLS server. Files are reloaded when they change. */
export interface TlsOptions {
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** PEM, instead of files. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** Requests client certificates and verifies them against these authorities; the authenticator refuses invalid ones. */
  readonly clientCaFile?: string | undefined;
  /** Additional authorities (`--requestheader-client-ca-file`). */
  readonly clientCaFiles?: readonly string[] | undefined;
  readonly clientCa?: string | Buffer | undefined;
  /** Requests client certificates even without such files: the authorities are configured elsewhere. */
  readonly requestClientCertificate?: boolean | undefined;
  /** Certificates by server name; without `names` the certificate's own names are used. */
  readonly sni?: readonly (CertificateFiles & { names?: readonly string[] })[] | undefined;
  /** Go's name: `VersionTLS12`. */
  readonly minVersion?: string | undefined;
  /** Go's names: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`. TLS 1.3 suites are always enabled. */
  readonly cipherSuites?: readonly string[] | undefined;
}

/** Go's names of the selectable suites, with OpenSSL's. Source: component-base/cli/flag/ciphersuites_flag.go */
export const cipherSuites: Readonly<Record<string, string>> = suites.secure;

export const insecureCipherSuites: Readonly<Record<string, string>> = suites.insecure;

const versions: Readonly<Record<string, SecureVersion>> = {
  VersionTLS10: "TLSv1",
  VersionTLS11: "TLSv1.1",
  VersionTLS12: "TLSv1.2",
  VersionTLS13: "TLSv1.3",
};

const tls13Suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/** Upstream still supports these; Node's OpenSSL is built without them. */
const removed = /_RC4_|_3DES_/;

/**
 * @returns an OpenSSL cipher list; undefined for no names
 * @throws Error `Cipher suite X not supported or doesn't exist`; another one for RC4 and 3DES
 */
export function opensslCiphers(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const list = names.map((name) => {
    const known = { ...cipherSuites, ...insecureCipherSuites };
    if (!Object.hasOwn(known, name)) throw new Error(`Cipher suite ${name} not supported or doesn't exist`);
    if (removed.test(name)) throw new Error(`Cipher suite ${name} is not available: the TLS library has neither RC4 nor 3DES`);
    return known[name]!;
  });
  return [tls13Suites, ...list.filter((name) => !name.startsWith("TLS_"))].join(":");
}

/** @throws Error `unknown tls version "x"` */
function opensslVersion(name: string | undefined): SecureVersion {
  if (name === undefined || name === "") return "TLSv1.2";
  if (!Object.hasOwn(versions, name)) throw new Error(`unknown tls version "${name}"`);
  return versions[name]!;
}

/**
 * Parses a value of --tls-sni-cert-key: `cert.pem,key.pem` or `cert.pem,key.pem:*.example.com,192.0.2.1,2001:db8::1`.
 * @throws Error for any other form
 */
export function parseSniCertKey(text: string): CertificateFiles & { names: string[] } {
  const colon = text.indexOf(":");
  const trimmed = (list: string): string[] => list.split(",").map((part) => part.trim());
  const names = colon === -1 ? undefined : text.slice(colon + 1).trim();
  if (names === "") throw new Error("empty names list is not allowed");
  const files = trimmed(colon === -1 ? text : text.slice(0, colon));
  const [certFile = "", keyFile = ""] = files;
  if (files.length !== 2 || certFile === "" || keyFile === "") {
    throw new Error("expected comma separated certificate and key file paths");
  }
  return { certFile, keyFile, names: names === undefined ? [] : trimmed(names) };
}

/** All files the options refer to, for watching. */
export function filesOf(options: TlsOptions): string[] {
  const files = [options.certFile, options.keyFile, options.clientCaFile, ...(options.clientCaFiles ?? [])];
  for (const { certFile, keyFile } of options.sni ?? []) files.push(certFile, keyFile);
  return [...new Set(files.flatMap((file) => file || []))];
}

/** Whether client certificates are requested. */
export function asksForCertificates(options: TlsOptions): boolean {
  const { requestClientCertificate, clientCaFile, clientCaFiles = [], clientCa } = options;
  return requestClientCertificate === true || clientCaFile !== undefined || clientCaFiles.length > 0 || clientCa !== undefined;
}

interface LoadedTls {
  readonly certificates: readonly ServingCertificate[];
  /** Context of the default certificate. */
  readonly context: SecureContextOptions;
  /** Contexts for clients without SNI, by local address. */
  readonly byAddress: ReadonlyMap<string, SecureContextOptions>;
  contextFor(serverName: string): SecureContext;
}

/** Loads all files. @throws Error when one is missing or invalid */
export function loadTls(options: TlsOptions): LoadedTls {
  const shared: SecureContextOptions = { minVersion: opensslVersion(options.minVersion) };
  // A resumed session contains the client's certificate but not its intermediates, so the chain could not be verified.
  if (asksForCertificates(options)) shared.secureOptions = constants.SSL_OP_NO_TICKET;
  const ciphers = opensslCiphers(options.cipherSuites ?? []);
  if (ciphers !== undefined) shared.ciphers = ciphers;
  // OpenSSL's default security level refuses the signatures of TLS 1.0 and 1.1, independent of the minimum version.
  if (shared.minVersion === "TLSv1" || shared.minVersion === "TLSv1.1") {
    shared.ciphers = `${ciphers ?? DEFAULT_CIPHERS}:@SECLEVEL=0`;
  }
  const ca: (string | Buffer)[] = [options.clientCaFile, ...(options.clientCaFiles ?? [])]
    .filter((file) => file !== undefined && file !== "")
    .map((file) => readFileSync(file!));
  if (options.clientCa !== undefined) ca.push(options.clientCa);
  // Without a CA list Node would trust all public authorities.
  shared.ca = ca;
  const cert = options.cert ?? readFileSync(options.certFile!);
  const key = options.key ?? readFileSync(options.keyFile!);
  const pairs = (options.sni ?? []).map(({ certFile, keyFile, names = [] }) => {
    const own = { ...shared, cert: readFileSync(certFile), key: readFileSync(keyFile) };
    return { own, names, certFile, certificate: new X509Certificate(own.cert), context: createSecureContext(own) };
  });
  const byName = pairsByName(pairs);
  const context = { ...shared, cert, key };
  const main = { context: createSecureContext(context), certificate: new X509Certificate(cert) };
  return {
    certificates: [
      { certificate: main.certificate, file: options.cert === undefined ? options.certFile : undefined },
      ...pairs.map(({ certificate, certFile }) => ({ certificate, file: certFile })),
    ],
    context,
    byAddress: new Map([...byName].filter(([name]) => isIP(name) !== 0).map(([name, { own }]) => [name, own])),
    contextFor(serverName) {
      const name = serverName.toLowerCase().replace(/\.$/, "");
      // A wildcard matches one label.
      const named = byName.get(name) ?? byName.get(name.replace(/^[^.]*/, "*"));
      // As in Go's TLS: before falling back to the default certificate, any certificate that is valid for the name.
      return (named ?? [main, ...pairs].find(({ certificate }) => isFor(certificate, name)) ?? main).context;
    },
  };
}

/** Checks subjectAltName only, not the common name. */
function isFor(certificate: X509Certificate, name: string): boolean {
  return certificate.checkHost(name, { subject: "never" }) !== undefined;
}

interface SniPair {
  readonly own: SecureContextOptions;
  readonly context: SecureContext;
  readonly certificate: X509Certificate;
  readonly names: readonly string[];
}

/**
 * Explicit names take precedence over names of certificates, and earlier pairs over later ones.
 * Source: k8s.io/apiserver pkg/server/dynamiccertificates/named_certificates.go
 */
function pairsByName(pairs: readonly SniPair[]): Map<string, SniPair> {
  const written = new Map<string, SniPair>();
  const found = new Map<string, SniPair>();
  for (const pair of pairs.toReversed()) {
    for (const name of pair.names) written.set(name.toLowerCase(), pair);
    if (pair.names.length === 0) for (const name of namesOf(pair.certificate)) found.set(name.toLowerCase(), pair);
  }
  return new Map([...found, ...written]);
}

/** IP addresses are left out: they count only when given explicitly. */
function namesOf(certificate: X509Certificate): string[] {
  const names = (certificate.subjectAltName ?? "").split(", ").filter((part) => part.startsWith("DNS:"));
  const commonName = /^CN=(.*)$/m.exec(certificate.subject)?.[1];
  const own = commonName === undefined || isIP(commonName) !== 0 ? [] : [commonName];
  return [...own, ...names.map((part) => part.slice(4))];
}

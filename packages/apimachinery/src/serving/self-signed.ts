import { accessSync, constants, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "../process/files/make-folder.ts";

export interface SelfSignedOptions {
  /** `--cert-dir`; `""`: the pair is kept in memory only. */
  readonly certDir: string;
  /** Base name of the files: `apiserver` → `apiserver.crt`, `apiserver.key`. */
  readonly pairName: string;
  readonly host: string;
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
}

/**
 * Creates a serving certificate signed by a temporary CA whose key is discarded. An existing pair in the directory is reused.
 * Source: k8s.io/apiserver pkg/server/options/serving.go, MaybeDefaultWithSelfSignedCerts
 */
export async function selfSignedPair(
  options: SelfSignedOptions,
): Promise<{ certFile: string; keyFile: string } | { cert: string; key: string }> {
  const certFile = join(options.certDir, `${options.pairName}.crt`);
  const keyFile = join(options.certDir, `${options.pairName}.key`);
  if (options.certDir !== "" && isReadable(certFile) && isReadable(keyFile)) return { certFile, keyFile };
  // Loaded on demand: the certificate library takes longer to load than the rest of a server, and few servers need it.
  const { newCa, newCertificate } = await import("./certificates.ts");
  const stamp = Math.floor(Date.now() / 1000);
  const ca = await newCa({ commonName: `${options.host}-ca@${stamp}`, validDays: 365 });
  const { dnsNames, ips } = options;
  const pair = await newCertificate({ commonName: `${options.host}@${stamp}`, dnsNames, ips, usages: ["server"], ca });
  const cert = pair.certPem + ca.certPem;
  if (options.certDir === "") return { cert, key: pair.keyPem };
  makeFolderSync(options.certDir, 0o755);
  writeFileSync(keyFile, pair.keyPem, { mode: 0o600 });
  writeFileSync(certFile, cert, { mode: 0o644 });
  return { certFile, keyFile };
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

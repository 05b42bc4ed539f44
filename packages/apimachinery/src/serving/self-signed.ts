import { accessSync, constants, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "../files/make-folder.ts";

export interface SelfSignedOptions {
  /** `--cert-dir`; `""`: the pair lives in memory and ends with the process. */
  readonly certDir: string;
  /** Names the files: `apiserver` → `apiserver.crt`, `apiserver.key`. */
  readonly pairName: string;
  readonly host: string;
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
}

/**
 * A certificate for a server that was given none, signed by an authority of its own that is forgotten at once. A pair
 * that is in the directory already is used again.
 * Source: k8s.io/apiserver pkg/server/options/serving.go, MaybeDefaultWithSelfSignedCerts
 */
export async function selfSignedPair(
  options: SelfSignedOptions,
): Promise<{ certFile: string; keyFile: string } | { cert: string; key: string }> {
  const certFile = join(options.certDir, `${options.pairName}.crt`);
  const keyFile = join(options.certDir, `${options.pairName}.key`);
  if (options.certDir !== "" && isReadable(certFile) && isReadable(keyFile)) return { certFile, keyFile };
  // What makes certificates takes longer to load than all else of a server, and few need one made.
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

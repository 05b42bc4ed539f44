import { accessSync, constants, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "../process/files/make-folder.ts";
import { pairOfTemporaryAuthority } from "./certificates-aside.ts";

interface SelfSignedOptions {
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
  const stamp = Math.floor(Date.now() / 1000);
  const { host, dnsNames, ips } = options;
  const names = { authority: `${host}-ca@${stamp}`, commonName: `${host}@${stamp}`, dnsNames, ips };
  const pair = await pairOfTemporaryAuthority({ ...names, validDays: 365 });
  const cert = pair.certPem + pair.caPem;
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

import { readFileSync } from "node:fs";
import { valuesOfFlags } from "@coxswain/apimachinery/flags/settings";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { sharedSigningSettings, signerSettings, signingDurationSettings } from "../flags/certificates.ts";
import type { ControllerManagerFlags } from "../flags.ts";

/** Built-in signers. */
export type SignerName = keyof typeof signerSettings;

/** Paths of a PEM certificate and its key. */
export interface SigningFiles {
  readonly cert: string;
  readonly key: string;
}

/** Configuration of the csrsigning controller. */
export interface CertificateSigningConfig {
  /** Key pair files by signer; other signers are disabled. */
  readonly files: ReadonlyMap<SignerName, SigningFiles>;
  /** Maximum lifetime of certificates. */
  readonly durationMs: number;
}

/**
 * Reads the signing flags: either one key pair for all signers or one for each.
 * @param errors receives conflicts, incomplete pairs and unreadable files
 * Source: cmd/kube-controller-manager/app/certificates.go
 */
export function certificateSigningOf(flags: ControllerManagerFlags, errors: string[]): CertificateSigningConfig {
  const shared: SigningFiles = valuesOfFlags(sharedSigningSettings, flags);
  const own = entriesOf(signerSettings).map(([signer, settings]): [SignerName, SigningFiles] => [
    signer,
    valuesOfFlags(settings, flags),
  ]);
  const anyOwn = own.some(([, { cert, key }]) => cert !== "" || key !== "");
  const sharedGiven = shared.cert !== "" && shared.key !== "";
  if (anyOwn && sharedGiven) errors.push("cannot specify default and per controller certs at the same time");
  const files = anyOwn
    ? own.filter(([, { cert, key }]) => cert !== "" || key !== "")
    : sharedGiven
      ? own.map(([signer]): [SignerName, SigningFiles] => [signer, shared])
      : [];
  for (const [signer, { cert, key }] of files) {
    const fault = fileFault(cert) ?? fileFault(key);
    if (fault !== undefined)
      errors.push(`failed to start ${signer} certificate controller: error reading CA cert file "${cert}": ${fault}`);
  }
  return { files: new Map(files), durationMs: durationOf(flags) };
}

function durationOf(flags: ControllerManagerFlags): number {
  const { durationMs, formerDurationMs } = valuesOfFlags(signingDurationSettings, flags);
  return durationMs === signingDurationSettings.durationMs.default ? formerDurationMs : durationMs;
}

function fileFault(path: string): string | undefined {
  if (path === "") return "missing filename for serving cert";
  try {
    return readFileSync(path, "utf8").includes("-----BEGIN ") ? undefined : `${path} holds no PEM block`;
  } catch (err) {
    return messageOf(err);
  }
}

import { readFileSync } from "node:fs";
import type { ControllerManagerFlags } from "../flags.ts";

/** Built-in signers. */
export type SignerName =
  | "kubernetes.io/kubelet-serving"
  | "kubernetes.io/kube-apiserver-client-kubelet"
  | "kubernetes.io/kube-apiserver-client"
  | "kubernetes.io/legacy-unknown";

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
  const shared: SigningFiles = { cert: flags["cluster-signing-cert-file"], key: flags["cluster-signing-key-file"] };
  const own: readonly [SignerName, SigningFiles][] = [
    [
      "kubernetes.io/kubelet-serving",
      { cert: flags["cluster-signing-kubelet-serving-cert-file"], key: flags["cluster-signing-kubelet-serving-key-file"] },
    ],
    [
      "kubernetes.io/kube-apiserver-client-kubelet",
      { cert: flags["cluster-signing-kubelet-client-cert-file"], key: flags["cluster-signing-kubelet-client-key-file"] },
    ],
    [
      "kubernetes.io/kube-apiserver-client",
      {
        cert: flags["cluster-signing-kube-apiserver-client-cert-file"],
        key: flags["cluster-signing-kube-apiserver-client-key-file"],
      },
    ],
    [
      "kubernetes.io/legacy-unknown",
      { cert: flags["cluster-signing-legacy-unknown-cert-file"], key: flags["cluster-signing-legacy-unknown-key-file"] },
    ],
  ];
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

const yearMs = 31_536_000_000;

/** The deprecated flag applies when the new one has its default. */
function durationOf(flags: ControllerManagerFlags): number {
  const given = flags["cluster-signing-duration"];
  return given === yearMs ? flags["experimental-cluster-signing-duration"] : given;
}

function fileFault(path: string): string | undefined {
  if (path === "") return "missing filename for serving cert";
  try {
    return readFileSync(path, "utf8").includes("-----BEGIN ") ? undefined : `${path} holds no PEM block`;
  } catch (err) {
    return (err as Error).message;
  }
}

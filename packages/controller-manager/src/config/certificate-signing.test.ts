import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { kubeControllerManager } from "../flags.ts";
import { certificateSigningOf } from "./certificate-signing.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-signing-"));
after(() => rmSync(folder, { recursive: true }));
const file = (name: string): string => {
  writeFileSync(join(folder, name), "-----BEGIN X-----\n");
  return join(folder, name);
};
const [crt, key] = [file("ca.crt"), file("ca.key")];
const empty = join(folder, "empty");
writeFileSync(empty, "");

function read(...argv: string[]) {
  const errors: string[] = [];
  const { files, durationMs } = certificateSigningOf(parseFlags(kubeControllerManager.flags, argv).values, errors);
  return { signers: [...files.keys()].map((signer) => signer.slice("kubernetes.io/".length)), durationMs, errors };
}

for (const { name, flags, signers, durationMs = 31_536_000_000, error } of [
  { name: "no signer runs without a key pair", flags: [], signers: [] },
  {
    name: "one pair is for all signers",
    flags: [`--cluster-signing-cert-file=${crt}`, `--cluster-signing-key-file=${key}`],
    signers: ["kubelet-serving", "kube-apiserver-client-kubelet", "kube-apiserver-client", "legacy-unknown"],
  },
  {
    name: "a signer may have its own, and then the others need theirs",
    flags: [`--cluster-signing-kubelet-client-cert-file=${crt}`, `--cluster-signing-kubelet-client-key-file=${key}`],
    signers: ["kube-apiserver-client-kubelet"],
  },
  {
    name: "not both",
    flags: [
      `--cluster-signing-cert-file=${crt}`,
      `--cluster-signing-key-file=${key}`,
      `--cluster-signing-legacy-unknown-key-file=${key}`,
    ],
    error: /cannot specify default and per controller certs at the same time/,
  },
  {
    name: "not half a pair",
    flags: [`--cluster-signing-kubelet-serving-cert-file=${crt}`],
    error: /failed to start kubernetes.io\/kubelet-serving certificate controller: .*missing filename for serving cert/,
  },
  {
    name: "not what is no file",
    flags: ["--cluster-signing-cert-file=/nowhere", `--cluster-signing-key-file=${key}`],
    error: /error reading CA cert file "\/nowhere": ENOENT/,
  },
  {
    name: "not a certificate that holds no PEM block",
    flags: [`--cluster-signing-cert-file=${empty}`, `--cluster-signing-key-file=${key}`],
    error: /error reading CA cert file ".*empty": .*empty holds no PEM block/,
  },
  {
    name: "not a key that holds no PEM block",
    flags: [`--cluster-signing-cert-file=${crt}`, `--cluster-signing-key-file=${empty}`],
    error: /error reading CA cert file ".*ca.crt": .*empty holds no PEM block/,
  },
  {
    name: "certificates live as long as the flag says",
    flags: ["--cluster-signing-duration=1h"],
    signers: [],
    durationMs: 3_600_000,
  },
  {
    name: "the flag's former name works",
    flags: ["--experimental-cluster-signing-duration=1h"],
    signers: [],
    durationMs: 3_600_000,
  },
  {
    name: "the flag's present name takes precedence",
    flags: ["--experimental-cluster-signing-duration=2h", "--cluster-signing-duration=1h"],
    signers: [],
    durationMs: 3_600_000,
  },
  {
    name: "the flag's present name takes precedence also with the longer time",
    flags: ["--experimental-cluster-signing-duration=1h", "--cluster-signing-duration=2h"],
    signers: [],
    durationMs: 7_200_000,
  },
] as { name: string; flags: string[]; signers?: string[]; durationMs?: number; error?: RegExp }[]) {
  test(name, () => {
    const config = read(...flags);
    if (error === undefined) assert.deepEqual(config, { signers, durationMs, errors: [] });
    else assert.match(config.errors.join("; "), error);
  });
}

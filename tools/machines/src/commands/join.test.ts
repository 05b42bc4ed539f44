import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { joinDocument } from "./join.ts";

const token = "abcdef.0123456789abcdef";
const byToken = `discovery: {bootstrapToken: {token: ${token}, apiServerEndpoint: "a:6443", caCertHashes: [sha256:0]}}`;

for (const { name, endpoint, flags, file, want } of [
  {
    name: "a file with both kinds of discovery",
    file: byToken.replace(/}$/, ", file: {kubeConfigPath: /f}}"),
    want: /^JoinConfiguration\.discovery: bootstrapToken and file exclude each other$/,
  },
  ...Object.entries({
    "apiserver-advertise-address": { apiserverAdvertiseAddress: "10.0.0.1" },
    "apiserver-bind-port": { apiserverBindPort: 1 },
    "certificate-key": { certificateKey: "0" },
    "control-plane": { controlPlane: true },
    "discovery-file": { discoveryFile: "/f" },
    "discovery-token": { discoveryToken: token },
    "discovery-token-ca-cert-hash": { discoveryTokenCaCertHash: ["sha256:0"] },
    "discovery-token-unsafe-skip-ca-verification": { discoveryTokenUnsafeSkipCaVerification: true },
    "tls-bootstrap-token": { tlsBootstrapToken: token },
    token: { token },
  }).map(([flag, flags]) => ({
    name: `--${flag} beside a file`,
    flags,
    file: byToken,
    want: new RegExp(`^--${flag} cannot be combined with --config`),
  })),
  { name: "an address beside a file", endpoint: "b:6443", file: byToken, want: /^endpoint cannot be combined with --config/ },
  {
    name: "an address and hashes beside a discovery file",
    endpoint: "b:6443",
    flags: { discoveryFile: "/f", discoveryTokenCaCertHash: ["sha256:0"] },
    want: /^endpoint, --discovery-token-ca-cert-hash cannot be combined with --discovery-file/,
  },
  { name: "an address without a token", endpoint: "b:6443", want: /^give an API server and --token/ },
] as readonly { name: string; endpoint?: string; flags?: object; file?: string; want: RegExp }[]) {
  test(`${name} is refused`, (t) => {
    const config = file === undefined ? {} : { config: joinFile(t, file) };
    assert.throws(() => joinDocument(endpoint, { ...flags, ...config }), { message: want, exitCode: 2 });
  });
}

test("a configuration file alone and flags alone are both accepted", (t) => {
  assert.equal(joinDocument(undefined, { config: joinFile(t, byToken) }).discovery?.bootstrapToken?.token, token);
  const { discovery } = joinDocument(undefined, { discoveryFile: "/f", token });
  assert.deepEqual(discovery, { file: { kubeConfigPath: "/f" }, tlsBootstrapToken: token });
});

function joinFile(t: { after(then: () => void): void }, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-join-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "join.yaml");
  writeFileSync(path, `apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\n${text}\n`);
  return path;
}

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

for (const [name, endpoint, flags, want] of [
  [
    "one token for both uses",
    "a:6443",
    { token, discoveryTokenCaCertHash: ["sha256:0"] },
    {
      discovery: {
        bootstrapToken: { token, apiServerEndpoint: "a:6443", caCertHashes: ["sha256:0"], unsafeSkipCAVerification: false },
        tlsBootstrapToken: token,
      },
    },
  ],
  [
    "a token for each use",
    "a:6443",
    { token, discoveryToken: "d", tlsBootstrapToken: "t", discoveryTokenUnsafeSkipCaVerification: true },
    {
      discovery: {
        bootstrapToken: { token: "d", apiServerEndpoint: "a:6443", caCertHashes: [], unsafeSkipCAVerification: true },
        tlsBootstrapToken: "t",
      },
    },
  ],
  ["a discovery file alone", undefined, { discoveryFile: "/f" }, { discovery: { file: { kubeConfigPath: "/f" } } }],
  [
    "a machine of the control plane",
    undefined,
    { discoveryFile: "/f", controlPlane: true },
    { discovery: { file: { kubeConfigPath: "/f" } }, controlPlane: { localAPIEndpoint: {} } },
  ],
  [
    "a machine of the control plane with all flags",
    undefined,
    {
      discoveryFile: "/f",
      controlPlane: true,
      certificateKey: "k",
      apiserverAdvertiseAddress: "10.0.0.1",
      apiserverBindPort: 7443,
    },
    {
      discovery: { file: { kubeConfigPath: "/f" } },
      controlPlane: { certificateKey: "k", localAPIEndpoint: { advertiseAddress: "10.0.0.1", bindPort: 7443 } },
    },
  ],
] as const)
  test(`join by flags: ${name}`, () => assert.deepEqual(joinDocument(endpoint, flags), want));

test("a file for another command, and a setting of the whole cluster beside join's, are refused", (t) => {
  const path = joinFile(t, byToken);
  const text = readFileSync(path, "utf8");
  const refused = (content: string, message: string): void => {
    writeFileSync(path, content);
    assert.throws(() => joinDocument(undefined, { config: path }), { message, exitCode: 2 });
  };
  refused(text.replace(/^kind: .*\n.*\n/m, "kind: InitConfiguration\n"), `${path}: it has no JoinConfiguration`);
  const cluster = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n";
  const kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  refused(
    `${text}---\n${cluster}---\n${kubelet}`,
    `${path}: ClusterConfiguration, KubeletConfiguration cannot be set by join: it is a setting of the whole cluster`,
  );
  const none = join(path, "..", "none");
  assert.throws(() => joinDocument(undefined, { config: none }), {
    message: new RegExp(`^cannot read ${none}: ENOENT`),
    exitCode: 2,
  });
});

function joinFile(t: { after(then: () => void): void }, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-join-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "join.yaml");
  writeFileSync(path, `apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\n${text}\n`);
  return path;
}

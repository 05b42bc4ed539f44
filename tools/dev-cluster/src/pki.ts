import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { newCa, newCertificate, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import type { Settings } from "./settings.ts";

/** Who the API server is to the kubelets. */
export const kubeletClientName = "kube-apiserver-kubelet-client";

interface KeyPair {
  certPem: string;
  keyPem: string;
}

/** One certificate of the cluster. `file` is below the pki folder, without its ending. */
interface CertificateSpec {
  file: string;
  ca: "ca" | "front-proxy-ca" | "etcd/ca";
  commonName: string;
  organizations?: string[];
  usages: ("server" | "client")[];
  dnsNames?: string[];
  ips?: string[];
}

export const pkiFile = (settings: Settings, file: string): string => join(settings.state, "pki", file);
export const kubeconfigFile = (settings: Settings, name: KubeconfigName): string => join(settings.state, `${name}.conf`);
export type KubeconfigName = "admin" | "controller-manager" | "scheduler" | "kubelet";

/**
 * Writes what is missing of the PKI in kubeadm's file layout and a kubeconfig for each component. All of it is made
 * anew when the addresses it was made for have changed.
 * Source: kubeadm's phases certs and kubeconfig.
 */
export async function writePki(settings: Settings): Promise<void> {
  const folder = join(settings.state, "pki");
  const madeFor = `${settings.nodeName} ${settings.nodeAddress} ${settings.firstServiceAddress}`;
  const stamp = join(folder, "made-for");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") !== madeFor) rmSync(folder, { recursive: true });
  mkdirSync(join(folder, "etcd"), { recursive: true, mode: 0o700 });
  const authorities: Record<string, KeyPair> = {};
  for (const [file, commonName] of [
    ["ca", "kubernetes"],
    ["front-proxy-ca", "front-proxy-ca"],
    ["etcd/ca", "etcd-ca"],
  ] as const) {
    authorities[file] = await keyPair(folder, file, () => newCa({ commonName }));
  }
  for (const spec of certificates(settings)) {
    await keyPair(folder, spec.file, () =>
      newCertificate({ ...spec, organizations: spec.organizations ?? [], ca: authorities[spec.ca] as KeyPair }),
    );
  }
  if (!existsSync(join(folder, "sa.key"))) {
    const key = newServiceAccountKey();
    write(join(folder, "sa.pub"), key.pubPem, 0o644);
    write(join(folder, "sa.key"), key.keyPem, 0o600);
  }
  await writeKubeconfigs(settings, authorities["ca"] as KeyPair);
  write(stamp, madeFor, 0o644);
}

function certificates(settings: Settings): CertificateSpec[] {
  const local = ["127.0.0.1", "::1"];
  return [
    {
      file: "apiserver",
      ca: "ca",
      commonName: "kube-apiserver",
      usages: ["server"],
      dnsNames: [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        settings.nodeName,
      ],
      ips: [...new Set([...local, settings.nodeAddress, settings.firstServiceAddress])],
    },
    // Nobody but the administrator is in system:masters: `up` gives this one the kubelet's API and no more.
    { file: "apiserver-kubelet-client", ca: "ca", commonName: kubeletClientName, usages: ["client"] },
    { file: "apiserver-etcd-client", ca: "etcd/ca", commonName: "kube-apiserver-etcd-client", usages: ["client"] },
    { file: "front-proxy-client", ca: "front-proxy-ca", commonName: "front-proxy-client", usages: ["client"] },
    {
      file: "etcd/server",
      ca: "etcd/ca",
      commonName: settings.nodeName,
      usages: ["server", "client"],
      dnsNames: ["localhost", settings.nodeName],
      ips: local,
    },
    {
      file: "etcd/peer",
      ca: "etcd/ca",
      commonName: settings.nodeName,
      usages: ["server", "client"],
      dnsNames: ["localhost", settings.nodeName],
      ips: local,
    },
    { file: "etcd/healthcheck-client", ca: "etcd/ca", commonName: "kube-etcd-healthcheck-client", usages: ["client"] },
    {
      file: "kubelet",
      ca: "ca",
      commonName: `system:node:${settings.nodeName}`,
      organizations: ["system:nodes"],
      usages: ["server"],
      dnsNames: [settings.nodeName],
      ips: [...new Set([...local, settings.nodeAddress])],
    },
  ];
}

async function writeKubeconfigs(settings: Settings, ca: KeyPair): Promise<void> {
  const users: Record<KubeconfigName, { commonName: string; organizations: string[] }> = {
    admin: { commonName: "kubernetes-admin", organizations: ["system:masters"] },
    "controller-manager": { commonName: "system:kube-controller-manager", organizations: [] },
    scheduler: { commonName: "system:kube-scheduler", organizations: [] },
    kubelet: { commonName: `system:node:${settings.nodeName}`, organizations: ["system:nodes"] },
  };
  for (const [name, user] of Object.entries(users) as [KubeconfigName, (typeof users)[KubeconfigName]][]) {
    const pair = await newCertificate({ ...user, usages: ["client"], ca });
    const server = `https://127.0.0.1:${settings.ports.apiserver}`;
    write(kubeconfigFile(settings, name), kubeconfig(server, user.commonName, ca.certPem, pair), 0o600);
  }
}

/** JSON is YAML, and says the same to every reader. */
function kubeconfig(server: string, user: string, caPem: string, pair: KeyPair): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const context = `${user}@kubernetes`;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "kubernetes", cluster: { server, "certificate-authority-data": base64(caPem) } }],
    users: [{ name: user, user: { "client-certificate-data": base64(pair.certPem), "client-key-data": base64(pair.keyPem) } }],
    contexts: [{ name: context, context: { cluster: "kubernetes", user } }],
    "current-context": context,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

async function keyPair(folder: string, file: string, make: () => Promise<KeyPair> | KeyPair): Promise<KeyPair> {
  const certFile = join(folder, `${file}.crt`);
  const keyFile = join(folder, `${file}.key`);
  if (existsSync(certFile) && existsSync(keyFile)) {
    return { certPem: readFileSync(certFile, "utf8"), keyPem: readFileSync(keyFile, "utf8") };
  }
  const pair = await make();
  write(certFile, pair.certPem, 0o644);
  write(keyFile, pair.keyPem, 0o600);
  return pair;
}

function write(file: string, text: string, mode: number): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
}

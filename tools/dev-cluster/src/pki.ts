import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
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
  organizations?: readonly string[];
  usages: ("server" | "client")[];
  dnsNames?: string[];
  ips?: string[];
}

export const pkiFile = (settings: Settings, file: string): string => join(settings.state, "pki", file);
export const kubeconfigFile = (settings: Settings, name: KubeconfigName): string => join(settings.state, `${name}.conf`);
export type KubeconfigName = "admin" | "controller-manager" | "scheduler" | "kubelet";

/** What a cluster's certificates and kubeconfigs say, and where they are. */
export interface PkiPlan {
  /** Kubeconfigs are in it, certificates in its `pki`. */
  readonly folder: string;
  readonly nodeName: string;
  /** Besides those that a cluster always has: names and addresses of the API server, of etcd and of the kubelet. */
  readonly apiserverNames: readonly string[];
  readonly etcdNames: readonly string[];
  readonly kubeletNames: readonly string[];
  /** Of whoever is the API server to the kubelets. */
  readonly kubeletClientGroups: readonly string[];
  /** `https://127.0.0.1:6443`, for each kubeconfig. */
  readonly server: (name: KubeconfigName) => string;
}

export const pkiPlan = (settings: Settings): PkiPlan => ({
  folder: settings.state,
  nodeName: settings.nodeName,
  apiserverNames: [settings.nodeAddress, settings.firstServiceAddress],
  etcdNames: [],
  kubeletNames: [settings.nodeAddress],
  // Nobody but the administrator is in system:masters: `up` gives this one the kubelet's API and no more.
  kubeletClientGroups: [],
  server: () => `https://127.0.0.1:${settings.ports.apiserver}`,
});

/**
 * Writes what is missing of the PKI in kubeadm's file layout and a kubeconfig for each component. Certificates that it made are
 * made anew when the names that they are for have changed; the authorities stay.
 * Source: kubeadm's phases certs and kubeconfig.
 */
export async function writePki(plan: PkiPlan): Promise<void> {
  const folder = join(plan.folder, "pki");
  const madeFor = [plan.nodeName, ...plan.apiserverNames, ...plan.etcdNames].join(" ");
  const stamp = join(folder, "made-for");
  const isOutdated = existsSync(stamp) && readFileSync(stamp, "utf8") !== madeFor;
  for (const { file } of isOutdated ? certificates(plan) : []) rmSync(join(folder, `${file}.crt`), { force: true });
  makeFolderSync(join(folder, "etcd"), 0o700);
  const authorities: Record<string, KeyPair> = {};
  for (const [file, commonName] of [
    ["ca", "kubernetes"],
    ["front-proxy-ca", "front-proxy-ca"],
    ["etcd/ca", "etcd-ca"],
  ] as const) {
    authorities[file] = await keyPair(folder, file, () => newCa({ commonName }));
  }
  for (const spec of certificates(plan)) {
    await keyPair(folder, spec.file, () =>
      newCertificate({ ...spec, organizations: [...(spec.organizations ?? [])], ca: authorities[spec.ca] as KeyPair }),
    );
  }
  if (!existsSync(join(folder, "sa.key"))) {
    const key = newServiceAccountKey();
    write(join(folder, "sa.pub"), key.pubPem, 0o644);
    write(join(folder, "sa.key"), key.keyPem, 0o600);
  }
  await writeKubeconfigs(plan, authorities["ca"] as KeyPair);
  write(stamp, madeFor, 0o644);
}

function certificates(plan: PkiPlan): CertificateSpec[] {
  const named = (...names: string[]) => {
    const all = [...new Set(["127.0.0.1", "::1", "localhost", plan.nodeName, ...names])];
    return { dnsNames: all.filter((name) => isIP(name) === 0), ips: all.filter((name) => isIP(name) !== 0) };
  };
  const service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
  return [
    {
      file: "apiserver",
      ca: "ca",
      commonName: "kube-apiserver",
      usages: ["server"],
      ...named(...service, ...plan.apiserverNames),
    },
    {
      file: "apiserver-kubelet-client",
      ca: "ca",
      commonName: kubeletClientName,
      organizations: plan.kubeletClientGroups,
      usages: ["client"],
    },
    { file: "apiserver-etcd-client", ca: "etcd/ca", commonName: "kube-apiserver-etcd-client", usages: ["client"] },
    { file: "front-proxy-client", ca: "front-proxy-ca", commonName: "front-proxy-client", usages: ["client"] },
    ...["etcd/server", "etcd/peer"].map(
      (file): CertificateSpec => ({
        file,
        ca: "etcd/ca",
        commonName: plan.nodeName,
        usages: ["server", "client"],
        ...named(...plan.etcdNames),
      }),
    ),
    { file: "etcd/healthcheck-client", ca: "etcd/ca", commonName: "kube-etcd-healthcheck-client", usages: ["client"] },
    {
      file: "kubelet",
      ca: "ca",
      commonName: `system:node:${plan.nodeName}`,
      organizations: ["system:nodes"],
      usages: ["server"],
      ...named(...plan.kubeletNames),
    },
  ];
}

async function writeKubeconfigs(plan: PkiPlan, ca: KeyPair): Promise<void> {
  const users: Record<KubeconfigName, { commonName: string; organizations: string[] }> = {
    admin: { commonName: "kubernetes-admin", organizations: ["system:masters"] },
    "controller-manager": { commonName: "system:kube-controller-manager", organizations: [] },
    scheduler: { commonName: "system:kube-scheduler", organizations: [] },
    kubelet: { commonName: `system:node:${plan.nodeName}`, organizations: ["system:nodes"] },
  };
  for (const [name, user] of Object.entries(users) as [KubeconfigName, (typeof users)[KubeconfigName]][]) {
    const pair = await newCertificate({ ...user, usages: ["client"], ca });
    write(join(plan.folder, `${name}.conf`), kubeconfig(plan.server(name), user.commonName, ca.certPem, pair), 0o600);
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
  makeFolderSync(dirname(file));
  writeFileSync(file, text, { mode });
}

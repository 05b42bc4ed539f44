import { isIP } from "node:net";
import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";

/** Common names of authorities by file name below `pki`, without extension. */
export const authorities = {
  ca: "kubernetes",
  "front-proxy-ca": "front-proxy-ca",
  "etcd/ca": "etcd-ca",
} as const;
export type AuthorityFile = keyof typeof authorities;
export const authorityFiles: readonly AuthorityFile[] = keysOf(authorities);

export const kubeconfigNames = ["admin", "controller-manager", "scheduler", "kubelet", "services"] as const;
export type KubeconfigName = (typeof kubeconfigNames)[number];

/** Contents and location of a cluster's certificates and kubeconfigs. */
export interface PkiPlan {
  /** Folder of the kubeconfigs; certificates are in its subfolder `pki`. */
  readonly folder: string;
  readonly nodeName: string;
  /** Additional names and addresses of the API server, etcd and the kubelet, besides the default ones. */
  readonly apiserverNames: readonly string[];
  readonly etcdNames: readonly string[];
  readonly kubeletNames: readonly string[];
  /** Organizations of the API server's client certificate for kubelets. */
  readonly kubeletClientGroups: readonly string[];
  /** Server URL of each kubeconfig, `https://127.0.0.1:6443`. */
  readonly server: (name: KubeconfigName) => string;
  /**
   * Set for folders managed for a single cluster: whether an earlier plan used this server URL. Existing kubeconfigs are then
   * updated to the plan's server and node name. When undefined, existing kubeconfigs are never changed.
   */
  readonly isEarlierServer?: (url: string) => boolean;
}

/** A certificate of the cluster. */
export interface CertificateSpec {
  /** Path below `pki`, without extension. */
  readonly file: string;
  readonly ca: AuthorityFile;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly usages: readonly ("server" | "client")[];
  /** Default alternative names and addresses. */
  readonly names: readonly string[];
  /** Additional ones requested by the user. */
  readonly requested: readonly string[];
}

export interface KubeconfigSpec {
  readonly name: KubeconfigName;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly server: string;
}

/** Common name of the API server's client certificate for kubelets. */
export const kubeletClientName = "kube-apiserver-kubelet-client";

const serviceNames = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/** Source: kubeadm's phase certs */
export function certificates(plan: PkiPlan): CertificateSpec[] {
  const machine = ["127.0.0.1", "::1", "localhost", plan.nodeName];
  const client = (file: string, ca: AuthorityFile, commonName: string, organizations: readonly string[] = []) =>
    ({ file, ca, commonName, organizations, usages: ["client"], names: [], requested: [] }) satisfies CertificateSpec;
  const etcd = { ca: "etcd/ca", commonName: plan.nodeName, organizations: [], usages: ["server", "client"] } as const;
  return [
    {
      file: "apiserver",
      ca: "ca",
      commonName: "kube-apiserver",
      organizations: [],
      usages: ["server"],
      names: [...machine, ...serviceNames],
      requested: plan.apiserverNames,
    },
    client("apiserver-kubelet-client", "ca", kubeletClientName, plan.kubeletClientGroups),
    client("apiserver-etcd-client", "etcd/ca", "kube-apiserver-etcd-client"),
    client("front-proxy-client", "front-proxy-ca", "front-proxy-client"),
    { file: "etcd/server", ...etcd, names: machine, requested: plan.etcdNames },
    { file: "etcd/peer", ...etcd, names: machine, requested: plan.etcdNames },
    client("etcd/healthcheck-client", "etcd/ca", "kube-etcd-healthcheck-client"),
    {
      file: "kubelet",
      ca: "ca",
      commonName: `system:node:${plan.nodeName}`,
      organizations: ["system:nodes"],
      usages: ["server"],
      names: machine,
      requested: plan.kubeletNames,
    },
  ];
}

/** Source: kubeadm's phase kubeconfig */
export function kubeconfigs(plan: PkiPlan): KubeconfigSpec[] {
  const users: Record<KubeconfigName, { commonName: string; organizations: string[] }> = {
    admin: { commonName: "kubernetes-admin", organizations: ["system:masters"] },
    "controller-manager": { commonName: "system:kube-controller-manager", organizations: [] },
    scheduler: { commonName: "system:kube-scheduler", organizations: [] },
    kubelet: { commonName: `system:node:${plan.nodeName}`, organizations: ["system:nodes"] },
    services: { commonName: `system:coxswain-services:${plan.nodeName}`, organizations: ["system:coxswain-services"] },
  };
  return kubeconfigNames.map((name) => ({ name, ...users[name], server: plan.server(name) }));
}

/** Splits alternative names into DNS names and IP addresses. */
export function splitNames(names: readonly string[]): { dnsNames: string[]; ips: string[] } {
  const all = [...new Set(names)];
  return { dnsNames: all.filter((name) => isIP(name) === 0), ips: all.filter((name) => isIP(name) !== 0) };
}

/**
 * Objects that allow nodes to join a new cluster: ConfigMaps, and roles for bootstrap tokens. Pure. Source: kubeadm 1.23, phases
 * bootstraptoken and uploadconfig
 */
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type ClusterSettings, clusterConfiguration } from "../config/settings.ts";

export const kubeadmConfigName = "kubeadm-config";
export const kubeletConfigName = "kubelet-config-1.23";
export const clusterInfoName = "cluster-info";
export const certificatesSecretName = "kubeadm-certs";
const servicesAccountName = "coxswain-services";
export const servicesTokenName = "coxswain-services-token";

/** Group of the tokens that join nodes. */
export const nodeTokenGroup = "system:bootstrappers:kubeadm:default-node-token";

const rbac = "rbac.authorization.k8s.io";
const group = (name: string) => ({ apiGroup: rbac, kind: "Group", name });
const bootstrappers = group(nodeTokenGroup);
const nodes = group("system:nodes");

const configMap = (namespace: string, name: string, data: Record<string, string>): KubeObject =>
  ({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name }, data }) as KubeObject; // cast: a KubeObject names only the fields of all kinds

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

const clusterBinding = (name: string, role: string, subjects: readonly object[]): KubeObject =>
  ({
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: role },
    subjects,
  }) as KubeObject; // cast: a KubeObject names only the fields of all kinds

/** A role that permits to get one object, and its binding. */
function mayGet(
  namespace: string,
  name: string,
  resource: "configmaps" | "secrets",
  object: string,
  subjects: readonly object[],
): KubeObject[] {
  const rules: Rule[] = [{ apiGroups: [""], resources: [resource], resourceNames: [object], verbs: ["get"] }];
  const metadata = { namespace, name };
  const apiVersion = `${rbac}/v1`;
  return [
    { apiVersion, kind: "Role", metadata, rules } as KubeObject, // cast: a KubeObject names only the fields of all kinds
    { apiVersion, kind: "RoleBinding", metadata, roleRef: { apiGroup: rbac, kind: "Role", name }, subjects } as KubeObject, // cast: a KubeObject names only the fields of all kinds
  ];
}

/** Objects of the phase upload-config. */
export const configObjects = (cluster: ClusterSettings, kubelet: Readonly<Record<string, unknown>>): KubeObject[] => [
  configMap("kube-system", kubeadmConfigName, { ClusterConfiguration: toYaml(clusterConfiguration(cluster)) }),
  ...mayGet("kube-system", "kubeadm:nodes-kubeadm-config", "configmaps", kubeadmConfigName, [bootstrappers, nodes]),
  configMap("kube-system", kubeletConfigName, { kubelet: toYaml(kubelet) }),
  ...mayGet("kube-system", `kubeadm:${kubeletConfigName}`, "configmaps", kubeletConfigName, [nodes, bootstrappers]),
];

/** Objects of the phase bootstrap-token, except the tokens. The controller manager signs cluster-info with each token. */
export const discoveryObjects = (server: string, caPem: string): KubeObject[] => [
  clusterBinding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", [bootstrappers]),
  clusterBinding("kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", [
    bootstrappers,
  ]),
  clusterBinding(
    "kubeadm:node-autoapprove-certificate-rotation",
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    [nodes],
  ),
  {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRole",
    metadata: { name: "kubeadm:get-nodes" },
    rules: [{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }],
  } as KubeObject, // cast: a KubeObject names only the fields of all kinds
  clusterBinding("kubeadm:get-nodes", "kubeadm:get-nodes", [bootstrappers]),
  configMap("kube-public", clusterInfoName, { kubeconfig: clusterInfo(server, caPem) }),
  ...mayGet("kube-public", "kubeadm:bootstrap-signer-clusterinfo", "configmaps", clusterInfoName, [
    { apiGroup: rbac, kind: "User", name: "system:anonymous" },
  ]),
];

/** A kubeconfig that names the cluster and no user. */
function clusterInfo(server: string, caPem: string): string {
  return toYaml({
    apiVersion: "v1",
    clusters: [{ cluster: { "certificate-authority-data": Buffer.from(caPem).toString("base64"), server }, name: "" }],
    contexts: null,
    "current-context": "",
    kind: "Config",
    preferences: {},
    users: null,
  });
}

/** Allows bootstrap tokens to read the Secret with the encrypted certificates. */
export const certificatesRight = (): KubeObject[] =>
  mayGet("kube-system", "kubeadm:kubeadm-certs", "secrets", certificatesSecretName, [bootstrappers]);

/**
 * ServiceAccount for coxswain-services on nodes that join, which have no CA key to sign a client certificate. Everybody who may
 * join a node may read its token.
 */
export const servicesObjects = (): KubeObject[] => [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: "kube-system", name: servicesAccountName } },
  {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/service-account-token",
    metadata: {
      namespace: "kube-system",
      name: servicesTokenName,
      annotations: { "kubernetes.io/service-account.name": servicesAccountName },
    },
  } as KubeObject, // cast: a KubeObject names only the fields of all kinds
  ...mayGet("kube-system", "coxswain:services-token", "secrets", servicesTokenName, [bootstrappers]),
];

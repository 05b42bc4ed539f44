/** Who may read what in a new cluster, and where it stands. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { clusterSettings } from "../config/settings.ts";
import { certificatesRight, configObjects, discoveryObjects, servicesObjects } from "./bootstrap-objects.ts";

interface Right extends KubeObject {
  readonly rules?: readonly object[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string }[];
  readonly data?: Readonly<Record<string, string>>;
}

const placeOf = ({ kind, metadata: { namespace = "", name } }: KubeObject): string => `${kind} ${namespace}/${name}`;

/** What a binding grants: its role, and the names of those that have it. */
const granted = (objects: readonly KubeObject[]): string[] =>
  (objects as readonly Right[]) // cast: a KubeObject names only the fields of all kinds
    .filter(({ roleRef }) => roleRef !== undefined)
    .map(
      (one) =>
        `${placeOf(one)}: ${one.roleRef?.kind} ${one.roleRef?.name} to ${one.subjects?.map(({ kind, name }) => `${kind} ${name}`).join(", ")}`,
    );

const rulesIn = (objects: readonly KubeObject[]): (readonly [string, readonly object[]])[] =>
  (objects as readonly Right[]).flatMap((one) => (one.rules === undefined ? [] : [[placeOf(one), one.rules] as const])); // cast: as above

const get = (resource: string, name: string) => [
  { apiGroups: [""], resources: [resource], resourceNames: [name], verbs: ["get"] },
];
const joining = "Group system:bootstrappers:kubeadm:default-node-token";

test("the configurations are read by nodes and by machines that join", () => {
  const objects = configObjects(clusterSettings({ clusterName: "c1" }), { clusterDomain: "c1.local" });
  const data = (objects as readonly Right[]).flatMap((one) =>
    one.data === undefined ? [] : [[placeOf(one), one.data] as const],
  ); // cast: as above
  assert.deepEqual(
    data.map(([place, all]) => [place, Object.keys(all)]),
    [
      ["ConfigMap kube-system/kubeadm-config", ["ClusterConfiguration"]],
      ["ConfigMap kube-system/kubelet-config-1.23", ["kubelet"]],
    ],
  );
  assert.partialDeepStrictEqual(parseYaml(data[0]?.[1]["ClusterConfiguration"] ?? ""), { clusterName: "c1" });
  assert.deepEqual(parseYaml(data[1]?.[1]["kubelet"] ?? ""), { clusterDomain: "c1.local" });
  assert.deepEqual(rulesIn(objects), [
    ["Role kube-system/kubeadm:nodes-kubeadm-config", get("configmaps", "kubeadm-config")],
    ["Role kube-system/kubeadm:kubelet-config-1.23", get("configmaps", "kubelet-config-1.23")],
  ]);
  assert.deepEqual(granted(objects), [
    `RoleBinding kube-system/kubeadm:nodes-kubeadm-config: Role kubeadm:nodes-kubeadm-config to ${joining}, Group system:nodes`,
    `RoleBinding kube-system/kubeadm:kubelet-config-1.23: Role kubeadm:kubelet-config-1.23 to Group system:nodes, ${joining}`,
  ]);
});

test("cluster-info is public, and machines that join may ask for a certificate and read Nodes", () => {
  const objects = discoveryObjects("https://10.0.0.1:6443", "PEM");
  const info = (objects as readonly Right[]).find(({ data }) => data !== undefined) as Right; // cast: the assertion below
  assert.equal(placeOf(info), "ConfigMap kube-public/cluster-info");
  assert.deepEqual(parseYaml(info.data?.["kubeconfig"] ?? ""), {
    apiVersion: "v1",
    clusters: [
      {
        cluster: { "certificate-authority-data": Buffer.from("PEM").toString("base64"), server: "https://10.0.0.1:6443" },
        name: "",
      },
    ],
    contexts: null,
    "current-context": "",
    kind: "Config",
    preferences: {},
    users: null,
  });
  const requests = "system:certificates.k8s.io:certificatesigningrequests";
  assert.deepEqual(granted(objects), [
    `ClusterRoleBinding /kubeadm:kubelet-bootstrap: ClusterRole system:node-bootstrapper to ${joining}`,
    `ClusterRoleBinding /kubeadm:node-autoapprove-bootstrap: ClusterRole ${requests}:nodeclient to ${joining}`,
    `ClusterRoleBinding /kubeadm:node-autoapprove-certificate-rotation: ClusterRole ${requests}:selfnodeclient to Group system:nodes`,
    `ClusterRoleBinding /kubeadm:get-nodes: ClusterRole kubeadm:get-nodes to ${joining}`,
    "RoleBinding kube-public/kubeadm:bootstrap-signer-clusterinfo: Role kubeadm:bootstrap-signer-clusterinfo to User system:anonymous",
  ]);
  assert.deepEqual(rulesIn(objects), [
    ["ClusterRole /kubeadm:get-nodes", [{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }]],
    ["Role kube-public/kubeadm:bootstrap-signer-clusterinfo", get("configmaps", "cluster-info")],
  ]);
});

test("Secrets are read one by one: the sealed certificates, and the token of coxswain-services", () => {
  assert.deepEqual(rulesIn(certificatesRight()), [["Role kube-system/kubeadm:kubeadm-certs", get("secrets", "kubeadm-certs")]]);
  assert.deepEqual(granted(certificatesRight()), [
    `RoleBinding kube-system/kubeadm:kubeadm-certs: Role kubeadm:kubeadm-certs to ${joining}`,
  ]);
  const services = servicesObjects();
  assert.deepEqual(services.map(placeOf), [
    "ServiceAccount kube-system/coxswain-services",
    "Secret kube-system/coxswain-services-token",
    "Role kube-system/coxswain:services-token",
    "RoleBinding kube-system/coxswain:services-token",
  ]);
  assert.partialDeepStrictEqual(services[1], {
    type: "kubernetes.io/service-account-token",
    metadata: { annotations: { "kubernetes.io/service-account.name": "coxswain-services" } },
  });
  assert.deepEqual(rulesIn(services), [["Role kube-system/coxswain:services-token", get("secrets", "coxswain-services-token")]]);
  assert.deepEqual(granted(services), [
    `RoleBinding kube-system/coxswain:services-token: Role coxswain:services-token to ${joining}`,
  ]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocuments } from "./documents.ts";
import { addressIn, clusterConfiguration, clusterSettings, nodeSettings } from "./settings.ts";

const header = (kind: string): string => `apiVersion: kubeadm.k8s.io/v1beta3\nkind: ${kind}\n`;

test("a file of kubeadm's kinds is read", () => {
  const read = readDocuments(
    `${header("InitConfiguration")}nodeRegistration: {name: a, kubeletExtraArgs: {v: "2"}, taints: []}
---
${header("ClusterConfiguration")}networking: {podSubnet: 10.1.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 7
`,
    "f",
  );
  assert.deepEqual(read.InitConfiguration, { nodeRegistration: { name: "a", kubeletExtraArgs: { v: "2" }, taints: [] } });
  assert.deepEqual(read.ClusterConfiguration, { networking: { podSubnet: "10.1.0.0/16" } });
  assert.equal(read.KubeletConfiguration?.["maxPods"], 7);
});

test("fields without a value and empty documents are ignored", () => {
  const text = `---
${header("ClusterConfiguration")}networking:\netcd: {local: }\napiServer: {certSANs: , timeoutForControlPlane: }\nimageRepository:
---
${header("InitConfiguration")}nodeRegistration:\nlocalAPIEndpoint: {bindPort: }
---
`;
  const { ClusterConfiguration, InitConfiguration = {} } = readDocuments(text, "f");
  assert.deepEqual(clusterSettings(ClusterConfiguration), clusterSettings());
  const { nodeRegistration: registration, localAPIEndpoint: endpoint } = InitConfiguration;
  const facts = { hostName: "a", address: "10.0.0.1" };
  const parts = { isControlPlane: true, ...(registration && { registration }), ...(endpoint && { endpoint }) };
  assert.deepEqual(nodeSettings(parts, facts), nodeSettings({ isControlPlane: true }, facts));
});

for (const { name, text, faults } of [
  {
    name: "fields without an effect are all refused by name at once",
    text: `${header("ClusterConfiguration")}imageRepository: x\ndns: {}\netcd: {external: {endpoints: [a]}}\napiServer: {extraVolumes: []}`,
    faults: [
      /ClusterConfiguration\.imageRepository: is refused/,
      /\.dns: is refused/,
      /\.etcd\.external: is refused/,
      /\.apiServer\.extraVolumes: /,
    ],
  },
  {
    name: "a field that kubeadm does not know is refused",
    text: `${header("JoinConfiguration")}discovery: {bootstrapToken: {tokn: x}}`,
    faults: [/JoinConfiguration\.discovery\.bootstrapToken\.tokn: no such field/],
  },
  {
    name: "a value of another kind is refused",
    text: `${header("InitConfiguration")}localAPIEndpoint: {bindPort: "6443"}\nskipPhases: addon\nnodeRegistration: {kubeletExtraArgs: {v: 2}}`,
    faults: [
      /nodeRegistration\.kubeletExtraArgs: is not a map of flags/,
      /bindPort: is not a number/,
      /skipPhases: is not a list of strings/,
    ],
  },
  {
    name: "an older version is named",
    text: "apiVersion: kubeadm.k8s.io/v1beta2\nkind: InitConfiguration",
    faults: [/is of kubeadm\.k8s\.io\/v1beta2; migrate it/],
  },
  {
    name: "an entry of a list or of flags without a value is named",
    text: `${header("InitConfiguration")}bootstrapTokens: [null]\nnodeRegistration: {kubeletExtraArgs: {v: }}\nskipPhases: [null]`,
    faults: [
      /bootstrapTokens\[0\]: is not a map/,
      /kubeletExtraArgs: is not a map of flags/,
      /skipPhases: is not a list of strings/,
    ],
  },
  { name: "an unknown kind is named", text: "apiVersion: v1\nkind: Pod", faults: [/kind "Pod" is not known/] },
  {
    name: "kube-proxy has no place here",
    text: "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration",
    faults: [/KubeProxyConfiguration is refused/],
  },
  {
    name: "a kind stands once",
    text: `${header("InitConfiguration")}---\n${header("InitConfiguration")}`,
    faults: [/two documents of kind InitConfiguration/],
  },
  {
    name: "no name of an object's prototype is a field",
    text: `${header("InitConfiguration")}constructor: {}`,
    faults: [/constructor: no such field/],
  },
]) {
  test(name, () => {
    assert.throws(
      () => readDocuments(text, "f.yaml"),
      (err: Error & { exitCode?: number }) => {
        assert.equal(err.exitCode, 2);
        for (const fault of faults) assert.match(err.message, fault);
        assert.equal(err.message.split("\n").length, faults.length, err.message);
        return true;
      },
    );
  });
}

test("settings are the same after a round trip through the cluster's ConfigMap", () => {
  const settings = clusterSettings({
    controlPlaneEndpoint: "api.test",
    networking: { serviceSubnet: "10.97.0.0/16", podSubnet: "10.1.0.0/16", dnsDomain: "c.test" },
    apiServer: { certSANs: ["a"], extraArgs: { v: "2" }, timeoutForControlPlane: "1m0s" },
    etcd: { local: { dataDir: "/data", serverCertSANs: ["b"], peerCertSANs: ["c"], extraArgs: { "quota-backend-bytes": "1" } } },
    scheduler: { extraArgs: { v: "3" } },
  });
  const text = JSON.stringify(clusterConfiguration(settings));
  assert.deepEqual(clusterSettings(readDocuments(text, "f").ClusterConfiguration), settings);
  assert.equal(settings.controlPlaneEndpoint, "api.test:6443");
  assert.equal(addressIn(settings.serviceSubnet, 10), "10.97.0.10");
});

for (const [field, document] of [
  ["networking.serviceSubnet", { networking: { serviceSubnet: "x" } }],
  ["networking.podSubnet", { networking: { podSubnet: "10.0.0.0/8,x" } }],
  ["kubernetesVersion", { kubernetesVersion: "v1.24.0" }],
  ["certificatesDir", { certificatesDir: "/pki" }],
  ["etcd.local.dataDir", { etcd: { local: { dataDir: "data" } } }],
  ["apiServer.timeoutForControlPlane", { apiServer: { timeoutForControlPlane: "soon" } }],
  ["controlPlaneEndpoint", { controlPlaneEndpoint: "a/b" }],
] as const)
  test(`the error of an invalid ${field} names it`, () => {
    assert.throws(() => clusterSettings(document), {
      message: new RegExp(`^ClusterConfiguration\\.${field.replaceAll(".", "\\.")}: `),
    });
  });

test("a machine without a default route needs its address configured", () => {
  const facts = { hostName: "A", address: undefined };
  assert.throws(() => nodeSettings({ isControlPlane: true }, facts), /--apiserver-advertise-address/);
  const node = nodeSettings({ isControlPlane: true, endpoint: { advertiseAddress: "10.0.0.1" } }, facts);
  assert.deepEqual([node.name, node.bindPort, node.taints.length], ["a", 6443, 1]);
  assert.deepEqual(
    nodeSettings({ isControlPlane: true, registration: { taints: [] } }, { ...facts, address: "10.0.0.1" }).taints,
    [],
  );
});

for (const taint of [{ key: "k" }, { key: "k", effect: "Never" }, { effect: "NoSchedule" }])
  test(`the error of the taint ${JSON.stringify(taint)} names its path`, () => {
    const registration = { taints: [{ key: "a", effect: "NoSchedule" }, taint] };
    assert.throws(() => nodeSettings({ registration, isControlPlane: false }, { hostName: "a", address: "10.0.0.1" }), {
      message: /^nodeRegistration\.taints\[1\]: needs a key, and an effect/,
      exitCode: 2,
    });
  });

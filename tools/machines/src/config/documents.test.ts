import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocuments } from "./documents.ts";
import {
  addressIn,
  clusterConfiguration,
  clusterDns,
  clusterSettings,
  hostOf,
  nodeSettings,
  serverUrl,
  urlOf,
} from "./settings.ts";

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

const facts = { hostName: "Host", address: "10.0.0.1" };
const longest = `n${"a".repeat(251)}n`;
for (const [name, registration, endpoint, faults] of [
  ["the longest name", { name: longest }, {}, []],
  ["a longer name", { name: `${longest}n` }, {}, [`nodeRegistration.name: ${longest}n is not the name of a node`]],
  ["a name that ends with a dash", { name: "a-" }, {}, ["nodeRegistration.name: a- is not the name of a node"]],
  ["a name with an underscore", { name: "A_b" }, {}, ["nodeRegistration.name: a_b is not the name of a node"]],
  ["the first port", {}, { bindPort: 1 }, []],
  ["the last port", {}, { bindPort: 65_535 }, []],
  ["no port", {}, { bindPort: 0 }, ["localAPIEndpoint.bindPort: 0 is not a port"]],
  ["a port beyond the last", {}, { bindPort: 65_536 }, ["localAPIEndpoint.bindPort: 65536 is not a port"]],
  ["half a port", {}, { bindPort: 1.5 }, ["localAPIEndpoint.bindPort: 1.5 is not a port"]],
  ["an address of IPv6", {}, { advertiseAddress: "fd00::1" }, []],
  ["no address", {}, { advertiseAddress: "a.test" }, ["localAPIEndpoint.advertiseAddress: a.test is not an address"]],
  [
    "all of it",
    {
      name: "-",
      taints: [
        {},
        { key: "a", effect: "NoExecute" },
        { key: "a", effect: "PreferNoSchedule" },
        { key: "", effect: "NoSchedule" },
      ],
    },
    { bindPort: -1, advertiseAddress: "x" },
    [
      "nodeRegistration.name: - is not the name of a node",
      "localAPIEndpoint.advertiseAddress: x is not an address",
      "localAPIEndpoint.bindPort: -1 is not a port",
      "nodeRegistration.taints[0]: needs a key, and an effect of NoSchedule, PreferNoSchedule, NoExecute",
      "nodeRegistration.taints[3]: needs a key, and an effect of NoSchedule, PreferNoSchedule, NoExecute",
    ],
  ],
] as const)
  test(`a node with ${name} ${faults.length === 0 ? "is set up" : "is refused"}`, () => {
    const settings = () =>
      nodeSettings({ registration, endpoint, isControlPlane: false } as Parameters<typeof nodeSettings>[0], facts);
    if (faults.length === 0) assert.equal(settings().advertiseAddress, "advertiseAddress" in endpoint ? "fd00::1" : "10.0.0.1");
    else assert.throws(settings, { message: faults.join("\n"), exitCode: 2 });
  });

test("a machine's settings are its own, what is not said is that of the machine and of kubeadm", () => {
  assert.deepEqual(nodeSettings({ isControlPlane: true }, facts), {
    name: "host",
    criSocket: "unix:///run/containerd/containerd.sock",
    taints: [{ key: "node-role.kubernetes.io/master", effect: "NoSchedule" }],
    kubeletFlags: {},
    advertiseAddress: "10.0.0.1",
    bindPort: 6443,
  });
  assert.deepEqual(nodeSettings({ isControlPlane: false }, facts).taints, []);
  const taints = [{ key: "a", value: "b", effect: "NoExecute" }];
  const registration = { name: "One", criSocket: "/run/crio/crio.sock", taints, kubeletExtraArgs: { v: "2" } };
  assert.deepEqual(
    nodeSettings({ registration, endpoint: { advertiseAddress: "10.0.0.9", bindPort: 7443 }, isControlPlane: false }, facts),
    {
      name: "one",
      criSocket: "unix:///run/crio/crio.sock",
      taints,
      kubeletFlags: { v: "2" },
      advertiseAddress: "10.0.0.9",
      bindPort: 7443,
    },
  );
  assert.equal(
    nodeSettings({ registration: { criSocket: "npipe:////./x" }, isControlPlane: false }, facts).criSocket,
    "npipe:////./x",
  );
});

test("a cluster's settings that are not said are kubeadm's", () => {
  const defaults = {
    clusterName: "kubernetes",
    controlPlaneEndpoint: "",
    serviceSubnet: "10.96.0.0/12",
    podSubnet: "10.244.0.0/16",
    dnsDomain: "cluster.local",
    etcdDataDir: "/var/lib/etcd",
    ...{ apiServerNames: [], etcdServerNames: [], etcdPeerNames: [] },
    extraFlags: { apiServer: {}, controllerManager: {}, scheduler: {}, etcd: {} },
    timeoutMs: 240_000,
  };
  assert.deepEqual(clusterSettings(), defaults);
  assert.deepEqual(clusterConfiguration(clusterSettings()), {
    apiVersion: "kubeadm.k8s.io/v1beta3",
    kind: "ClusterConfiguration",
    clusterName: "kubernetes",
    kubernetesVersion: "v1.23.0",
    certificatesDir: "/etc/kubernetes/pki",
    networking: { serviceSubnet: "10.96.0.0/12", podSubnet: "10.244.0.0/16", dnsDomain: "cluster.local" },
    etcd: { local: { dataDir: "/var/lib/etcd" } },
    apiServer: { timeoutForControlPlane: "240s" },
    controllerManager: {},
    scheduler: {},
  });
  const { extraFlags } = clusterSettings({ controllerManager: { extraArgs: { a: "1" } }, scheduler: { extraArgs: { b: "2" } } });
  assert.deepEqual(extraFlags, { ...defaults.extraFlags, controllerManager: { a: "1" }, scheduler: { b: "2" } });
  for (const kubernetesVersion of ["v1.23.0", "1.23.17", "stable", "stable-1", "stable-1.23"])
    clusterSettings({ kubernetesVersion });
  for (const kubernetesVersion of ["v1.22.0", "v1.230.0", "v2.23.0", "stable-1.24", "latest"])
    assert.throws(() => clusterSettings({ kubernetesVersion }), {
      message: `ClusterConfiguration.kubernetesVersion: ${kubernetesVersion} is not what this archive has: v1.23.0; leave the field out`,
    });
  for (const certificatesDir of ["", "/etc/kubernetes/pki"]) clusterSettings({ certificatesDir });
  assert.throws(
    () => clusterSettings({ networking: { serviceSubnet: "a", podSubnet: "b,10.0.0.0/8,c" }, etcd: { local: { dataDir: "d" } } }),
    {
      message: [
        "networking.serviceSubnet: a is not a network",
        "networking.podSubnet: b is not a network",
        "networking.podSubnet: c is not a network",
        "etcd.local.dataDir: d is not an absolute path",
      ]
        .map((line) => `ClusterConfiguration.${line}`)
        .join("\n"),
      exitCode: 2,
    },
  );
});

for (const [controlPlaneEndpoint, want] of [
  ["api.test", "api.test:6443"],
  ["api.test:7443", "api.test:7443"],
  ["api.test:443", "api.test:443"],
  ["10.0.0.1:8443", "10.0.0.1:8443"],
  ["[fd00::1]", "[fd00::1]:6443"],
  ["[fd00::1]:8443", "[fd00::1]:8443"],
  ["api.test:70000", undefined],
  ["api.test/x", undefined],
  ["a b", undefined],
] as const)
  test(`the endpoint ${controlPlaneEndpoint} is ${want ?? "refused"}`, () => {
    if (want === undefined)
      assert.throws(() => clusterSettings({ controlPlaneEndpoint }), {
        message: `ClusterConfiguration.controlPlaneEndpoint: ${controlPlaneEndpoint} is not host:port`,
      });
    else {
      const cluster = clusterSettings({ controlPlaneEndpoint });
      assert.equal(cluster.controlPlaneEndpoint, want);
      assert.equal(serverUrl(cluster, nodeSettings({ isControlPlane: true }, facts)), `https://${want}`);
    }
  });

test("addresses of a network, of a machine and of an endpoint", () => {
  assert.equal(serverUrl(clusterSettings(), nodeSettings({ isControlPlane: true }, facts)), "https://10.0.0.1:6443");
  assert.equal(urlOf("fd00::1", 7443), "https://[fd00::1]:7443");
  assert.deepEqual(
    [addressIn("10.96.0.0/12", 1), addressIn("10.0.0.250/24", 10), addressIn("fd00::/112", 10)],
    ["10.96.0.1", "10.0.1.4", "fd00::a"],
  );
  assert.equal(clusterDns({ ...clusterSettings(), serviceSubnet: "10.97.0.0/16,fd00::/112" }), "10.97.0.10");
  assert.deepEqual(["api.test:6443", "[fd00::1]:1", "10.0.0.1:2"].map(hostOf), ["api.test", "fd00::1", "10.0.0.1"]);
});

for (const [name, text, message] of [
  ["a text", "text", "f: a document is not a map"],
  ["a list", "- a", "f: a document is not a map"],
  [
    "each document that is wrong",
    `a\n---\nkind: Pod\n---\n${header("InitConfiguration")}certificateKey: 1\n---\n[]`,
    [
      "f: a document is not a map",
      'f: kind "Pod" is not known (InitConfiguration, ClusterConfiguration, JoinConfiguration)',
      "InitConfiguration.certificateKey: is not a string",
      "f: a document is not a map",
    ].join("\n"),
  ],
  [
    "another group",
    "apiVersion: v1\nkind: InitConfiguration",
    'f: InitConfiguration has apiVersion "v1" in place of kubeadm.k8s.io/v1beta3',
  ],
  [
    "another version of the kubelet's configuration",
    "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration",
    'f: kind "KubeletConfiguration" is not known (InitConfiguration, ClusterConfiguration, JoinConfiguration)',
  ],
  [
    "a list in place of a map",
    `${header("InitConfiguration")}nodeRegistration: []`,
    "InitConfiguration.nodeRegistration: is not a map",
  ],
  [
    "a map in place of a list",
    `${header("InitConfiguration")}bootstrapTokens: {}`,
    "InitConfiguration.bootstrapTokens: is not a list",
  ],
] as const)
  test(`a file with ${name} is refused`, () => {
    assert.throws(() => readDocuments(text, "f"), { message, exitCode: 2 });
  });

test("a file that is no YAML is refused with its name", () => {
  assert.throws(() => readDocuments("a: [", "f.yaml"), { message: /^f\.yaml: ./, exitCode: 2 });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { tokensOf } from "../commands/init.ts";
import { daemonFlags, etcdFlags } from "../control-plane/flags.ts";
import { pkiPlan } from "../control-plane/pki.ts";
import { kubeletConfiguration, kubeletFlags } from "../node/kubelet-config.ts";
import { readDocuments } from "./documents.ts";
import { type Kind, kinds, type Shape } from "./fields.ts";
import { type ClusterSettings, clusterSettings, type NodeSettings, nodeSettings, serverUrl } from "./settings.ts";

/** Every field of v1beta3, those of refused structs not included. Source: cmd/kubeadm/app/apis/kubeadm/v1beta3/types.go */
const nodeRegistration = `name criSocket taints[].key taints[].value taints[].effect taints[].timeAdded kubeletExtraArgs
  ignorePreflightErrors imagePullPolicy`;
const upstream: Record<Kind, string[]> = {
  InitConfiguration: [
    ...below("bootstrapTokens[]", "token description ttl expires usages groups"),
    ...below("nodeRegistration", nodeRegistration),
    ...below("localAPIEndpoint", "advertiseAddress bindPort"),
    ...["certificateKey", "skipPhases", "patches"],
  ],
  ClusterConfiguration: [
    ...below("etcd.local", "imageRepository imageTag dataDir extraArgs serverCertSANs peerCertSANs"),
    "etcd.external",
    ...below("networking", "serviceSubnet podSubnet dnsDomain"),
    ...["kubernetesVersion", "controlPlaneEndpoint"],
    ...below("apiServer", "extraArgs extraVolumes certSANs timeoutForControlPlane"),
    ...below("controllerManager", "extraArgs extraVolumes"),
    ...below("scheduler", "extraArgs extraVolumes"),
    ...["dns", "certificatesDir", "imageRepository", "featureGates", "clusterName"],
  ],
  JoinConfiguration: [
    ...below("nodeRegistration", nodeRegistration),
    "caCertPath",
    ...below("discovery.bootstrapToken", "token apiServerEndpoint caCertHashes unsafeSkipCAVerification"),
    ...["discovery.file.kubeConfigPath", "discovery.tlsBootstrapToken", "discovery.timeout"],
    ...below("controlPlane", "localAPIEndpoint.advertiseAddress localAPIEndpoint.bindPort certificateKey"),
    ...["skipPhases", "patches"],
  ],
};

function below(path: string, names: string): string[] {
  return names.split(/\s+/).map((name) => `${path}.${name}`);
}

for (const kind of Object.keys(kinds) as Kind[]) {
  test(`every field of kubeadm's ${kind} is honoured or refused`, () => {
    const known = leaves(kinds[kind]).map(({ path }) => path);
    assert.deepEqual(known.toSorted(), upstream[kind].toSorted());
  });

  for (const { path, shape } of leaves(kinds[kind])) {
    const reason = typeof shape === "object" && "refused" in shape ? String(shape.refused) : undefined;
    if (reason === undefined) continue;
    test(`the error of ${kind}.${path} names it`, () => {
      const text = JSON.stringify({ apiVersion: "kubeadm.k8s.io/v1beta3", kind, ...documentWith(path, "x") });
      assert.throws(() => readDocuments(text, "f"), { message: `${kind}.${path.replace("[]", "[0]")}: is refused: ${reason}` });
    });
  }
}

interface Effect {
  /** Of the field, or of the list `at` that contains it. */
  readonly value: unknown;
  readonly at?: string;
  readonly seen: (machine: Configured) => unknown;
  readonly want: unknown;
}

const taint: Effect = {
  at: "nodeRegistration.taints",
  value: [{ key: "k", value: "v", effect: "NoExecute" }],
  seen: ({ kubelet }) => kubelet["register-with-taints"],
  want: "k=v:NoExecute",
};

/** By field of the first machine's file: a value, and the setting that must change with it. */
const effects: Record<string, Effect> = {
  "InitConfiguration.bootstrapTokens[].token": {
    value: "abcdef.0123456789abcdef",
    seen: ({ token }) => `${token?.id} ${token?.secret}`,
    want: "abcdef 0123456789abcdef",
  },
  "InitConfiguration.bootstrapTokens[].description": { value: "d", seen: ({ token }) => token?.description, want: "d" },
  "InitConfiguration.bootstrapTokens[].ttl": { value: "0s", seen: ({ token }) => token?.expiresMs, want: undefined },
  "InitConfiguration.bootstrapTokens[].expires": {
    value: "2100-01-01T00:00:00Z",
    seen: ({ token }) => token?.expiresMs,
    want: Date.UTC(2100, 0),
  },
  "InitConfiguration.bootstrapTokens[].usages": { value: ["signing"], seen: ({ token }) => token?.usages, want: ["signing"] },
  "InitConfiguration.bootstrapTokens[].groups": {
    value: ["system:bootstrappers:a"],
    seen: ({ token }) => token?.groups,
    want: ["system:bootstrappers:a"],
  },
  "InitConfiguration.nodeRegistration.name": {
    value: "other",
    seen: ({ kubelet }) => kubelet["hostname-override"],
    want: "other",
  },
  "InitConfiguration.nodeRegistration.criSocket": {
    value: "/run/x.sock",
    seen: ({ kubelet }) => kubelet["container-runtime-endpoint"],
    want: "unix:///run/x.sock",
  },
  "InitConfiguration.nodeRegistration.taints[].key": taint,
  "InitConfiguration.nodeRegistration.taints[].value": taint,
  "InitConfiguration.nodeRegistration.taints[].effect": taint,
  "InitConfiguration.nodeRegistration.kubeletExtraArgs": {
    value: { "max-pods": "7" },
    seen: ({ kubelet }) => kubelet["max-pods"],
    want: "7",
  },
  "InitConfiguration.localAPIEndpoint.advertiseAddress": {
    value: "10.9.9.9",
    seen: ({ apiServer, pki }) => [apiServer["advertise-address"], pki.apiserverNames.includes("10.9.9.9")],
    want: ["10.9.9.9", true],
  },
  "InitConfiguration.localAPIEndpoint.bindPort": {
    value: 7443,
    seen: ({ apiServer, url }) => [apiServer["secure-port"], url],
    want: ["7443", "https://10.0.0.1:7443"],
  },
  "ClusterConfiguration.etcd.local.dataDir": { value: "/data", seen: ({ etcd }) => etcd["data-dir"], want: "/data" },
  "ClusterConfiguration.etcd.local.extraArgs": {
    value: { "quota-backend-bytes": "1" },
    seen: ({ etcd }) => etcd["quota-backend-bytes"],
    want: "1",
  },
  "ClusterConfiguration.etcd.local.serverCertSANs": { value: ["s"], seen: ({ pki }) => pki.etcdNames.includes("s"), want: true },
  "ClusterConfiguration.etcd.local.peerCertSANs": { value: ["p"], seen: ({ pki }) => pki.etcdNames.includes("p"), want: true },
  "ClusterConfiguration.networking.serviceSubnet": {
    value: "10.97.0.0/16",
    seen: ({ apiServer, controllerManager, pki, kubeletConfig }) => [
      apiServer["service-cluster-ip-range"],
      controllerManager["service-cluster-ip-range"],
      pki.apiserverNames.includes("10.97.0.1"),
      kubeletConfig["clusterDNS"],
    ],
    want: ["10.97.0.0/16", "10.97.0.0/16", true, ["10.97.0.10"]],
  },
  "ClusterConfiguration.networking.podSubnet": {
    value: "10.1.0.0/16",
    seen: ({ controllerManager }) => controllerManager["cluster-cidr"],
    want: "10.1.0.0/16",
  },
  "ClusterConfiguration.networking.dnsDomain": {
    value: "c.test",
    seen: ({ apiServer, pki, kubeletConfig }) => [
      apiServer["service-account-issuer"],
      pki.apiserverNames.includes("kubernetes.default.svc.c.test"),
      kubeletConfig["clusterDomain"],
    ],
    want: ["https://kubernetes.default.svc.c.test", true, "c.test"],
  },
  "ClusterConfiguration.controlPlaneEndpoint": {
    value: "api.test",
    seen: ({ url, pki }) => [url, pki.apiserverNames.includes("api.test"), pki.server("admin"), pki.server("scheduler")],
    want: ["https://api.test:6443", true, "https://api.test:6443", "https://10.0.0.1:6443"],
  },
  "ClusterConfiguration.apiServer.extraArgs": { value: { v: "2" }, seen: ({ apiServer }) => apiServer["v"], want: "2" },
  "ClusterConfiguration.apiServer.certSANs": { value: ["n"], seen: ({ pki }) => pki.apiserverNames.includes("n"), want: true },
  "ClusterConfiguration.apiServer.timeoutForControlPlane": { value: "9s", seen: ({ cluster }) => cluster.timeoutMs, want: 9000 },
  "ClusterConfiguration.controllerManager.extraArgs": {
    value: { v: "3" },
    seen: ({ controllerManager }) => controllerManager["v"],
    want: "3",
  },
  "ClusterConfiguration.scheduler.extraArgs": { value: { v: "4" }, seen: ({ scheduler }) => scheduler["v"], want: "4" },
  "ClusterConfiguration.clusterName": {
    value: "n",
    seen: ({ controllerManager }) => controllerManager["cluster-name"],
    want: "n",
  },
};
/** Fields without an entry in `effects`: they change what a command does rather than the files it writes, or have refused values. */
const others = [
  "InitConfiguration.nodeRegistration.ignorePreflightErrors",
  "InitConfiguration.certificateKey",
  "InitConfiguration.skipPhases",
  "ClusterConfiguration.kubernetesVersion",
  "ClusterConfiguration.certificatesDir",
];

test("each honoured field of the first machine's file has a test of its effect", () => {
  const honoured = (["InitConfiguration", "ClusterConfiguration"] as const).flatMap((kind) =>
    leaves(kinds[kind]).flatMap(({ path, shape }) =>
      typeof shape === "object" && "refused" in shape ? [] : [`${kind}.${path}`],
    ),
  );
  assert.deepEqual([...Object.keys(effects), ...others].toSorted(), honoured.toSorted());
});

for (const [field, { value, at, seen, want }] of Object.entries(effects)) {
  test(`${field} has its effect`, () => {
    const [kind = "", ...path] = field.split(".");
    const text = JSON.stringify({ apiVersion: "kubeadm.k8s.io/v1beta3", kind, ...documentWith(at ?? path.join("."), value) });
    assert.deepEqual(seen(configured(text)), want);
    assert.notDeepEqual(seen(configured(`{"apiVersion":"kubeadm.k8s.io/v1beta3","kind":"${kind}"}`)), want);
  });
}

type Configured = ReturnType<typeof configured>;

/** The settings and files that `init` derives from a configuration file. */
function configured(text: string) {
  const { InitConfiguration = {}, ClusterConfiguration } = readDocuments(text, "f");
  const cluster: ClusterSettings = clusterSettings(ClusterConfiguration);
  const node: NodeSettings = nodeSettings(
    {
      registration: InitConfiguration.nodeRegistration ?? {},
      endpoint: InitConfiguration.localAPIEndpoint ?? {},
      isControlPlane: true,
    },
    { hostName: "host", address: "10.0.0.1" },
  );
  return {
    cluster,
    token: tokensOf(InitConfiguration, {})[0],
    kubelet: kubeletFlags(node, { cgroupDriver: undefined, hasServingCertificate: true, hostName: "host" }),
    kubeletConfig: kubeletConfiguration(cluster),
    pki: pkiPlan(cluster, node),
    url: serverUrl(cluster, node),
    etcd: etcdFlags(cluster, node, { state: "new", members: {} }),
    apiServer: daemonFlags("kube-apiserver", cluster, node),
    controllerManager: daemonFlags("kube-controller-manager", cluster, node),
    scheduler: daemonFlags("kube-scheduler", cluster, node),
  };
}

/** Fields that contain no others, as `a.b` and `a[].b`. */
function leaves(shape: Shape, path = ""): { readonly path: string; readonly shape: Shape }[] {
  if (typeof shape === "string" || ("refused" in shape && typeof shape.refused === "string")) return [{ path, shape }];
  if ("list" in shape && typeof shape.list === "object") return leaves(shape.list, `${path}[]`);
  return Object.entries(shape as Record<string, Shape>).flatMap(([name, inside]) =>
    leaves(inside, path === "" ? name : `${path}.${name}`),
  );
}

/** A document with one field. */
function documentWith(path: string, value: unknown): Record<string, unknown> {
  let document = value;
  for (const name of path.split(".").toReversed()) {
    const isList = name.endsWith("[]");
    document = { [isList ? name.slice(0, -2) : name]: isList ? [document] : document };
  }
  return document as Record<string, unknown>;
}

/** The whole command lines of a cluster's processes: one flag less or another file is another cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { daemonProcess, etcdProcess, fakeNodesProcess } from "./daemons.ts";
import { defaultChoices, newSettings, type Settings } from "./settings.ts";

const ports = {
  apiserver: 1,
  etcd: 2,
  etcdPeer: 3,
  controllerManager: 4,
  scheduler: 5,
  kubelet: 6,
  kubeletHealthz: 7,
  services: 8,
};
const choices = {
  ...defaultChoices(),
  ...{
    nodeName: "n1",
    podCidr: "10.50.0.0/20",
    serviceCidr: "10.60.0.0/24",
    auditPolicy: "p.yaml",
    etcdWithoutSync: true,
    ports,
  },
};
const settings: Settings = {
  ...newSettings("/clone", "b", "/s", choices, {}, 0),
  ...{ id: "c0ffee", bridge: "coxc0ffee", run: "/run/cox" },
};

const wanted = {
  "kube-apiserver": [
    "/clone/packages/apiserver/dist/main.js",
    "--advertise-address=10.50.0.1",
    "--allow-privileged=true",
    "--audit-log-path=/s/logs/audit.log",
    "--audit-policy-file=/clone/p.yaml",
    "--authorization-mode=Node,RBAC",
    "--client-ca-file=/s/pki/ca.crt",
    "--enable-admission-plugins=NodeRestriction",
    "--enable-bootstrap-token-auth=true",
    "--etcd-cafile=/s/pki/etcd/ca.crt",
    "--etcd-certfile=/s/pki/apiserver-etcd-client.crt",
    "--etcd-keyfile=/s/pki/apiserver-etcd-client.key",
    "--etcd-servers=https://127.0.0.1:2",
    "--kubelet-certificate-authority=/s/pki/ca.crt",
    "--kubelet-client-certificate=/s/pki/apiserver-kubelet-client.crt",
    "--kubelet-client-key=/s/pki/apiserver-kubelet-client.key",
    "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
    "--proxy-client-cert-file=/s/pki/front-proxy-client.crt",
    "--proxy-client-key-file=/s/pki/front-proxy-client.key",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-client-ca-file=/s/pki/front-proxy-ca.crt",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-username-headers=X-Remote-User",
    "--secure-port=1",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    "--service-account-key-file=/s/pki/sa.pub",
    "--service-account-signing-key-file=/s/pki/sa.key",
    "--service-cluster-ip-range=10.60.0.0/24",
    "--tls-cert-file=/s/pki/apiserver.crt",
    "--tls-private-key-file=/s/pki/apiserver.key",
    "--ui",
  ],
  "kube-controller-manager": [
    "/clone/packages/controller-manager/dist/main.js",
    "--allocate-node-cidrs=true",
    "--authentication-kubeconfig=/s/controller-manager.conf",
    "--authorization-kubeconfig=/s/controller-manager.conf",
    "--bind-address=127.0.0.1",
    "--client-ca-file=/s/pki/ca.crt",
    "--cluster-cidr=10.50.0.0/20",
    "--cluster-signing-cert-file=/s/pki/ca.crt",
    "--cluster-signing-key-file=/s/pki/ca.key",
    "--controllers=*,bootstrapsigner,tokencleaner",
    "--kubeconfig=/s/controller-manager.conf",
    "--leader-elect=true",
    "--node-cidr-mask-size=20",
    "--root-ca-file=/s/pki/ca.crt",
    "--secure-port=4",
    "--service-account-private-key-file=/s/pki/sa.key",
    "--service-cluster-ip-range=10.60.0.0/24",
    "--use-service-account-credentials=true",
  ],
  "kube-scheduler": [
    "/clone/packages/scheduler/dist/main.js",
    "--authentication-kubeconfig=/s/scheduler.conf",
    "--authorization-kubeconfig=/s/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/s/scheduler.conf",
    "--leader-elect=true",
    "--secure-port=5",
  ],
  kubelet: [
    "/clone/packages/node-agent/dist/main.js",
    "--anonymous-auth=false",
    "--authentication-token-webhook=true",
    "--authorization-mode=Webhook",
    "--cgroup-driver=cgroupfs",
    "--cgroup-root=/cox-c0ffee",
    "--client-ca-file=/s/pki/ca.crt",
    "--cluster-dns=10.60.0.10",
    "--cluster-domain=cluster.local",
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/cox/containerd.sock",
    "--fail-swap-on=false",
    "--make-iptables-util-chains=false",
    "--healthz-port=7",
    "--hostname-override=n1",
    "--kube-api-qps=50",
    "--kube-api-burst=100",
    "--kubeconfig=/s/kubelet.conf",
    "--node-ip=10.50.0.1",
    "--pod-manifest-path=/s/manifests",
    "--port=6",
    "--read-only-port=0",
    "--root-dir=/s/kubelet",
    "--tls-cert-file=/s/pki/kubelet.crt",
    "--tls-private-key-file=/s/pki/kubelet.key",
  ],
  "coxswain-services": [
    "/clone/packages/cluster-services/dist/main.js",
    "--authorization-always-allow-paths=/healthz,/healthz/*",
    "--cni-bin-dir=/usr/lib/cni",
    "--cni-conf-dir=/s/containerd/net.d",
    "--cni-data-dir=/s/containerd/ipam",
    "--cluster-cidr=10.50.0.0/20",
    "--cluster-dns=10.60.0.10",
    "--disable=*",
    "--enable=pod-network,services,dns,metrics-api,local-volumes,load-balancers,load-balancer-addresses",
    "--healthz-bind-address=",
    "--iptables-chain-prefix=COX-c0ffee-",
    "--kubeconfig=/s/services.conf",
    "--load-balancer-reserved-ports=22,10053,10262,1,2,3,4,5,6,7,8",
    "--local-volumes-dir=/s/volumes",
    "--metrics-bind-address=",
    "--node-name=n1",
    "--pod-network-bridge=coxc0ffee",
    "--pod-network-mode=host-gateway",
    "--pod-network-name=cox-c0ffee",
    "--secure-port=8",
  ],
  etcd: [
    "--name=n1",
    "--data-dir=/s/etcd",
    "--listen-client-urls=https://127.0.0.1:2",
    "--advertise-client-urls=https://127.0.0.1:2",
    "--listen-peer-urls=https://127.0.0.1:3",
    "--initial-advertise-peer-urls=https://127.0.0.1:3",
    "--initial-cluster=n1=https://127.0.0.1:3",
    "--cert-file=/s/pki/etcd/server.crt",
    "--key-file=/s/pki/etcd/server.key",
    "--trusted-ca-file=/s/pki/etcd/ca.crt",
    "--client-cert-auth=true",
    "--peer-cert-file=/s/pki/etcd/peer.crt",
    "--peer-key-file=/s/pki/etcd/peer.key",
    "--peer-trusted-ca-file=/s/pki/etcd/ca.crt",
    "--peer-client-cert-auth=true",
    "--log-level=warn",
    "--unsafe-no-fsync",
  ],
  "fake-nodes": [
    "/clone/packages/testing/dist/fake-nodes.js",
    "--kubeconfig=/s/admin.conf",
    "--nodes=3",
    "--port=6",
    "--tls-cert-file=/s/pki/kubelet.crt",
    "--tls-private-key-file=/s/pki/kubelet.key",
    "--client-ca-file=/s/pki/ca.crt",
    "--client-name=kube-apiserver-kubelet-client",
  ],
};

const processes = {
  "kube-apiserver": (given: Settings) => daemonProcess(given, "kube-apiserver"),
  "kube-controller-manager": (given: Settings) => daemonProcess(given, "kube-controller-manager"),
  "kube-scheduler": (given: Settings) => daemonProcess(given, "kube-scheduler"),
  kubelet: (given: Settings) => daemonProcess(given, "kubelet"),
  "coxswain-services": (given: Settings) => daemonProcess(given, "coxswain-services"),
  "fake-nodes": (given: Settings) => fakeNodesProcess({ ...given, fakeNodes: 3 }),
  etcd: etcdProcess,
};
const names = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "coxswain-services",
  "fake-nodes",
  "etcd",
] as const;

for (const name of names)
  test(`${name} has its flags, and none but these`, () => {
    const { args, command } = processes[name](settings);
    assert.deepEqual(args, wanted[name]);
    if (name === "etcd") assert.match(command, /\/etcd$/);
    else assert.equal(command, process.execPath);
  });

test("a setting that is off, or other, leaves out or changes its flags only", () => {
  const without = { ...settings, auditPolicy: undefined, etcdWithoutSync: false };
  const missing = (name: "kube-apiserver" | "etcd") => wanted[name].filter((arg) => !processes[name](without).args.includes(arg));
  assert.deepEqual(missing("kube-apiserver"), ["--audit-log-path=/s/logs/audit.log", "--audit-policy-file=/clone/p.yaml"]);
  assert.deepEqual(missing("etcd"), ["--unsafe-no-fsync"]);
  const { args } = processes["kube-controller-manager"]({ ...settings, fakeNodes: 1 });
  assert.deepEqual(
    args.filter((arg) => !wanted["kube-controller-manager"].includes(arg)),
    ["--allocate-node-cidrs=false"],
  );
});

test("a user's flag replaces ours of its name, and where etcd's data are follows it", () => {
  const extraArgs = { ...settings.extraArgs, etcd: ["--data-dir=/data", "--v=1"], kubelet: ["--port=9"] };
  const etcd = etcdProcess({ ...settings, extraArgs });
  assert.deepEqual([etcd.etcdData, etcdProcess(settings).etcdData], ["/data", "/s/etcd"]);
  assert.deepEqual(etcd.args, [...wanted.etcd.filter((arg) => !arg.startsWith("--data-dir=")), "--data-dir=/data", "--v=1"]);
  const kubelet = daemonProcess({ ...settings, extraArgs }, "kubelet");
  assert.deepEqual(kubelet.args, [...wanted.kubelet.filter((arg) => !arg.startsWith("--port=")), "--port=9"]);
});

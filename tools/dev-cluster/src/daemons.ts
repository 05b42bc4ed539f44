import { join } from "node:path";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { need } from "./commands.ts";
import { cniDataFolder, cniFolder, cniPlugins, containerdSocket, networkName } from "./containerd.ts";
import { kubeconfigFile, kubeletClientName, pkiFile } from "./pki.ts";
import { chainPrefix } from "./rules.ts";
import { choosesParts, servicePartsOf } from "./service-parts.ts";
import { type Settings, withExtraArgs } from "./settings.ts";
import type { ProcessSpec } from "./supervisor-state.ts";

export const daemonNames = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "coxswain-services",
] as const;
export type DaemonName = (typeof daemonNames)[number];

const packages: Readonly<Record<DaemonName, string>> = {
  "kube-apiserver": "apiserver",
  "kube-controller-manager": "controller-manager",
  "kube-scheduler": "scheduler",
  kubelet: "node-agent",
  "coxswain-services": "cluster-services",
};

/** The built JavaScript of a daemon. */
export const programOf = (settings: Settings, name: DaemonName): string =>
  join(settings.root, "packages", packages[name], "dist", "main.js");

export const auditLog = (settings: Settings): string => join(settings.state, "logs", "audit.log");

export function etcdProcess(settings: Settings): ProcessSpec {
  const { etcd, etcdPeer } = settings.ports;
  const pki = (file: string): string => pkiFile(settings, `etcd/${file}`);
  const dataFlag = "--data-dir=";
  const args = withExtraArgs(
    [
      `--name=${settings.nodeName}`,
      `${dataFlag}${join(settings.state, "etcd")}`,
      `--listen-client-urls=https://127.0.0.1:${etcd}`,
      `--advertise-client-urls=https://127.0.0.1:${etcd}`,
      `--listen-peer-urls=https://127.0.0.1:${etcdPeer}`,
      `--initial-advertise-peer-urls=https://127.0.0.1:${etcdPeer}`,
      `--initial-cluster=${settings.nodeName}=https://127.0.0.1:${etcdPeer}`,
      `--cert-file=${pki("server.crt")}`,
      `--key-file=${pki("server.key")}`,
      `--trusted-ca-file=${pki("ca.crt")}`,
      "--client-cert-auth=true",
      `--peer-cert-file=${pki("peer.crt")}`,
      `--peer-key-file=${pki("peer.key")}`,
      `--peer-trusted-ca-file=${pki("ca.crt")}`,
      "--peer-client-cert-auth=true",
      "--log-level=warn",
      ...(settings.etcdWithoutSync ? ["--unsafe-no-fsync"] : []),
    ],
    settings.extraArgs.etcd,
  );
  const etcdData = args.find((arg) => arg.startsWith(dataFlag))?.slice(dataFlag.length);
  return { name: "etcd", command: need("etcd", "etcd-server"), args, ...(etcdData !== undefined && { etcdData }) };
}

/** Command-line flags of each daemon, following kubeadm. */
export function daemonProcess(settings: Settings, name: DaemonName): ProcessSpec {
  const extra = settings.extraArgs[name].filter((arg) => name !== "coxswain-services" || !choosesParts(arg));
  const flags = withExtraArgs(flagsOf[name](settings), extra);
  const args = [programOf(settings, name), ...flags];
  // As in their systemd units: each further arena of the C library's allocator keeps some memory.
  const env = name === "coxswain-services" || name === "kubelet" ? { MALLOC_ARENA_MAX: "1" } : undefined;
  return { name, command: process.execPath, args, version: kubernetesRelease.gitVersion, ...(env !== undefined && { env }) };
}

/** Nodes without containers: one process for all of them. */
export function fakeNodesProcess(settings: Settings): ProcessSpec {
  const pki = (file: string): string => pkiFile(settings, file);
  const args = [
    join(settings.root, "packages", "testing", "dist", "fake-nodes.js"),
    `--kubeconfig=${kubeconfigFile(settings, "admin")}`,
    `--nodes=${settings.fakeNodes}`,
    `--port=${settings.ports.kubelet}`,
    `--tls-cert-file=${pki("kubelet.crt")}`,
    `--tls-private-key-file=${pki("kubelet.key")}`,
    `--client-ca-file=${pki("ca.crt")}`,
    `--client-name=${kubeletClientName}`,
  ];
  return { name: "fake-nodes", command: process.execPath, args, version: kubernetesRelease.gitVersion };
}

const flagsOf: Readonly<Record<DaemonName, (settings: Settings) => string[]>> = {
  "kube-apiserver": (settings) => {
    const pki = (file: string): string => pkiFile(settings, file);
    return [
      `--advertise-address=${settings.nodeAddress}`,
      "--allow-privileged=true",
      ...(settings.auditPolicy === undefined
        ? []
        : [`--audit-log-path=${auditLog(settings)}`, `--audit-policy-file=${settings.auditPolicy}`]),
      "--authorization-mode=Node,RBAC",
      `--client-ca-file=${pki("ca.crt")}`,
      "--enable-admission-plugins=NodeRestriction",
      "--enable-bootstrap-token-auth=true",
      `--etcd-cafile=${pki("etcd/ca.crt")}`,
      `--etcd-certfile=${pki("apiserver-etcd-client.crt")}`,
      `--etcd-keyfile=${pki("apiserver-etcd-client.key")}`,
      `--etcd-servers=https://127.0.0.1:${settings.ports.etcd}`,
      `--kubelet-certificate-authority=${pki("ca.crt")}`,
      `--kubelet-client-certificate=${pki("apiserver-kubelet-client.crt")}`,
      `--kubelet-client-key=${pki("apiserver-kubelet-client.key")}`,
      "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
      `--proxy-client-cert-file=${pki("front-proxy-client.crt")}`,
      `--proxy-client-key-file=${pki("front-proxy-client.key")}`,
      "--requestheader-allowed-names=front-proxy-client",
      `--requestheader-client-ca-file=${pki("front-proxy-ca.crt")}`,
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-username-headers=X-Remote-User",
      `--secure-port=${settings.ports.apiserver}`,
      "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
      `--service-account-key-file=${pki("sa.pub")}`,
      `--service-account-signing-key-file=${pki("sa.key")}`,
      `--service-cluster-ip-range=${settings.serviceCidr}`,
      `--tls-cert-file=${pki("apiserver.crt")}`,
      `--tls-private-key-file=${pki("apiserver.key")}`,
      "--ui",
    ];
  },
  "kube-controller-manager": (settings) => {
    const config = kubeconfigFile(settings, "controller-manager");
    return [
      // Fake nodes give their pods addresses themselves.
      `--allocate-node-cidrs=${settings.fakeNodes === 0}`,
      `--authentication-kubeconfig=${config}`,
      `--authorization-kubeconfig=${config}`,
      "--bind-address=127.0.0.1",
      `--client-ca-file=${pkiFile(settings, "ca.crt")}`,
      `--cluster-cidr=${settings.podCidr}`,
      `--cluster-signing-cert-file=${pkiFile(settings, "ca.crt")}`,
      `--cluster-signing-key-file=${pkiFile(settings, "ca.key")}`,
      "--controllers=*,bootstrapsigner,tokencleaner",
      `--kubeconfig=${config}`,
      "--leader-elect=true",
      // The only node gets the whole range, matching the CNI configuration.
      `--node-cidr-mask-size=${settings.podCidr.split("/")[1]}`,
      `--root-ca-file=${pkiFile(settings, "ca.crt")}`,
      `--secure-port=${settings.ports.controllerManager}`,
      `--service-account-private-key-file=${pkiFile(settings, "sa.key")}`,
      `--service-cluster-ip-range=${settings.serviceCidr}`,
      "--use-service-account-credentials=true",
    ];
  },
  "kube-scheduler": (settings) => {
    const config = kubeconfigFile(settings, "scheduler");
    return [
      `--authentication-kubeconfig=${config}`,
      `--authorization-kubeconfig=${config}`,
      "--bind-address=127.0.0.1",
      `--kubeconfig=${config}`,
      "--leader-elect=true",
      `--secure-port=${settings.ports.scheduler}`,
    ];
  },
  kubelet: (settings) => [
    "--anonymous-auth=false",
    "--authentication-token-webhook=true",
    "--authorization-mode=Webhook",
    "--cgroup-driver=cgroupfs",
    `--cgroup-root=/cox-${settings.id}`,
    `--client-ca-file=${pkiFile(settings, "ca.crt")}`,
    `--cluster-dns=${settings.dnsAddress}`,
    "--cluster-domain=cluster.local",
    "--container-runtime=remote",
    `--container-runtime-endpoint=unix://${containerdSocket(settings)}`,
    "--fail-swap-on=false",
    // Nothing uses those chains here, and they would remain after `down`.
    "--make-iptables-util-chains=false",
    `--healthz-port=${settings.ports.kubeletHealthz}`,
    `--hostname-override=${settings.nodeName}`,
    // The default of 5 QPS only slows down a single node.
    "--kube-api-qps=50",
    "--kube-api-burst=100",
    `--kubeconfig=${kubeconfigFile(settings, "kubelet")}`,
    `--node-ip=${settings.nodeAddress}`,
    `--pod-manifest-path=${join(settings.state, "manifests")}`,
    `--port=${settings.ports.kubelet}`,
    // Disabled: the port has no authentication.
    "--read-only-port=0",
    `--root-dir=${join(settings.state, "kubelet")}`,
    `--tls-cert-file=${pkiFile(settings, "kubelet.crt")}`,
    `--tls-private-key-file=${pkiFile(settings, "kubelet.key")}`,
  ],
  "coxswain-services": (settings) => {
    const config = kubeconfigFile(settings, "services");
    return [
      // Each part's page says whether it is ready.
      "--authorization-always-allow-paths=/healthz,/healthz/*",
      `--cni-bin-dir=${cniPlugins}`,
      `--cni-conf-dir=${cniFolder(settings)}`,
      `--cni-data-dir=${cniDataFolder(settings)}`,
      `--cluster-cidr=${settings.podCidr}`,
      `--cluster-dns=${settings.dnsAddress}`,
      "--disable=*",
      `--enable=${servicePartsOf(settings).join()}`,
      // Disabled: the port is fixed, and several clusters can run on a machine.
      "--healthz-bind-address=",
      `--iptables-chain-prefix=${chainPrefix(settings.id)}`,
      `--kubeconfig=${config}`,
      // Ports of the node's only address that load balancers must not use: those of the cluster's processes, and usual ones of
      // the machine.
      `--load-balancer-reserved-ports=${[22, 10053, 10262, ...Object.values(settings.ports)].join()}`,
      `--local-volumes-dir=${join(settings.state, "volumes")}`,
      "--metrics-bind-address=",
      `--node-name=${settings.nodeName}`,
      `--pod-network-bridge=${settings.bridge}`,
      "--pod-network-mode=host-gateway",
      `--pod-network-name=${networkName(settings)}`,
      `--secure-port=${settings.ports.services}`,
    ];
  },
};

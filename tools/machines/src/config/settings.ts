import { bigIntToIp, ipToBigInt, parseCidr, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { UsageFailure } from "../failure.ts";
import type { Document } from "./fields.ts";

export type FlagMap = Readonly<Record<string, string>>;

/** Settings common to all machines of a cluster; stored in the ConfigMap kubeadm-config, as a ClusterConfiguration. */
export interface ClusterSettings {
  readonly clusterName: string;
  /** `host:port` of a name or load balancer in front of the API servers; "": none. */
  readonly controlPlaneEndpoint: string;
  readonly serviceSubnet: string;
  readonly podSubnet: string;
  readonly dnsDomain: string;
  readonly etcdDataDir: string;
  readonly apiServerNames: readonly string[];
  readonly etcdServerNames: readonly string[];
  readonly etcdPeerNames: readonly string[];
  /** Additional flags of each daemon, by name without dashes. */
  readonly extraFlags: {
    readonly apiServer: FlagMap;
    readonly controllerManager: FlagMap;
    readonly scheduler: FlagMap;
    readonly etcd: FlagMap;
  };
  /** How long the API server may take to be ready. */
  readonly timeoutMs: number;
}

/** Settings of one machine. */
export interface NodeSettings {
  readonly name: string;
  /** `unix:///run/containerd/containerd.sock` */
  readonly criSocket: string;
  readonly taints: readonly Taint[];
  readonly kubeletFlags: FlagMap;
  readonly advertiseAddress: string;
  readonly bindPort: number;
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** Defaults that are read from the machine. */
export interface MachineFacts {
  readonly hostName: string;
  /** Address of the interface of the default route; undefined when there is none. */
  readonly address: string | undefined;
}

export const folder = "/etc/kubernetes";
export const defaultCriSocket = "unix:///run/containerd/containerd.sock";
/** Taint of control plane nodes, as kubeadm 1.23 sets it. */
const controlPlaneTaint: Taint = { key: "node-role.kubernetes.io/master", effect: "NoSchedule" };

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** @throws UsageFailure with a line for each invalid value */
export function clusterSettings(document: Document<"ClusterConfiguration"> = {}): ClusterSettings {
  const { networking = {}, etcd = {}, apiServer = {}, controllerManager = {}, scheduler = {} } = document;
  const { local = {} } = etcd;
  const faults: string[] = [];
  const refuse = (field: string, reason: string): void => void faults.push(`ClusterConfiguration.${field}: ${reason}`);
  const serviceSubnet = networking.serviceSubnet || "10.96.0.0/12";
  const podSubnet = networking.podSubnet || "10.244.0.0/16";
  if (parseCidr(serviceSubnet) === undefined) refuse("networking.serviceSubnet", `${serviceSubnet} is not a network`);
  for (const part of podSubnet.split(","))
    if (parseCidr(part) === undefined) refuse("networking.podSubnet", `${part} is not a network`);
  const version = document.kubernetesVersion ?? kubernetesRelease.gitVersion;
  if (!isOurVersion(version))
    refuse("kubernetesVersion", `${version} is not what this archive has: ${kubernetesRelease.gitVersion}; leave the field out`);
  if (![undefined, "", `${folder}/pki`].includes(document.certificatesDir))
    refuse("certificatesDir", `only ${folder}/pki is supported`);
  const dataDir = local.dataDir || "/var/lib/etcd";
  if (!dataDir.startsWith("/")) refuse("etcd.local.dataDir", `${dataDir} is not an absolute path`);
  const timeoutMs = parseDuration(apiServer.timeoutForControlPlane || "4m");
  if (timeoutMs === undefined)
    refuse("apiServer.timeoutForControlPlane", `${apiServer.timeoutForControlPlane} is not a duration such as 4m0s`);
  const endpoint = document.controlPlaneEndpoint ?? "";
  if (endpoint !== "" && endpointOf(endpoint) === undefined) refuse("controlPlaneEndpoint", `${endpoint} is not host:port`);
  if (faults.length > 0) throw new UsageFailure(faults);
  return {
    clusterName: document.clusterName || "kubernetes",
    controlPlaneEndpoint: endpoint === "" ? "" : endpointOf(endpoint)!,
    ...{ serviceSubnet, podSubnet },
    dnsDomain: networking.dnsDomain || "cluster.local",
    etcdDataDir: dataDir,
    apiServerNames: apiServer.certSANs ?? [],
    etcdServerNames: local.serverCertSANs ?? [],
    etcdPeerNames: local.peerCertSANs ?? [],
    extraFlags: {
      apiServer: apiServer.extraArgs ?? {},
      controllerManager: controllerManager.extraArgs ?? {},
      scheduler: scheduler.extraArgs ?? {},
      etcd: local.extraArgs ?? {},
    },
    timeoutMs: timeoutMs ?? 0,
  };
}

/** The inverse of {@link clusterSettings}, for the ConfigMap kubeadm-config. */
export function clusterConfiguration(settings: ClusterSettings): object {
  const { extraFlags } = settings;
  const withFlags = (flags: FlagMap): object => (Object.keys(flags).length === 0 ? {} : { extraArgs: flags });
  return {
    apiVersion: "kubeadm.k8s.io/v1beta3",
    kind: "ClusterConfiguration",
    clusterName: settings.clusterName,
    ...(settings.controlPlaneEndpoint !== "" && { controlPlaneEndpoint: settings.controlPlaneEndpoint }),
    kubernetesVersion: kubernetesRelease.gitVersion,
    certificatesDir: `${folder}/pki`,
    networking: { serviceSubnet: settings.serviceSubnet, podSubnet: settings.podSubnet, dnsDomain: settings.dnsDomain },
    etcd: {
      local: {
        dataDir: settings.etcdDataDir,
        ...withFlags(extraFlags.etcd),
        ...(settings.etcdServerNames.length > 0 && { serverCertSANs: settings.etcdServerNames }),
        ...(settings.etcdPeerNames.length > 0 && { peerCertSANs: settings.etcdPeerNames }),
      },
    },
    apiServer: {
      ...withFlags(extraFlags.apiServer),
      ...(settings.apiServerNames.length > 0 && { certSANs: settings.apiServerNames }),
      timeoutForControlPlane: `${settings.timeoutMs / 1000}s`,
    },
    controllerManager: withFlags(extraFlags.controllerManager),
    scheduler: withFlags(extraFlags.scheduler),
  };
}

interface NodeParts {
  readonly registration?: Document<"InitConfiguration">["nodeRegistration"];
  readonly endpoint?: Document<"InitConfiguration">["localAPIEndpoint"];
  readonly isControlPlane: boolean;
}

/** @throws UsageFailure */
export function nodeSettings({ registration = {}, endpoint = {}, isControlPlane }: NodeParts, facts: MachineFacts): NodeSettings {
  const faults: string[] = [];
  const name = (registration.name || facts.hostName).toLowerCase();
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    faults.push(`nodeRegistration.name: ${name} is not the name of a node`);
  const address = endpoint.advertiseAddress || facts.address || "";
  if (parseIp(address) === undefined)
    faults.push(
      address === ""
        ? "this machine has no default route, so its address is not known: give --apiserver-advertise-address"
        : `localAPIEndpoint.advertiseAddress: ${address} is not an address`,
    );
  const bindPort = endpoint.bindPort ?? 6443;
  if (!Number.isInteger(bindPort) || bindPort < 1 || bindPort > 65535)
    faults.push(`localAPIEndpoint.bindPort: ${bindPort} is not a port`);
  const socket = registration.criSocket || defaultCriSocket;
  for (const [i, { key = "", effect = "" }] of (registration.taints ?? []).entries())
    if (key === "" || !effects.includes(effect))
      faults.push(`nodeRegistration.taints[${i}]: needs a key, and an effect of ${effects.join(", ")}`);
  if (faults.length > 0) throw new UsageFailure(faults);
  const requests = registration.taints as readonly Taint[] | undefined; // cast: validated with the document
  return {
    name,
    criSocket: socket.includes("://") ? socket : `unix://${socket}`,
    taints: requests ?? (isControlPlane ? [controlPlaneTaint] : []),
    kubeletFlags: registration.kubeletExtraArgs ?? {},
    advertiseAddress: address,
    bindPort,
  };
}

const isOurVersion = (version: string): boolean => {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return (major === kubernetesRelease.major && minor === kubernetesRelease.minor) || /^stable(-1(\.23)?)?$/.test(version);
};

/** @returns `host:port`, the port 6443 where none is given; undefined for anything else */
function endpointOf(text: string): string | undefined {
  try {
    const { hostname, port, pathname } = new URL(`https://${text}`);
    return pathname === "/" ? `${hostname}:${port || (/:443$/.test(text) ? 443 : 6443)}` : undefined;
  } catch {
    return undefined;
  }
}

/** The n-th address of a network: 1 is the API server's cluster IP, 10 the cluster's DNS. */
export function addressIn(subnet: string, n: number): string {
  const { ip, family } = parseCidr(subnet)!;
  return bigIntToIp(ipToBigInt(ip) + BigInt(n), family);
}

/** Address of the cluster's DNS server for kubelets and coxswain-services. */
export const clusterDns = ({ serviceSubnet }: ClusterSettings): string => addressIn(serviceSubnet.split(",")[0]!, 10);

/** `https://10.0.0.1:6443`, `https://[fd00::1]:6443` */
export const urlOf = (address: string, port: number): string =>
  `https://${address.includes(":") ? `[${address}]` : address}:${port}`;

/** URL of the API for nodes and users: the common endpoint, else that of this machine. */
export const serverUrl = ({ controlPlaneEndpoint }: ClusterSettings, { advertiseAddress, bindPort }: NodeSettings): string =>
  controlPlaneEndpoint === "" ? urlOf(advertiseAddress, bindPort) : `https://${controlPlaneEndpoint}`;

/** The host part of `host:port`. */
export const hostOf = (endpoint: string): string => new URL(`https://${endpoint}`).hostname.replace(/^\[|\]$/g, "");

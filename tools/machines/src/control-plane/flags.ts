/** Flags of the control plane's daemons that differ between clusters. Pure. */
import { type ClusterSettings, type FlagMap, type NodeSettings, urlOf } from "../config/settings.ts";

export const controlPlaneDaemons = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
export type ControlPlaneDaemon = (typeof controlPlaneDaemons)[number];

/** Flags to add to those of the archive's unit, or to replace them. */
export function daemonFlags(daemon: ControlPlaneDaemon, cluster: ClusterSettings, node: NodeSettings): FlagMap {
  const { serviceSubnet, podSubnet, dnsDomain, clusterName, extraFlags } = cluster;
  switch (daemon) {
    case "kube-apiserver":
      return {
        "advertise-address": node.advertiseAddress,
        "secure-port": String(node.bindPort),
        "service-cluster-ip-range": serviceSubnet,
        "service-account-issuer": `https://kubernetes.default.svc.${dnsDomain}`,
        ...extraFlags.apiServer,
      };
    case "kube-controller-manager":
      return {
        "cluster-cidr": podSubnet,
        "cluster-name": clusterName,
        "service-cluster-ip-range": serviceSubnet,
        ...extraFlags.controllerManager,
      };
    case "kube-scheduler":
      return extraFlags.scheduler;
  }
}

/** Values of etcd's flags `--initial-cluster-state` and `--initial-cluster`. */
export interface InitialCluster {
  readonly state: "new" | "existing";
  /** Peer URLs by name, this member's included. */
  readonly members: Readonly<Record<string, string>>;
}

export const peerUrl = ({ advertiseAddress }: NodeSettings): string => urlOf(advertiseAddress, 2380);
const clientUrl = ({ advertiseAddress }: NodeSettings): string => urlOf(advertiseAddress, 2379);

/** Source: kubeadm's phase etcd */
export function etcdFlags(cluster: ClusterSettings, node: NodeSettings, { state, members }: InitialCluster): FlagMap {
  const pki = "/etc/kubernetes/pki/etcd";
  return {
    name: node.name,
    "data-dir": cluster.etcdDataDir,
    "advertise-client-urls": clientUrl(node),
    "listen-client-urls": `https://127.0.0.1:2379,${clientUrl(node)}`,
    "listen-metrics-urls": "http://127.0.0.1:2381",
    "initial-advertise-peer-urls": peerUrl(node),
    "listen-peer-urls": peerUrl(node),
    "initial-cluster": Object.entries(members)
      .map(([name, url]) => `${name}=${url}`)
      .join(","),
    "initial-cluster-state": state,
    "cert-file": `${pki}/server.crt`,
    "key-file": `${pki}/server.key`,
    "client-cert-auth": "true",
    "trusted-ca-file": `${pki}/ca.crt`,
    "peer-cert-file": `${pki}/peer.crt`,
    "peer-key-file": `${pki}/peer.key`,
    "peer-client-cert-auth": "true",
    "peer-trusted-ca-file": `${pki}/ca.crt`,
    "snapshot-count": "10000",
    ...cluster.extraFlags.etcd,
  };
}

import type { PkiPlan } from "@coxswain/pki/plan";
import { addressIn, type ClusterSettings, folder, hostOf, type NodeSettings, serverUrl, urlOf } from "../config/settings.ts";

/** Certificates and kubeconfigs of a control plane machine, in kubeadm's layout. Pure. */
export function pkiPlan(cluster: ClusterSettings, node: NodeSettings): PkiPlan {
  const { advertiseAddress, bindPort } = node;
  const endpoint = cluster.controlPlaneEndpoint === "" ? [] : [hostOf(cluster.controlPlaneEndpoint)];
  const local = urlOf(advertiseAddress, bindPort);
  return {
    folder,
    nodeName: node.name,
    apiserverNames: [
      addressIn(cluster.serviceSubnet.split(",")[0]!, 1),
      `kubernetes.default.svc.${cluster.dnsDomain}`,
      ...[advertiseAddress, ...endpoint, ...cluster.apiServerNames],
    ],
    etcdNames: [advertiseAddress, ...cluster.etcdServerNames, ...cluster.etcdPeerNames],
    kubeletNames: [advertiseAddress],
    kubeletClientGroups: ["system:masters"],
    // The daemons of the control plane use the API server of their own machine, as with kubeadm.
    server: (name) => (name === "controller-manager" || name === "scheduler" ? local : serverUrl(cluster, node)),
  };
}

/**
 * The configuration of `coxswain init`: from its command line and file, from an unfinished earlier init, or from the existing
 * cluster.
 */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { begunConfiguration } from "../cluster/begun-configuration.ts";
import { type StoredConfiguration, storedConfiguration } from "../cluster/stored-configuration.ts";
import type { Documents } from "../config/documents.ts";
import type { Document } from "../config/fields.ts";
import { type ClusterSettings, clusterSettings, type NodeSettings, nodeSettings, urlOf } from "../config/settings.ts";
import { ownControlPlane } from "../control-plane/own-server.ts";
import { Failure, UsageFailure } from "../failure.ts";
import { machineFacts } from "../host/facts.ts";
import { adminConf, clientBy } from "../machine.ts";
import { kubeletConfiguration } from "../node/kubelet-config.ts";
import { ownSettings } from "../node/own-settings.ts";
import { type CommonFlags, documentsOf, refuseBeside } from "./options.ts";

export interface InitFlags extends CommonFlags {
  readonly apiserverAdvertiseAddress?: string;
  readonly apiserverBindPort?: number;
  readonly apiserverCertExtraSans?: readonly string[];
  readonly certificateKey?: string;
  readonly controlPlaneEndpoint?: string;
  readonly criSocket?: string;
  readonly nodeName?: string;
  readonly podNetworkCidr?: string;
  readonly serviceCidr?: string;
  readonly serviceDnsDomain?: string;
  readonly staticPods: boolean;
  readonly token?: string;
  readonly tokenTtl?: number;
  readonly uploadCerts: boolean;
}

interface InitConfiguration {
  /** InitConfiguration of the file. */
  readonly requested: Document<"InitConfiguration">;
  readonly node: NodeSettings;
  readonly cluster: ClusterSettings;
  /** The kubelets' KubeletConfiguration. */
  readonly kubelet: Readonly<Record<string, unknown>>;
  /** Documents to store for a repeated init until the cluster has them; undefined when it has. */
  readonly begun: Documents | undefined;
}

/**
 * Settings of an existing machine or cluster that neither the command line nor the file set are kept; defaults would overwrite
 * them.
 * @throws Failure with its remedy
 */
export async function initConfiguration(flags: InitFlags): Promise<InitConfiguration> {
  const { InitConfiguration: requested = {}, JoinConfiguration, ...said } = documentsOf(flags.config);
  if (JoinConfiguration !== undefined) throw new UsageFailure(`${flags.config}: JoinConfiguration is for coxswain join`);
  if (flags.config !== undefined) refuseBeside("--config: write it into the file", besideFile(flags));
  const before = begunConfiguration();
  const present = ownControlPlane();
  if (present?.runsAs === "static pods" && !flags.staticPods)
    throw new Failure("the control plane of this machine runs as static pods: give --static-pods");
  const isSaid = said.ClusterConfiguration !== undefined || hasClusterFlags(flags);
  const own = before?.InitConfiguration ?? (present && ownSettings(present.serverFlags, present.kubeletEnvironment));
  const { nodeRegistration, localAPIEndpoint } = isSaid || own === undefined ? {} : own;
  const registration = {
    ...{ ...nodeRegistration, ...requested.nodeRegistration },
    ...given({ name: flags.nodeName, criSocket: flags.criSocket }),
  };
  const endpoint = {
    ...{ ...localAPIEndpoint, ...requested.localAPIEndpoint },
    ...given({ advertiseAddress: flags.apiserverAdvertiseAddress, bindPort: flags.apiserverBindPort }),
  };
  const node = nodeSettings({ registration, endpoint, isControlPlane: true }, machineFacts());
  const isStored = !isSaid && before === undefined && present !== undefined;
  const stored = isStored ? await ofThisCluster(node) : undefined;
  const documents: Documents = {
    ...(isSaid ? { ClusterConfiguration: clusterDocument(flags) } : before),
    ...said,
    InitConfiguration: { nodeRegistration: registration, localAPIEndpoint: endpoint },
  };
  const cluster = stored?.cluster ?? clusterSettings(documents.ClusterConfiguration);
  const { KubeletConfiguration } = documents;
  return {
    ...{ requested, node, cluster },
    kubelet:
      stored !== undefined && KubeletConfiguration === undefined
        ? stored.kubelet
        : kubeletConfiguration(cluster, KubeletConfiguration),
    begun: present === undefined || before !== undefined ? documents : undefined,
  };
}

/** Flags that are fields of the configuration file, with their values. */
const besideFile = (flags: InitFlags): Readonly<Record<string, unknown>> => ({
  "apiserver-advertise-address": flags.apiserverAdvertiseAddress,
  "apiserver-bind-port": flags.apiserverBindPort,
  ...clusterFlags(flags),
  token: flags.token,
  "token-ttl": flags.tokenTtl,
});

/** Flags about the cluster, not about this machine. */
const clusterFlags = (flags: InitFlags): Readonly<Record<string, unknown>> => ({
  "apiserver-cert-extra-sans": flags.apiserverCertExtraSans,
  "control-plane-endpoint": flags.controlPlaneEndpoint,
  "pod-network-cidr": flags.podNetworkCidr,
  "service-cidr": flags.serviceCidr,
  "service-dns-domain": flags.serviceDnsDomain,
});

const hasClusterFlags = (flags: InitFlags): boolean => Object.values(clusterFlags(flags)).some((value) => value !== undefined);

const clusterDocument = (flags: InitFlags): Document<"ClusterConfiguration"> =>
  given({
    controlPlaneEndpoint: flags.controlPlaneEndpoint,
    networking: given({
      podSubnet: flags.podNetworkCidr,
      serviceSubnet: flags.serviceCidr,
      dnsDomain: flags.serviceDnsDomain,
    }),
    apiServer: given({ certSANs: flags.apiserverCertExtraSans }),
  });

/** The object without undefined members. */
function given<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never; // cast: the entries without undefined ones
}

/** @throws Failure with its remedy when this machine's cluster does not have its stored configuration */
async function ofThisCluster({ advertiseAddress, bindPort }: NodeSettings): Promise<StoredConfiguration> {
  try {
    const client = await clientBy(adminConf, urlOf(advertiseAddress, bindPort));
    const stored = await storedConfiguration(client).finally(() => client.close());
    if (stored !== undefined) return stored;
    throw new Failure("ConfigMap kubeadm-config or kubelet-config-1.23 of kube-system is missing, or forbidden to admin.conf");
  } catch (err) {
    const why = messageOf(err).replaceAll("\n", "; ");
    throw new Failure(
      `this machine has a control plane, and what its cluster was made with is not known: ${why}. Start it (systemctl start etcd kube-apiserver), or give --config as when it was made`,
    );
  }
}

/** What `coxswain init` is to make: from its command line and file, from an attempt before it, or from the cluster that is there. */
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
  /** Of the file. */
  readonly requested: Document<"InitConfiguration">;
  readonly node: NodeSettings;
  readonly cluster: ClusterSettings;
  /** The kubelets' KubeletConfiguration. */
  readonly kubelet: Readonly<Record<string, unknown>>;
  /** What has to be kept for a repetition until the cluster has it; undefined: it has it. */
  readonly begun: Documents | undefined;
}

/**
 * What the command line and its file do not say of a machine or cluster that is there already is kept: defaults would overwrite it.
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

/** Flags that stand in a file. */
const besideFile = (flags: InitFlags): Readonly<Record<string, unknown>> => ({
  "apiserver-advertise-address": flags.apiserverAdvertiseAddress,
  "apiserver-bind-port": flags.apiserverBindPort,
  ...clusterFlags(flags),
  token: flags.token,
  "token-ttl": flags.tokenTtl,
});

/** Those that are about the cluster rather than this machine. */
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

/** Without members that are undefined. */
function given<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** @throws Failure with its remedy when the cluster of this machine does not say what it was made with */
async function ofThisCluster({ advertiseAddress, bindPort }: NodeSettings): Promise<StoredConfiguration> {
  try {
    const client = await clientBy(adminConf, urlOf(advertiseAddress, bindPort));
    const stored = await storedConfiguration(client).finally(() => client.close());
    if (stored !== undefined) return stored;
    throw new Failure("ConfigMap kubeadm-config or kubelet-config-1.23 of kube-system is missing, or forbidden to admin.conf");
  } catch (err) {
    const why = (err as Error).message.replaceAll("\n", "; ");
    throw new Failure(
      `this machine has a control plane, and what its cluster was made with is not known: ${why}. Start it (systemctl start etcd kube-apiserver), or give --config as when it was made`,
    );
  }
}

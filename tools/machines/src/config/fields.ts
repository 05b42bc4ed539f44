/**
 * The supported fields of kubeadm's configuration, and the unsupported ones with the reason. A field that is in neither does not
 * exist in kubeadm.k8s.io/v1beta3.
 * Source: cmd/kubeadm/app/apis/kubeadm/v1beta3/types.go
 */
export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "strings"
  | "flags"
  | { readonly refused: string }
  | { readonly list: Fields }
  | Fields;
export interface Fields {
  readonly [field: string]: Shape;
}

const refused = (reason: string): { readonly refused: string } => ({ refused: reason });
const noImages = refused("the control plane runs from the archive, not from images of a registry");
const noPatches = refused("units are changed by systemd's drop-ins");
const noVolumes = refused("units see the machine's folders; there are no volumes to add");

const nodeRegistration = {
  name: "string",
  criSocket: "string",
  taints: { list: { key: "string", value: "string", effect: "string", timeAdded: refused("a taint of a new node has no time") } },
  kubeletExtraArgs: "flags",
  ignorePreflightErrors: "strings",
  imagePullPolicy: noImages,
} as const;
const localAPIEndpoint = { advertiseAddress: "string", bindPort: "number" } as const;
const component = { extraArgs: "flags", extraVolumes: noVolumes } as const;

/** By kind. */
export const kinds = {
  InitConfiguration: {
    bootstrapTokens: {
      list: { token: "string", description: "string", ttl: "string", expires: "string", usages: "strings", groups: "strings" },
    },
    nodeRegistration,
    localAPIEndpoint,
    certificateKey: "string",
    skipPhases: "strings",
    patches: noPatches,
  },
  ClusterConfiguration: {
    etcd: {
      local: {
        dataDir: "string",
        extraArgs: "flags",
        serverCertSANs: "strings",
        peerCertSANs: "strings",
        imageRepository: noImages,
        imageTag: noImages,
      },
      external: refused("etcd runs on the machines of the control plane; one elsewhere is not supported by this program"),
    },
    networking: { serviceSubnet: "string", podSubnet: "string", dnsDomain: "string" },
    kubernetesVersion: "string",
    controlPlaneEndpoint: "string",
    apiServer: { ...component, certSANs: "strings", timeoutForControlPlane: "string" },
    controllerManager: component,
    scheduler: component,
    dns: refused("names are answered by coxswain-services; other servers are add-ons that you apply"),
    certificatesDir: "string",
    imageRepository: noImages,
    featureGates: refused("kubeadm's gates have no effect here; those of the daemons are extraArgs: feature-gates"),
    clusterName: "string",
  },
  JoinConfiguration: {
    nodeRegistration,
    caCertPath: "string",
    discovery: {
      bootstrapToken: {
        token: "string",
        apiServerEndpoint: "string",
        caCertHashes: "strings",
        unsafeSkipCAVerification: "boolean",
      },
      file: { kubeConfigPath: "string" },
      tlsBootstrapToken: "string",
      timeout: "string",
    },
    controlPlane: { localAPIEndpoint, certificateKey: "string" },
    skipPhases: "strings",
    patches: noPatches,
  },
} as const satisfies Readonly<Record<string, Fields>>;
export type Kind = keyof typeof kinds;

/** A document without the fields that are refused. Fields are optional, as in the file. */
type Value<S> = S extends "string"
  ? string
  : S extends "number"
    ? number
    : S extends "boolean"
      ? boolean
      : S extends "strings"
        ? readonly string[]
        : S extends "flags"
          ? Readonly<Record<string, string>>
          : S extends { readonly refused: string }
            ? never
            : S extends { readonly list: infer Entry }
              ? readonly Value<Entry>[]
              : { readonly [field in keyof S]?: Value<S[field]> };
export type Document<K extends Kind> = Value<(typeof kinds)[K]>;

import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  leaderElectionFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import {
  bool,
  duration,
  float,
  int,
  int32,
  ip,
  mapStringBool,
  string,
  stringSlice,
  text,
} from "@coxswain/apimachinery/flags/types";

/** Every flag of kube-controller-manager, under the name the user types; `wired: false` ones are parsed and warned about. */
export const flagTable = flags(
  section("Debugging", {
    "contention-profiling": bool({ wired: false, help: "Turns lock contention profiling on, if profiling is on." }),
    profiling: bool({ default: true, help: "Enables profiling through host:port/debug/pprof/." }),
  }),
  section("Generic", {
    ...leaderElectionFlags("kube-controller-manager"),
    "allocate-node-cidrs": bool({ help: "Should CIDRs for pods be given and set on the nodes." }),
    "allow-untagged-cloud": bool({
      hidden: true,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Lets the cluster run without the cluster ID on cloud instances.",
    }),
    "cidr-allocator-type": string({ default: "RangeAllocator", help: "Type of CIDR allocator." }),
    "cloud-config": string({ wired: false, help: "The path to the configuration file of the cloud provider. Empty for none." }),
    "cloud-provider": string({ help: "The provider of cloud services. Empty for none." }),
    "cloud-provider-gce-lb-src-cidrs": text("cidrs", {
      default: "130.211.0.0/22,209.85.152.0/22,209.85.204.0/22,35.191.0.0/16",
      hidden: true,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "CIDRs opened in the GCE firewall for layer 4 load balancer traffic and health checks.",
    }),
    "cluster-cidr": string({ help: "CIDR range of pods in the cluster. Needs --allocate-node-cidrs to be given." }),
    "cluster-name": string({ default: "kubernetes", wired: false, help: "The prefix of the cluster's instances." }),
    "configure-cloud-routes": bool({
      default: true,
      help: "Should CIDRs given by --allocate-node-cidrs be configured on the cloud provider.",
    }),
    "controller-start-interval": duration({ help: "Time between the starts of controllers." }),
    controllers: stringSlice({
      default: ["*"],
      help: "Controllers to enable. '*' enables all that are on by default, 'foo' enables the one named foo, '-foo' disables it.",
    }),
    "enable-leader-migration": bool({ help: "Whether controller leader migration is on." }),
    "external-cloud-volume-plugin": string({
      help: "The volume plugin to use when the cloud provider is external.",
    }),
    "feature-gates": mapStringBool({ help: "A set of key=value pairs that turn features on or off." }),
    "kube-api-burst": int32({ default: 30, help: "Burst of requests to the API server." }),
    "kube-api-content-type": string({
      default: "application/vnd.kubernetes.protobuf",
      help: "Content type of requests to the API server.",
    }),
    "kube-api-qps": float({ default: 20, help: "Requests a second to the API server." }),
    "leader-migration-config": string({
      help: "Path to the configuration file of controller leader migration; empty for the default of the component. It needs --enable-leader-migration.",
    }),
    "min-resync-period": duration({
      default: "12h0m0s",
      help: "The resync period of reflectors is random between this and twice this.",
    }),
    "node-monitor-period": duration({ default: "5s", help: "The period of syncing node status." }),
    "node-sync-period": duration({
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The period of syncing nodes from the cloud provider.",
    }),
    "route-reconciliation-period": duration({
      default: "10s",
      wired: false,
      help: "The period of reconciling routes made for nodes by the cloud provider.",
    }),
    "use-service-account-credentials": bool({
      help: "If true, each controller uses its own service account's credentials.",
    }),
  }),
  section("Service controller", {
    "concurrent-service-syncs": int32({ default: 1, wired: false, help: "Services that may be synced at once." }),
  }),
  section("Secure serving", {
    ...servingFlags({ certDir: "", securePort: 10257 }),
    "http2-max-streams-per-connection": int({
      help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
    }),
  }),
  section("Insecure serving", {
    address: ip({
      default: "0.0.0.0",
      deprecated: "it has no effect.",
      wired: false,
      help: "The IP address of the insecure port.",
    }),
    port: int({ default: 10252, deprecated: "it has no effect.", wired: false, help: "The port of unsecured access." }),
  }),
  section("Authentication", delegatedAuthenticationFlags({ toleratesLookupFailure: false })),
  section("Authorization", delegatedAuthorizationFlags),
  section("Attachdetach controller", {
    "attach-detach-reconcile-sync-period": duration({
      default: "1m0s",
      help: "How often volume attachments are reconciled. Must be more than one second; a large value may make volumes and pods disagree.",
    }),
    "disable-attach-detach-reconcile-sync": bool({
      help: "Turns the periodic reconciling of volume attachments off. This may make volumes and pods disagree.",
    }),
  }),
  section("Csrsigning controller", {
    "cluster-signing-cert-file": string({
      help: "PEM file with the certificate that issues cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
    }),
    "cluster-signing-duration": duration({
      default: "8760h0m0s",
      help: "The longest validity of signed certificates. A request may ask for less with spec.expirationSeconds.",
    }),
    "cluster-signing-key-file": string({
      help: "PEM file with the private key that signs cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
    }),
    "cluster-signing-kube-apiserver-client-cert-file": string({
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-kube-apiserver-client-key-file": string({
      help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-kubelet-client-cert-file": string({
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-kubelet-client-key-file": string({
      help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-kubelet-serving-cert-file": string({
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-kubelet-serving-key-file": string({
      help: "PEM file with the private key for the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-legacy-unknown-cert-file": string({
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "cluster-signing-legacy-unknown-key-file": string({
      help: "PEM file with the private key for the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    "experimental-cluster-signing-duration": duration({
      default: "8760h0m0s",
      hidden: true,
      deprecated: "will be removed in a future version.",
      help: "The former name of --cluster-signing-duration.",
    }),
  }),
  section("Deployment controller", {
    "concurrent-deployment-syncs": int32({
      default: 5,
      help: "Deployments that may be synced at once. More answer faster and cost more CPU and network.",
    }),
    "deployment-controller-sync-period": duration({
      default: "30s",
      deprecated: "it has no effect.",
      wired: false,
      help: "The period of syncing deployments.",
    }),
  }),
  section("Endpoint controller", {
    "concurrent-endpoint-syncs": int32({
      default: 5,
      help: "Endpoints that may be synced at once. More answer faster and cost more CPU and network.",
    }),
    "endpoint-updates-batch-period": duration({
      help: "How long endpoint updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
    }),
  }),
  section("Endpointslice controller", {
    "concurrent-service-endpoint-syncs": int32({
      default: 5,
      help: "Services whose endpoint slices may be synced at once.",
    }),
    "endpointslice-updates-batch-period": duration({
      help: "How long endpoint slice updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
    }),
    "max-endpoints-per-slice": int32({
      default: 100,
      help: "The largest number of endpoints that are added to an EndpointSlice. More make fewer and larger slices.",
    }),
  }),
  section("Endpointslicemirroring controller", {
    "mirroring-concurrent-service-endpoint-syncs": int32({
      default: 5,
      help: "Services whose endpoints may be mirrored at once.",
    }),
    "mirroring-endpointslice-updates-batch-period": duration({
      help: "How long updates of mirrored endpoint slices wait for more changes.",
    }),
    "mirroring-max-endpoints-per-subset": int32({
      default: 1000,
      help: "The largest number of endpoints that are added to an EndpointSlice by mirroring.",
    }),
  }),
  section("Ephemeralvolume controller", {
    "concurrent-ephemeralvolume-syncs": int32({
      default: 5,
      help: "Ephemeral volumes that may be synced at once.",
    }),
  }),
  section("Garbagecollector controller", {
    "concurrent-gc-syncs": int32({ default: 20, help: "Workers of the garbage collector." }),
    "enable-garbage-collector": bool({
      default: true,
      help: "Enables the generic garbage collector. Must agree between the API server and the controller manager.",
    }),
  }),
  section("Horizontalpodautoscaling controller", {
    "horizontal-pod-autoscaler-cpu-initialization-period": duration({
      default: "5m0s",
      help: "Time after a pod's start in which its CPU samples may be skipped.",
    }),
    "horizontal-pod-autoscaler-downscale-delay": duration({
      default: "5m0s",
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The former way to keep the autoscaler from scaling down too often.",
    }),
    "horizontal-pod-autoscaler-downscale-stabilization": duration({
      default: "5m0s",
      help: "How long the autoscaler looks back, so as not to scale below what it recommended in that time.",
    }),
    "horizontal-pod-autoscaler-initial-readiness-delay": duration({
      default: "30s",
      help: "Time after a pod's start in which readiness changes count as its first readiness.",
    }),
    "horizontal-pod-autoscaler-sync-period": duration({
      default: "15s",
      help: "The period of syncing the number of pods.",
    }),
    "horizontal-pod-autoscaler-tolerance": float({
      default: 0.1,
      help: "The least change of the ratio of wanted to actual metrics that makes the autoscaler act.",
    }),
    "horizontal-pod-autoscaler-upscale-delay": duration({
      default: "3m0s",
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The former way to keep the autoscaler from scaling up too often.",
    }),
    "horizontal-pod-autoscaler-use-rest-clients": bool({
      default: true,
      hidden: true,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Uses REST clients for metrics.",
    }),
  }),
  section("Namespace controller", {
    "concurrent-namespace-syncs": int32({
      default: 10,
      help: "Namespaces that may be synced at once. More finish deletions faster and cost more CPU and network.",
    }),
    "namespace-sync-period": duration({
      default: "5m0s",
      help: "The period of syncing namespace life-cycle updates.",
    }),
  }),
  section("Nodeipam controller", {
    "node-cidr-mask-size": int32({ help: "Mask size of a node's CIDR. Default is 24 for IPv4 and 64 for IPv6." }),
    "node-cidr-mask-size-ipv4": int32({
      help: "Mask size of a node's IPv4 CIDR in a dual-stack cluster. Default is 24.",
    }),
    "node-cidr-mask-size-ipv6": int32({
      help: "Mask size of a node's IPv6 CIDR in a dual-stack cluster. Default is 64.",
    }),
    "service-cluster-ip-range": string({
      help: "CIDR ranges from which cluster IPs of services are given; they must not overlap with those of nodes and pods. At most two, one of each family.",
    }),
  }),
  section("Nodelifecycle controller", {
    "deleting-pods-burst": int({ hidden: true, deprecated: "it has no effect.", wired: false, help: "Burst of node evictions." }),
    "deleting-pods-qps": float({
      default: 0.1,
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "Rate of node evictions.",
    }),
    "enable-taint-manager": bool({
      default: true,
      help: "If true, pods are evicted from nodes with NoExecute taints that they do not tolerate.",
    }),
    "large-cluster-size-threshold": int32({
      default: 50,
      help: "Number of nodes from which a cluster counts as large for evictions. In smaller ones --secondary-node-eviction-rate is taken as 0.",
    }),
    "node-eviction-rate": float({
      default: 0.1,
      help: "Nodes a second whose pods are deleted when a node fails while its zone is healthy. A zone is the whole cluster where there are none.",
    }),
    "node-monitor-grace-period": duration({
      default: "40s",
      help: "How long a running node may be silent before it is marked unhealthy. Must be several times the kubelet's status update period.",
    }),
    "node-startup-grace-period": duration({
      default: "1m0s",
      help: "How long a starting node may be silent before it is marked unhealthy.",
    }),
    "pod-eviction-timeout": duration({
      default: "5m0s",
      help: "The grace period for deleting pods on failed nodes.",
    }),
    "register-retry-count": int({
      default: 10,
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "Retries of the first node registration.",
    }),
    "secondary-node-eviction-rate": float({
      default: 0.01,
      help: "Nodes a second whose pods are deleted when a node fails while its zone is unhealthy. Taken as 0 in small clusters.",
    }),
    "unhealthy-zone-threshold": float({
      default: 0.55,
      help: "The share of nodes in a zone that must not be ready (three at least) for the zone to be unhealthy.",
    }),
  }),
  section("Persistentvolume-binder controller", {
    "enable-dynamic-provisioning": bool({
      default: true,
      help: "Enables dynamic provisioning where the environment supports it.",
    }),
    "enable-hostpath-provisioner": bool({
      help: "Enables host path provisioning when running without a cloud provider, to test and develop provisioning. Unsupported, and wrong on more than one node.",
    }),
    "flex-volume-plugin-dir": string({
      default: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
      help: "Full path of the directory in which the flex volume plugin looks for third-party plugins.",
    }),
    "pv-recycler-increment-timeout-nfs": int32({
      default: 30,
      help: "Seconds added to ActiveDeadlineSeconds of an NFS scrubber pod for each Gi.",
    }),
    "pv-recycler-minimum-timeout-hostpath": int32({
      default: 60,
      help: "Least ActiveDeadlineSeconds of a HostPath recycler pod. For development and testing only.",
    }),
    "pv-recycler-minimum-timeout-nfs": int32({
      default: 300,
      help: "Least ActiveDeadlineSeconds of an NFS recycler pod.",
    }),
    "pv-recycler-pod-template-filepath-hostpath": string({
      help: "File with the pod definition that is the template for HostPath recycling. For development and testing only.",
    }),
    "pv-recycler-pod-template-filepath-nfs": string({
      help: "File with the pod definition that is the template for NFS recycling.",
    }),
    "pv-recycler-timeout-increment-hostpath": int32({
      default: 30,
      help: "Seconds added to ActiveDeadlineSeconds of a HostPath scrubber pod for each Gi. For development and testing only.",
    }),
    "pvclaimbinder-sync-period": duration({
      default: "15s",
      help: "The period of syncing persistent volumes and claims.",
    }),
    "volume-host-allow-local-loopback": bool({
      default: true,
      wired: false,
      help: "If false, local loopback addresses are denied besides those of --volume-host-cidr-denylist.",
    }),
    "volume-host-cidr-denylist": stringSlice({
      help: "CIDR ranges of addresses that volume plugins must not use.",
    }),
  }),
  section("Podgc controller", {
    "terminated-pod-gc-threshold": int32({
      default: 12500,
      help: "How many terminated pods may exist before the garbage collector deletes some. 0 or less turns it off.",
    }),
  }),
  section("Replicaset controller", {
    "concurrent-replicaset-syncs": int32({ default: 5, help: "ReplicaSets that may be synced at once." }),
  }),
  section("Replicationcontroller", {
    "concurrent-rc-syncs": int32({ default: 5, help: "ReplicationControllers that may be synced at once." }),
  }),
  section("Resourcequota controller", {
    "concurrent-resource-quota-syncs": int32({ default: 5, help: "Resource quotas that may be synced at once." }),
    "resource-quota-sync-period": duration({
      default: "5m0s",
      help: "The period of syncing quota usage in the system.",
    }),
  }),
  section("Serviceaccount controller", {
    "concurrent-serviceaccount-token-syncs": int32({
      default: 5,
      help: "Service account tokens that may be synced at once.",
    }),
    "service-account-private-key-file": string({
      help: "File with the PEM-encoded private RSA or ECDSA key that signs service account tokens.",
    }),
  }),
  section("Statefulset controller", {
    "concurrent-statefulset-syncs": int32({ default: 5, help: "StatefulSets that may be synced at once." }),
  }),
  section("Ttl-after-finished controller", {
    "concurrent-ttl-after-finished-syncs": int32({
      default: 5,
      help: "Workers of the ttl-after-finished controller.",
    }),
  }),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
  section("Misc", {
    kubeconfig: string({ help: "Path to a kubeconfig file with authorization and location of the API server." }),
    master: string({ help: "The address of the API server; overrides any value in kubeconfig." }),
    "root-ca-file": string({
      help: "If set, this root certificate authority is put into service accounts' token secrets. Must be a valid PEM bundle.",
    }),
  }),
);
export type ControllerManagerFlags = FlagValues<typeof flagTable.table>; // durations are in milliseconds

export const kubeControllerManager: Program<typeof flagTable.table> = {
  name: "kube-controller-manager",
  description:
    "The Kubernetes controller manager runs the control loops that come with Kubernetes. A control loop watches the shared state of the cluster through the API server and makes changes that move the current state towards the desired state.",
  flags: flagTable,
};

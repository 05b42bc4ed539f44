import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  leaderElectionFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import { bool, duration, float, int, int32, ip, string, stringSlice } from "@coxswain/apimachinery/flags/types";

const atLeast =
  (least: number) =>
  (value: number): string | undefined =>
    value >= least ? undefined : `must be at least ${least}`;

const notNegative = (value: number): string | undefined => (value >= 0 ? undefined : "must not be negative");

/** Every flag of coxswain-services, by name; a section for each part that has flags. */
const flagTable = flags(
  section("Generic", {
    "apply-rights": bool({
      help: "Writes the RBAC objects of the chosen parts to the API server and exits. Needs an administrator's --kubeconfig.",
    }),
    disable: stringSlice({ help: "Parts to leave out. '*' leaves out all that --enable does not name." }),
    enable: stringSlice({ help: "Parts to run beside those that are on by default." }),
    "kube-api-burst": int32({ default: 100, help: "Burst of requests to the API server, for each part." }),
    "kube-api-content-type": string({
      default: "application/vnd.kubernetes.protobuf",
      help: "Content type of requests to the API server.",
    }),
    "kube-api-qps": float({ default: 50, help: "Requests a second to the API server, for each part." }),
    kubeconfig: string({
      help: "Path to a kubeconfig file with authorization and location of the API server. Empty: the pod's service account.",
    }),
    master: string({ help: "The address of the API server; overrides any value in kubeconfig." }),
    "node-name": string({
      defaultText: "the host name, in lower case",
      help: "The name of the Node object of this machine.",
    }),
    "print-rights": bool({
      help: "Prints the RBAC objects of the chosen parts as YAML, for kubectl apply, and exits.",
    }),
    profiling: bool({ default: true, help: "Enables profiling through host:port/debug/pprof/." }),
  }),
  section("API servers", {
    "api-proxy-port": int({
      default: 6444,
      help: "Port on 127.0.0.1 at which the part api-proxy passes connections on to an API server that works.",
    }),
    "api-proxy-servers-file": string({
      default: "/var/lib/coxswain/api-servers",
      help: "File with the addresses of API servers, one on each line, such as 192.0.2.11:6443. The part api-proxy starts by it and keeps it as the Service default/kubernetes is.",
    }),
  }),
  section("Services", {
    cleanup: bool({
      help: "Removes the rules of Services, the pod network and load balancers' addresses, also those of a process that was killed, and exits.",
    }),
    "cluster-cidr": stringSlice({
      help: "Networks of the pods of all nodes, one of each IP family. Connections from elsewhere to cluster IPs are masqueraded. Empty: those are not, and pods of other nodes are known by the Nodes' pod ranges.",
    }),
    "conntrack-tcp-timeout-close-wait": duration({
      default: "1h0m0s",
      help: "How long the kernel remembers TCP connections that only one side has closed. 0: as it is set.",
      check: notNegative,
    }),
    "conntrack-tcp-timeout-established": duration({
      default: "24h0m0s",
      help: "How long the kernel remembers established TCP connections without packets. 0: as it is set.",
      check: notNegative,
    }),
    "healthz-bind-address": string({
      default: "0.0.0.0:10256",
      help: "Address and port of the health check of the node's rules, for load balancers outside of the cluster. Plain HTTP. Empty: none.",
    }),
    "iptables-chain-prefix": string({
      default: "COX-",
      help: "Begins the name of every chain of rules, so that several clusters can share a machine.",
    }),
    "iptables-localhost-nodeports": bool({
      default: true,
      help: "Whether node ports answer on 127.0.0.1. It makes the kernel route that network; a rule keeps others from it.",
    }),
    "iptables-masquerade-bit": int32({
      default: 14,
      help: "The bit of the packet mark that requests masquerading. Within [0, 31].",
    }),
    "iptables-sync-period": duration({
      default: "30s",
      help: "How often it is checked that the kernel's rules are still there.",
      check: (ms) => (ms > 0 ? undefined : "must be greater than 0"),
    }),
    "metrics-bind-address": string({
      default: "127.0.0.1:10249",
      help: "Address and port of /metrics and /proxyMode as kube-proxy has them. Plain HTTP without authentication. Empty: none.",
    }),
    "masquerade-all": bool({ help: "Masquerades all connections to cluster IPs." }),
    "nodeport-addresses": stringSlice({
      help: "Networks of the node's addresses that node ports answer on. Empty: all addresses.",
    }),
  }),
  section("Pod network", {
    "cni-bin-dir": stringSlice({
      default: ["/usr/lib/cni", "/opt/cni/bin"],
      help: "Folders in which the CNI plugins bridge, host-local and portmap are looked for.",
    }),
    "cni-conf-dir": string({
      default: "/etc/cni/net.d",
      help: "Folder of the container runtime's CNI configurations. If it contains the configuration of another pod network, that one is used.",
    }),
    "cni-data-dir": string({
      default: "/var/lib/cni/networks",
      help: "Folder in which the CNI plugin host-local keeps the addresses that are taken.",
    }),
    "pod-network-bridge": string({ default: "cox0", help: "Name of the bridge of the node's pods, at most 12 characters." }),
    "pod-network-mode": string({
      default: "auto",
      help: "How packets reach the pods of other nodes. host-gateway: by a route to the node, which must be in a network of one of this node's interfaces. vxlan: in VXLAN. auto: the first where it is possible, else the second.",
    }),
    "pod-network-mtu": int32({
      help: "MTU of the pods' interfaces. 0: that of the node's interface, less 50 or 70 bytes for VXLAN unless the mode is host-gateway.",
    }),
    "pod-network-name": string({ default: "coxswain", help: "Name of the network in the CNI configuration." }),
    "pod-network-vxlan-id": int32({ default: 99, help: "VXLAN network identifier, the same on all nodes." }),
    "pod-network-vxlan-port": int32({ default: 8472, help: "UDP port of VXLAN, the same on all nodes." }),
  }),
  section("DNS", {
    "cluster-dns": string({
      defaultText: "the tenth address of the service range",
      help: "The cluster IP of the Service kube-system/kube-dns, as in the kubelets' --cluster-dns.",
    }),
    "cluster-domain": string({
      default: "cluster.local",
      help: "Domain of the cluster's names, as in the kubelets' --cluster-domain.",
    }),
    "dns-client-cidrs": stringSlice({
      help: "Networks whose clients are answered, beside the nodes' addresses and pod ranges.",
    }),
    "dns-port": int({ default: 10053, help: "Port for DNS on the node's addresses; the Service has port 53." }),
    "resolv-conf": string({ default: "/etc/resolv.conf", help: "File with the name servers for all other names." }),
  }),
  section("Ingress", {
    "ingress-connections-per-client": int({
      default: 1000,
      help: "Most connections of one address. Many users can have the same one.",
      check: atLeast(1),
    }),
    "ingress-http-port": int({ default: 80, help: "Port for HTTP on all addresses of the node." }),
    "ingress-https-port": int({ default: 443, help: "Port for HTTPS on all addresses of the node." }),
    "ingress-idle-timeout": duration({
      default: "10m",
      help: "Longest silence of a request's or response's body, of a connection and of a WebSocket.",
      check: atLeast(1),
    }),
    "ingress-max-body-bytes": int({
      help: "Largest body of a request. 0: unlimited; bodies are streamed, never buffered entirely.",
      check: atLeast(0),
    }),
    "ingress-response-timeout": duration({
      default: "1m",
      help: "How long a backend may take to begin its response.",
      check: atLeast(1),
    }),
  }),
  section("Load balancers", {
    "load-balancer-pool": stringSlice({
      help: "Addresses for Services of type LoadBalancer: networks, ranges (192.0.2.10-192.0.2.20) and single ones, in a network of the nodes. Empty: Services get the nodes' addresses.",
    }),
    "load-balancer-reserved-ports": stringSlice({
      default: ["22", "2379-2381", "6443", "8472", "10053", "10248-10262"],
      help: "Ports of the nodes' addresses that no Service of type LoadBalancer gets, beside those of the kubelets.",
    }),
  }),
  section("Local volumes", {
    "local-volumes-dir": string({
      default: "/var/lib/coxswain/volumes",
      help: "Folder that contains a folder for each volume of the StorageClass local.",
    }),
  }),
  section("Metrics API", {
    "kubelet-certificate-authority": string({
      defaultText: "the authority in the kubeconfig",
      help: "File with the authorities of the kubelets' serving certificates.",
    }),
    "kubelet-insecure-tls": bool({ help: "Does not verify the kubelets' serving certificates." }),
    "metrics-api-port": int({ default: 10262, help: "Port of the metrics API on the node's address." }),
  }),
  section("Leader election", leaderElectionFlags("coxswain-services")),
  section("Secure serving", {
    ...servingFlags({ certDir: "", securePort: 10261 }),
    "bind-address": ip({
      default: "127.0.0.1",
      help: "The IP address on which to listen for --secure-port. 0.0.0.0 or ::: all interfaces.",
    }),
    "http2-max-streams-per-connection": int({
      help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
    }),
  }),
  section("Authentication", delegatedAuthenticationFlags({ toleratesLookupFailure: true })),
  section("Authorization", delegatedAuthorizationFlags),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
);
export type ServicesFlags = FlagValues<typeof flagTable.table>; // durations arrive as milliseconds

export const coxswainServices: Program<typeof flagTable.table> = {
  name: "coxswain-services",
  description:
    "The services that pods of a cluster expect and that no control-plane daemon gives, in one process on each node. Each is a part that can be left out and replaced by another program: --enable and --disable. A part that fails is started again and does not affect the others.",
  flags: flagTable,
};

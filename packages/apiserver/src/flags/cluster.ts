import { rule } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int, portRange, string, stringSlice, text } from "@coxswain/apimachinery/flags/types";

/** The cluster around the server: nodes, services, cloud. */

const positive = rule<number>(
  "more than 0",
  (value) => value > 0,
  (value, name) => `${name} should be a positive number, but value '${value}' provided`,
);
const isPort = (port: number): boolean => port >= 0 && port <= 65_535;

export const cloudFlags = {
  "cloud-config": string({ help: "The path to the configuration file of the cloud provider. Empty for none." }),
  "cloud-provider": string({
    wired: false,
    help: "The provider of cloud services: none is built in. Empty or external for none.",
  }),
  "cloud-provider-gce-l7lb-src-cidrs": text("cidrs", {
    default: "130.211.0.0/22,35.191.0.0/16",
    wired: false,
    help: "CIDRs opened in the GCE firewall for layer 7 load balancer traffic and health checks.",
  }),
  "cloud-provider-gce-lb-src-cidrs": text("cidrs", {
    default: "130.211.0.0/22,209.85.152.0/22,209.85.204.0/22,35.191.0.0/16",
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "CIDRs opened in the GCE firewall for layer 4 load balancer traffic and health checks.",
  }),
};

export const miscFlags = {
  "allow-privileged": bool({ help: "If true, allow privileged containers." }),
  "apiserver-count": int({
    default: 1,
    must: positive,
    help: "The number of API servers running in the cluster, must be positive. (In use when --endpoint-reconciler-type=master-count.)",
  }),
  "enable-aggregator-routing": bool({
    help: "Routes aggregator requests to endpoint addresses instead of the cluster IP.",
  }),
  "enable-logs-handler": bool({
    default: true,
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "If true, serves /logs.",
  }),
  "endpoint-reconciler-type": string({
    default: "lease",
    must: rule(
      "master-count, lease, none",
      (type) => ["master-count", "lease", "none"].includes(type),
      (type, name) => `${name}: unknown endpoint reconciler type: ${type}`,
    ),
    help: "Which endpoint reconciler to use: master-count, lease or none.",
  }),
  "event-ttl": duration({ default: "1h0m0s", help: "How long events are kept." }),
  "identity-lease-duration-seconds": int({
    default: 3600,
    must: positive,
    help: "Duration in seconds of the lease that identifies an API server; must be positive. (In use when the APIServerIdentity gate is on.)",
  }),
  "identity-lease-renew-interval-seconds": int({
    default: 10,
    must: positive,
    help: "Interval in seconds at which an API server renews its lease; must be positive. (In use when the APIServerIdentity gate is on.)",
  }),
  "kubelet-certificate-authority": string({ help: "Path to a file with the certificate authority of kubelets." }),
  "kubelet-client-certificate": string({
    help: "Path to a client certificate file for connections to kubelets.",
  }),
  "kubelet-client-key": string({ help: "Path to a client key file for connections to kubelets." }),
  "kubelet-https": bool({
    default: true,
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Uses HTTPS for connections to kubelets.",
  }),
  "kubelet-port": int({
    default: 10250,
    hidden: true,
    deprecated: "will be removed in a future version.",
    help: "The kubelets' port for nodes that do not say theirs.",
  }),
  "kubelet-preferred-address-types": stringSlice({
    default: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
    help: "Which of a node's addresses to use for connections to its kubelet, best first.",
  }),
  "kubelet-read-only-port": int({
    default: 10255,
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "The kubelets' read-only port.",
  }),
  "kubelet-timeout": duration({ default: "5s", help: "Time limit of operations on kubelets." }),
  "kubernetes-service-node-port": int({
    must: rule(
      "0 to 65535",
      isPort,
      (port, name) =>
        `${name} ${port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP`,
    ),
    help: "If not zero, the kubernetes Service has type NodePort with this port. If zero, it has type ClusterIP.",
  }),
  "master-service-namespace": string({
    default: "default",
    deprecated: "will be removed in a future version.",
    idle: "upstream's does nothing either",
    help: "The namespace from which the kubernetes services are put into pods.",
  }),
  "max-connection-bytes-per-sec": int({
    help: "If not zero, limits each user connection to this number of bytes a second. Only for long-running requests at present.",
  }),
  "proxy-client-cert-file": string({
    help: "Client certificate that proves the identity of the aggregator or the API server when it calls out during a request: to aggregated servers and to webhook admission plugins.",
  }),
  "proxy-client-key-file": string({
    help: "Private key of the client certificate that proves the identity of the aggregator or the API server when it calls out during a request.",
  }),
  "service-cluster-ip-range": string({
    help: "CIDR ranges from which cluster IPs of services are given; they must not overlap with those of nodes and pods. At most two, one of each family.",
  }),
  "service-node-port-range": portRange({
    default: "30000-32767",
    help: "The range of ports for services with NodePort visibility, both ends included.",
  }),
};

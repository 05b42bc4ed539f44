import { settingOf } from "@coxswain/apimachinery/flags/settings";
import { leaderElectionFlags } from "@coxswain/apimachinery/flags/shared-flags";
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

/** The program itself: API server, leader election, which controllers run. */

export const debuggingFlags = {
  "contention-profiling": bool({ wired: false, help: "Turns lock contention profiling on, if profiling is on." }),
  profiling: bool({ default: true, help: "Enables profiling through host:port/debug/pprof/." }),
};

export const genericSettings = {
  controllerStartIntervalMs: duration({ flag: "controller-start-interval", help: "Time between the starts of controllers." }),
  burst: int32({ flag: "kube-api-burst", default: 30, help: "Burst of requests to the API server." }),
  contentType: string({
    flag: "kube-api-content-type",
    default: "application/vnd.kubernetes.protobuf",
    help: "Content type of requests to the API server.",
  }),
  qps: float({ flag: "kube-api-qps", default: 20, help: "Requests a second to the API server." }),
  minResyncPeriodMs: duration({
    flag: "min-resync-period",
    default: "12h0m0s",
    help: "The resync period of reflectors is random between this and twice this.",
  }),
  useServiceAccountCredentials: bool({
    flag: "use-service-account-credentials",
    help: "If true, each controller uses its own service account's credentials.",
  }),
};

export const serverSettings = {
  kubeconfig: string({
    flag: "kubeconfig",
    help: "Path to a kubeconfig file with authorization and location of the API server.",
  }),
  master: string({ flag: "master", help: "The address of the API server; overrides any value in kubeconfig." }),
};

export const cloudSettings = {
  provider: string({ flag: "cloud-provider", help: "The provider of cloud services. Empty for none." }),
  volumePlugin: string({
    flag: "external-cloud-volume-plugin",
    help: "The volume plugin to use when the cloud provider is external.",
  }),
  configureRoutes: bool({
    flag: "configure-cloud-routes",
    default: true,
    help: "Should CIDRs given by --allocate-node-cidrs be configured on the cloud provider.",
  }),
};

/** Flags of the nodeipam controller, which --help lists in this group. */
export const nodeCidrSettings = {
  allocates: bool({ flag: "allocate-node-cidrs", help: "Should CIDRs for pods be given and set on the nodes." }),
  allocatorType: string({ flag: "cidr-allocator-type", default: "RangeAllocator", help: "Type of CIDR allocator." }),
  clusterCidrs: string({
    flag: "cluster-cidr",
    help: "CIDR range of pods in the cluster. Needs --allocate-node-cidrs to be given.",
  }),
};

export const nodeMonitorSettings = {
  monitorPeriodMs: duration({ flag: "node-monitor-period", default: "5s", help: "The period of syncing node status." }),
};

const flags = leaderElectionFlags("kube-controller-manager");

export const leaderElectionSettings = {
  enabled: settingOf(flags, "leader-elect"),
  leaseDurationMs: settingOf(flags, "leader-elect-lease-duration"),
  renewDeadlineMs: settingOf(flags, "leader-elect-renew-deadline"),
  retryPeriodMs: settingOf(flags, "leader-elect-retry-period"),
  resourceLock: settingOf(flags, "leader-elect-resource-lock"),
  resourceName: settingOf(flags, "leader-elect-resource-name"),
  resourceNamespace: settingOf(flags, "leader-elect-resource-namespace"),
};

export const genericFlags = {
  "allow-untagged-cloud": bool({
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "Lets the cluster run without the cluster ID on cloud instances.",
  }),
  "cloud-config": string({ wired: false, help: "The path to the configuration file of the cloud provider. Empty for none." }),
  "cloud-provider-gce-lb-src-cidrs": text("cidrs", {
    default: "130.211.0.0/22,209.85.152.0/22,209.85.204.0/22,35.191.0.0/16",
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "CIDRs opened in the GCE firewall for layer 4 load balancer traffic and health checks.",
  }),
  "cluster-name": string({ default: "kubernetes", wired: false, help: "The prefix of the cluster's instances." }),
  controllers: stringSlice({
    default: ["*"],
    help: "Controllers to enable. '*' enables all that are on by default, 'foo' enables the one named foo, '-foo' disables it.",
  }),
  "enable-leader-migration": bool({ help: "Whether controller leader migration is on." }),
  "feature-gates": mapStringBool({ help: "A set of key=value pairs that turn features on or off." }),
  "leader-migration-config": string({
    help: "Path to the configuration file of controller leader migration; empty for the default of the component. It needs --enable-leader-migration.",
  }),
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
};

export const insecureServingFlags = {
  address: ip({
    default: "0.0.0.0",
    deprecated: "it has no effect.",
    wired: false,
    help: "The IP address of the insecure port.",
  }),
  port: int({ default: 10252, deprecated: "it has no effect.", wired: false, help: "The port of unsecured access." }),
};

export const miscFlags = {
  "root-ca-file": string({
    help: "If set, this root certificate authority is put into service accounts' token secrets. Must be a valid PEM bundle.",
  }),
};

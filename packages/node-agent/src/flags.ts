import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { klogIsLeaving, loggingFlags } from "@coxswain/apimachinery/flags/shared-flags";
import {
  bool,
  duration,
  int,
  int32,
  ip,
  mapStringBool,
  mapStringString,
  multiMap,
  namedCertKeys,
  quantity,
  string,
  stringSlice,
  text,
} from "@coxswain/apimachinery/flags/types";

/** All kubelet flags by name; those with `wired: false` are parsed and produce a warning. */
export const flagTable = flags(
  section("Kubelet", {
    address: ip({
      default: "0.0.0.0",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The IP address of the insecure port.",
    }),
    "allowed-unsafe-sysctls": stringSlice({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Unsafe sysctls or patterns (ending in *) that pods may use. Use at your own risk.",
    }),
    "anonymous-auth": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Enables anonymous requests. Requests that no other method rejects are treated as anonymous: user system:anonymous, group system:unauthenticated.",
    }),
    "application-metrics-count-limit": int({
      default: 100,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Number of application metrics to keep for each container.",
    }),
    "authentication-token-webhook": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Asks the TokenReview API whether bearer tokens are valid.",
    }),
    "authentication-token-webhook-cache-ttl": duration({
      default: "2m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How long answers of the token webhook are kept.",
    }),
    "authorization-mode": string({
      default: "AlwaysAllow",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Authorization plugins in the order they are asked. Known ones: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.",
    }),
    "authorization-webhook-cache-authorized-ttl": duration({
      default: "5m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How long 'authorized' answers of the webhook authorizer are kept.",
    }),
    "authorization-webhook-cache-unauthorized-ttl": duration({
      default: "30s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How long 'unauthorized' answers of the webhook authorizer are kept.",
    }),
    "azure-container-registry-config": string({
      wired: false,
      help: "Path to the file with the configuration of the Azure container registry.",
    }),
    "boot-id-file": string({
      default: "/proc/sys/kernel/random/boot_id",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Files to look for the boot ID in, comma separated.",
    }),
    "bootstrap-kubeconfig": string({
      help: "Path to a kubeconfig file to get a client certificate with, used when the file of --kubeconfig does not exist.",
    }),
    "cert-dir": string({
      default: "/var/lib/kubelet/pki",
      help: "The directory where the TLS certificates are located. If --tls-cert-file and --tls-private-key-file are given, it is not used.",
    }),
    "cgroup-driver": string({
      default: "cgroupfs",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The driver that the kubelet manipulates cgroups of the host with. Possible values: 'cgroupfs', 'systemd'.",
    }),
    "cgroup-root": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Root cgroup of pods, as far as the runtime can honour it. Empty: the runtime's default.",
    }),
    "cgroups-per-qos": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Creates a cgroup hierarchy by quality of service; pods' cgroups are below it.",
    }),
    "client-ca-file": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "If set, a request with a client certificate signed by one of the authorities in this file is authenticated as the certificate's CommonName.",
    }),
    "cloud-config": string({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The path to the configuration file of the cloud provider. Empty for none.",
    }),
    "cloud-provider": string({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The provider of cloud services. Empty for none.",
    }),
    "cluster-dns": stringSlice({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Addresses of DNS servers for pods with dnsPolicy=ClusterFirst, comma separated.",
    }),
    "cluster-domain": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Domain of the cluster. If set, containers search it besides the host's domains.",
    }),
    "cni-bin-dir": string({
      default: "/opt/cni/bin",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Full paths of directories to look for CNI plugin binaries in, comma separated. Only for the docker runtime.",
    }),
    "cni-cache-dir": string({
      default: "/var/lib/cni/cache",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Full path of the directory in which CNI keeps its cache. Only for the docker runtime.",
    }),
    "cni-conf-dir": string({
      default: "/etc/cni/net.d",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Full path of the directory to look for CNI configuration files in. Only for the docker runtime.",
    }),
    config: string({ help: "The path to the configuration file." }),
    "container-hints": string({
      default: "/etc/cadvisor/container_hints.json",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The file of container hints.",
    }),
    "container-log-max-files": int32({
      default: 5,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The largest number of log files of a container, at least 2. Only for a remote runtime.",
    }),
    "container-log-max-size": string({
      default: "10Mi",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The size at which a container's log file is rotated (10Mi, say). Only for a remote runtime.",
    }),
    "container-runtime": string({
      default: "docker",
      help: "The container runtime to use. Possible values: 'docker', 'remote'.",
    }),
    "container-runtime-endpoint": string({
      default: "unix:///var/run/dockershim.sock",
      help: "The endpoint of the remote runtime service: a unix socket.",
    }),
    containerd: string({
      default: "/run/containerd/containerd.sock",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The endpoint of containerd.",
    }),
    "containerd-namespace": string({
      default: "k8s.io",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The namespace of containerd.",
    }),
    "contention-profiling": bool({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Turns lock contention profiling on, if profiling is on.",
    }),
    "cpu-cfs-quota": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Enforces CPU limits of containers by CFS quota.",
    }),
    "cpu-cfs-quota-period": duration({
      default: "100ms",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The period of CFS quota, cpu.cfs_period_us.",
    }),
    "cpu-manager-policy": string({
      default: "none",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The CPU manager's policy. Possible values: 'none', 'static'.",
    }),
    "cpu-manager-policy-options": mapStringString({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "key=value options that refine the CPU manager's policy.",
    }),
    "cpu-manager-reconcile-period": duration({
      default: "10s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The period in which the CPU manager reconciles.",
    }),
    docker: string({
      default: "unix:///var/run/docker.sock",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The endpoint of docker.",
    }),
    "docker-endpoint": string({
      default: "unix:///var/run/docker.sock",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The docker endpoint to talk to.",
    }),
    "docker-env-metadata-whitelist": string({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Environment variables of docker containers to collect.",
    }),
    "docker-only": bool({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Only reports docker containers.",
    }),
    "docker-root": string({
      default: "/var/lib/docker",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The root of docker.",
    }),
    "docker-tls": bool({ deprecated: "will be removed in a future version.", wired: false, help: "Uses TLS to talk to docker." }),
    "docker-tls-ca": string({
      default: "ca.pem",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Trusted authority of docker's TLS.",
    }),
    "docker-tls-cert": string({
      default: "cert.pem",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Client certificate of docker's TLS.",
    }),
    "docker-tls-key": string({
      default: "key.pem",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Private key of docker's TLS.",
    }),
    "dynamic-config-dir": string({
      deprecated:
        "Feature DynamicKubeletConfig is deprecated in 1.22 and will not move to GA. It is planned to be removed from Kubernetes in the version 1.24 or later. Please use alternative ways to update kubelet configuration.",
      help: "The directory in which configurations are kept that the node's spec.configSource names. Needs the feature gate DynamicKubeletConfig.",
    }),
    "enable-controller-attach-detach": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Lets the attach/detach controller manage the volumes of pods on this node, instead of the kubelet.",
    }),
    "enable-debugging-handlers": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Enables server endpoints for log collection and for running containers and commands.",
    }),
    "enable-load-reader": bool({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Turns the CPU load reader on.",
    }),
    "enable-server": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Enables the kubelet's server.",
    }),
    "enforce-node-allocatable": stringSlice({
      default: ["pods"],
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "What of node allocatable the kubelet enforces: 'none', 'pods', 'system-reserved', 'kube-reserved'. The last two need --system-reserved-cgroup and --kube-reserved-cgroup.",
    }),
    "event-burst": int32({
      default: 10,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Burst of event records, while they stay below --event-qps on average. Must be >= 0. If 0, the default (10) is used.",
    }),
    "event-qps": int32({
      default: 5,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Limit of events a second. If 0, the default (5) is used.",
    }),
    "event-storage-age-limit": string({
      default: "default=0",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "How long events of each type are kept.",
    }),
    "event-storage-event-limit": string({
      default: "default=0",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "How many events of each type are kept.",
    }),
    "eviction-hard": mapStringString({
      default: { "imagefs.available": "15%", "memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%" },
      separator: "<",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Thresholds (memory.available<1Gi, say) that, when met, evict a pod at once.",
    }),
    "eviction-max-pod-grace-period": int32({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Longest grace period in seconds of pods ended by a soft threshold. Negative: the pod's own value.",
    }),
    "eviction-minimum-reclaim": mapStringString({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Least amounts (imagefs.available=2Gi, say) that are reclaimed when a resource is short.",
    }),
    "eviction-pressure-transition-period": duration({
      default: "5m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How long the kubelet waits before it leaves a pressure condition.",
    }),
    "eviction-soft": mapStringString({
      separator: "<",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Thresholds (memory.available<1.5Gi, say) that evict a pod when met over their grace period.",
    }),
    "eviction-soft-grace-period": mapStringString({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Grace periods (memory.available=1m30s, say) for how long a soft threshold must be met before a pod is evicted.",
    }),
    "exit-on-lock-contention": bool({ help: "Whether the kubelet ends when somebody else takes the lock file." }),
    "experimental-allocatable-ignore-eviction": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "When true, hard eviction thresholds are left out of node allocatable.",
    }),
    "experimental-bootstrap-kubeconfig": string({
      deprecated: "will be removed in a future version.",
      help: "The former name of --bootstrap-kubeconfig.",
    }),
    "experimental-check-node-capabilities-before-mount": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "[Experimental] Checks that the node has what a mount needs before it mounts.",
    }),
    "experimental-dockershim-root-directory": string({
      default: "/var/lib/dockershim",
      hidden: true,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Root directory of dockershim.",
    }),
    "experimental-kernel-memcg-notification": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Uses the kernel's memory cgroup notification for eviction thresholds instead of polling.",
    }),
    "experimental-log-sanitization": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "[Experimental] When on, keeps fields tagged as sensitive (passwords, keys, tokens) out of logs.",
    }),
    "experimental-mounter-path": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "[Experimental] Path of the mounter binary. Empty: the default mount.",
    }),
    "fail-swap-on": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Makes the kubelet fail to start when swap is on.",
    }),
    "feature-gates": mapStringBool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "A set of key=value pairs that turn features on or off.",
    }),
    "file-check-frequency": duration({
      default: "20s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How often configuration files are looked at for new data.",
    }),
    "global-housekeeping-interval": duration({
      default: "1m0s",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Time between global housekeepings.",
    }),
    "hairpin-mode": string({
      default: "promiscuous-bridge",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How hairpin packets are set up, so that a service's endpoints can reach themselves through it. Possible values: 'promiscuous-bridge', 'hairpin-veth', 'none'.",
    }),
    "healthz-bind-address": ip({
      default: "127.0.0.1",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The address of the health server. 0.0.0.0 or ::: all interfaces.",
    }),
    "healthz-port": int32({
      default: 10248,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The port of the local health endpoint. 0 turns it off.",
    }),
    "hostname-override": string({
      help: "If given, it is the node's name instead of the host's. With a cloud provider, the provider decides.",
    }),
    "housekeeping-interval": duration({ default: "10s", wired: false, help: "Time between container housekeepings." }),
    "http-check-frequency": duration({
      default: "20s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How often HTTP is looked at for new data.",
    }),
    "image-credential-provider-bin-dir": string({
      help: "The directory of the binaries of credential provider plugins.",
    }),
    "image-credential-provider-config": string({
      help: "The file with the configuration of credential provider plugins.",
    }),
    "image-gc-high-threshold": int32({
      default: 85,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The percentage of disk usage above which images are always collected, from 0 to 100. 100 turns it off.",
    }),
    "image-gc-low-threshold": int32({
      default: 80,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The percentage of disk usage below which images are never collected: what collection aims at, from 0 to 100. At most --image-gc-high-threshold.",
    }),
    "image-pull-progress-deadline": duration({
      default: "1m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "If there is no progress of a pull in this time, it is given up. Only for the docker runtime.",
    }),
    "image-service-endpoint": string({
      help: "The endpoint of the remote image service. Empty: that of --container-runtime-endpoint.",
    }),
    "iptables-drop-bit": int32({
      default: 15,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The bit of the fwmark space that marks packets to drop, from 0 to 31.",
    }),
    "iptables-masquerade-bit": int32({
      default: 14,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The bit of the fwmark space that marks packets for SNAT, from 0 to 31. Must be the same as kube-proxy's.",
    }),
    "keep-terminated-pod-volumes": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Keeps volumes of ended pods mounted on the node, to debug them.",
    }),
    "kernel-memcg-notification": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Uses the kernel's memory cgroup notification for eviction thresholds instead of polling.",
    }),
    "kube-api-burst": int32({
      default: 10,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Burst of requests to the API server.",
    }),
    "kube-api-content-type": string({
      default: "application/vnd.kubernetes.protobuf",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Content type of requests to the API server.",
    }),
    "kube-api-qps": int32({
      default: 5,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Requests a second to the API server.",
    }),
    "kube-reserved": mapStringString({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Resources reserved for Kubernetes' own components, as name=quantity pairs (cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000).",
    }),
    "kube-reserved-cgroup": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Absolute name of the top cgroup of Kubernetes' own components, for --kube-reserved.",
    }),
    kubeconfig: string({ help: "Path to a kubeconfig file with authorization and location of the API server." }),
    "kubelet-cgroups": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Absolute name of the cgroup to make and run the kubelet in.",
    }),
    "lock-file": string({ help: "The path of the file that the kubelet locks." }),
    "log-cadvisor-usage": bool({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Logs cAdvisor's own usage.",
    }),
    "log-json-info-buffer-size": quantity({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "[Experimental] In JSON format with split streams, info messages may be kept back up to this size, for speed. 0 turns it off.",
    }),
    "log-json-split-stream": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "[Experimental] In JSON format, error messages go to stderr and info messages to stdout.",
    }),
    "machine-id-file": string({
      default: "/etc/machine-id,/var/lib/dbus/machine-id",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Files to look for the machine ID in, comma separated.",
    }),
    "make-iptables-util-chains": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "If true, the kubelet makes sure that the iptables utility rules are there.",
    }),
    "manifest-url": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "URL of further pod specifications to run.",
    }),
    "manifest-url-header": multiMap({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "HTTP headers to send to --manifest-url, as 'a:hello,b:again'. Headers with one name are added up.",
    }),
    "master-service-namespace": string({
      default: "default",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The namespace from which the kubernetes services are put into pods.",
    }),
    "max-open-files": int({
      default: 1000000,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Number of files that the kubelet process may open.",
    }),
    "max-pods": int32({
      default: 110,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Number of pods that can run on this kubelet.",
    }),
    "maximum-dead-containers": int32({
      default: -1,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The largest number of old container instances to keep in all. Negative: no limit.",
    }),
    "maximum-dead-containers-per-container": int32({
      default: 1,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The largest number of old instances of a container to keep.",
    }),
    "memory-manager-policy": string({
      default: "None",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The memory manager's policy. Possible values: 'None', 'Static'.",
    }),
    "minimum-container-ttl-duration": duration({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Least age of an ended container before it is collected.",
    }),
    "minimum-image-ttl-duration": duration({
      default: "2m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Least age of an unused image before it is collected.",
    }),
    "network-plugin": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "The name of the network plugin for events of pods. Only for the docker runtime.",
    }),
    "network-plugin-mtu": int32({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "The MTU to give to the network plugin. 0: the default, 1460. Only for the docker runtime.",
    }),
    "node-ip": string({
      help: "IP address of the node, or an IPv4 and an IPv6 address. If unset, the default interface's; '::' prefers IPv6.",
    }),
    "node-labels": mapStringString({
      help: "Labels to add when the node registers, as key=value pairs. Labels in kubernetes.io must begin with an allowed prefix or be one of the allowed ones.",
    }),
    "node-status-max-images": int32({
      default: 50,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The largest number of images in node status. -1: no cap.",
    }),
    "node-status-update-frequency": duration({
      default: "10s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How often node status is sent. Must fit the controller manager's --node-monitor-grace-period.",
    }),
    "non-masquerade-cidr": string({
      default: "10.0.0.0/8",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      wired: false,
      help: "Traffic to addresses outside of this range is masqueraded. 0.0.0.0/0: never.",
    }),
    "oom-score-adj": int32({
      default: -999,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The kubelet's own oom_score_adj, from -1000 to 1000.",
    }),
    "pod-cidr": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The range of pod addresses, in standalone mode only. In cluster mode it comes from the API server.",
    }),
    "pod-infra-container-image": string({
      default: "k8s.gcr.io/pause:3.6",
      help: "The image that image collection never removes, because the runtime's pods stand on it.",
    }),
    "pod-manifest-path": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Path to the directory with static pod files to run, or to one of them. Files that begin with a dot are ignored.",
    }),
    "pod-max-pids": int({
      default: -1,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The largest number of processes in a pod. -1: the node's allocatable.",
    }),
    "pods-per-core": int32({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Number of pods for each core; never more than --max-pods. 0: no such limit.",
    }),
    port: int32({
      default: 10250,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The port of unsecured access.",
    }),
    "protect-kernel-defaults": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "If true, kernel tunables that differ from the kubelet's defaults are an error; otherwise it changes them.",
    }),
    "provider-id": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Unique identifier of the machine for the cloud provider.",
    }),
    "qos-reserved": mapStringString({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "[Alpha] Percentages of resources (memory only) reserved at the level of quality of service, as name=percentage pairs.",
    }),
    "read-only-port": int32({
      default: 10255,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The port that is served without authentication or authorization. 0 turns it off.",
    }),
    "really-crash-for-testing": bool({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "If true, panics cause crashes. For testing.",
    }),
    "register-node": bool({
      default: true,
      help: "Registers the node with the API server. Without --kubeconfig it does nothing.",
    }),
    "register-schedulable": bool({
      default: true,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Registers the node as schedulable. Without --register-node it does nothing.",
    }),
    "register-with-taints": text("[]api.Taint", {
      help: "Registers the node with these taints, as <key>=<value>:<effect>, comma separated. Without --register-node it does nothing.",
    }),
    "registry-burst": int32({
      default: 10,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Burst of image pulls, while they stay below --registry-qps on average. Only used if --registry-qps > 0.",
    }),
    "registry-qps": int32({
      default: 5,
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Limit of image pulls a second. 0: no limit.",
    }),
    "reserved-cpus": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "CPUs reserved for the system and Kubernetes, as a list or ranges. It replaces the cpu of --system-reserved and --kube-reserved.",
    }),
    "reserved-memory": stringSlice({
      help: "Memory reserved for each NUMA node, for the Static memory manager: '<node>:<type>=<quantity>[,<type>=<quantity>]', semicolon separated.",
    }),
    "resolv-conf": string({
      default: "/etc/resolv.conf",
      deprecated: "will be removed in a future version.",
      help: "Resolver configuration of containers' DNS.",
    }),
    "root-dir": string({
      default: "/var/lib/kubelet",
      help: "The directory of the kubelet's files (volume mounts and others).",
    }),
    "rotate-certificates": bool({
      deprecated: "will be removed in a future version.",
      help: "Renews client certificates from the API server when they come near their end.",
    }),
    "rotate-server-certificates": bool({
      deprecated: "will be removed in a future version.",
      help: "Asks for and renews serving certificates from the API server. Needs the gate RotateKubeletServerCertificate and somebody who approves them.",
    }),
    runonce: bool({
      deprecated: "will be removed in a future version.",
      help: "If true, ends after it ran the pods of local manifests or remote URLs. Excludes --enable-server.",
    }),
    "runtime-cgroups": string({ wired: false, help: "Absolute name of the cgroup to make and run the runtime in." }),
    "runtime-request-timeout": duration({
      default: "2m0s",
      deprecated: "will be removed in a future version.",
      help: "Time limit of runtime requests but long-running ones (pull, logs, exec, attach).",
    }),
    "seccomp-default": bool({
      help: "Uses RuntimeDefault as the default seccomp profile. Needs the gate SeccompDefault.",
    }),
    "serialize-image-pulls": bool({
      default: true,
      deprecated: "will be removed in a future version.",
      help: "Pulls images one at a time.",
    }),
    "storage-driver-buffer-duration": duration({
      default: "1m0s",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "How long writes to the storage driver are kept back.",
    }),
    "storage-driver-db": string({
      default: "cadvisor",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Name of the database.",
    }),
    "storage-driver-host": string({
      default: "localhost:8086",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "host:port of the database.",
    }),
    "storage-driver-password": string({
      default: "root",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Password of the database.",
    }),
    "storage-driver-secure": bool({
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Uses a secure connection to the database.",
    }),
    "storage-driver-table": string({
      default: "stats",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "Name of the table.",
    }),
    "storage-driver-user": string({
      default: "root",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "User of the database.",
    }),
    "streaming-connection-idle-timeout": duration({
      default: "4h0m0s",
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "How long streaming connections may be idle before they are closed. 0: for ever.",
    }),
    "sync-frequency": duration({
      default: "1m0s",
      deprecated: "will be removed in a future version.",
      help: "Longest time between the syncs of running containers with their configuration.",
    }),
    "system-cgroups": string({
      deprecated: "will be removed in a future version.",
      help: "Absolute name of the cgroup for processes that are in no container yet. Empty: none.",
    }),
    "system-reserved": mapStringString({
      deprecated: "will be removed in a future version.",
      help: "Resources reserved for what is not Kubernetes, as name=quantity pairs (cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000).",
    }),
    "system-reserved-cgroup": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Absolute name of the top cgroup of what is not Kubernetes, for --system-reserved.",
    }),
    "tls-cert-file": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "File with the x509 certificate for HTTPS (with the authority's after it). If neither it nor --tls-private-key-file is given, a self-signed pair is made for the public address and kept in --cert-dir.",
    }),
    "tls-cipher-suites": stringSlice({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Cipher suites of the server. If absent, the runtime's defaults are used.",
    }),
    "tls-min-version": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Least TLS version. Possible values: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.",
    }),
    "tls-private-key-file": string({
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "File with the x509 private key that belongs to --tls-cert-file.",
    }),
    "tls-sni-cert-key": namedCertKeys({
      help: "A pair of certificate and key files, with domain patterns after them if wanted: fully qualified names, with a wildcard as first part perhaps. Without patterns the certificate's names are used. Exact names win over wildcards, patterns over names of the certificate. Repeat the flag for several pairs.",
    }),
    "topology-manager-policy": string({
      default: "none",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The topology manager's policy. Possible values: 'none', 'best-effort', 'restricted', 'single-numa-node'.",
    }),
    "topology-manager-scope": string({
      default: "container",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "The scope of topology hints. Possible values: 'container', 'pod'.",
    }),
    "volume-plugin-dir": string({
      default: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "Full path of the directory to look for third-party volume plugins in.",
    }),
    "volume-stats-agg-period": duration({
      default: "1m0s",
      deprecated: "This parameter should be set via the config file specified by the Kubelet's --config flag.",
      help: "How often disk usage of pods and volumes is worked out and kept. 0 or less turns it off.",
    }),
  }),
  section("Metrics", metricsFlags),
  section("Logs", {
    ...loggingFlags,
    "experimental-logging-sanitization": { ...loggingFlags["experimental-logging-sanitization"], deprecated: klogIsLeaving },
    "logging-format": { ...loggingFlags["logging-format"], deprecated: klogIsLeaving },
  }),
);
export type KubeletFlags = FlagValues<typeof flagTable.table>; // durations arrive as milliseconds

export const kubelet: Program<typeof flagTable.table> = {
  name: "kubelet",
  description:
    "The kubelet is the agent that runs on each node. It registers the node with the API server under the host's name, a name given by a flag, or one from the cloud provider. It works on pod specifications: YAML or JSON objects that describe pods. It takes them from the API server, and also from files (a directory checked every 20 seconds) and from an HTTP endpoint, and makes sure that the containers they describe run and are healthy. It does not manage containers that Kubernetes did not create.",
  unsectioned: true,
  flags: flagTable,
};

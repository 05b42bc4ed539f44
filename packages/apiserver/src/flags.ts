import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { loggingFlags, servingFlags } from "@coxswain/apimachinery/flags/shared-flags";
import {
  bool,
  duration,
  float,
  int,
  ip,
  mapStringBool,
  mapStringString,
  portRange,
  string,
  stringSlice,
  text,
} from "@coxswain/apimachinery/flags/types";

/** Every flag of kube-apiserver, under the name the user types; `wired: false` ones are parsed and warned about. */
export const flagTable = flags(
  section("Generic", {
    "advertise-address": ip({
      help: "The IP address on which to advertise the API server to members of the cluster. If blank, --bind-address is used; if that is unspecified, the address of the default interface.",
    }),
    "cors-allowed-origins": stringSlice({
      help: "Origins that CORS allows, as regular expressions. Empty: CORS is off.",
    }),
    "enable-priority-and-fairness": bool({
      default: true,
      help: "If true and the APIPriorityAndFairness gate is on, replaces the max-in-flight limit with queues that are served fairly by priority.",
    }),
    "external-hostname": string({ help: "The hostname to use in URLs that the server makes for itself." }),
    "feature-gates": mapStringBool({ help: "A set of key=value pairs that turn features on or off." }),
    "goaway-chance": float({
      help: "Chance that a request of an HTTP/2 client is answered with GOAWAY, so that it opens a new connection, perhaps to another server. From 0 (off) to .02.",
    }),
    "http2-max-streams-per-connection": int({
      help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
    }),
    "livez-grace-period": duration({
      help: "The longest time that start-up may take, as /livez sees it. Until then, unfinished start-up hooks do not make it unhealthy.",
    }),
    "max-mutating-requests-inflight": int({
      default: 200,
      help: "The largest number of mutating requests in flight at a time. Beyond it requests are rejected. 0 for no limit.",
    }),
    "max-requests-inflight": int({
      default: 400,
      help: "The largest number of non-mutating requests in flight at a time. Beyond it requests are rejected. 0 for no limit.",
    }),
    "min-request-timeout": int({
      default: 1800,
      help: "The least number of seconds a handler must keep a request open before it times it out. At present only watches honour it: each takes a random time above it, to spread the load.",
    }),
    "request-timeout": duration({
      default: "1m0s",
      help: "How long a handler may keep a request open before it times it out. Long-running requests may have a limit of their own, --min-request-timeout.",
    }),
    "shutdown-delay-duration": duration({
      help: "How long the server goes on to serve after it was asked to end; /readyz fails meanwhile, so that load balancers look elsewhere.",
    }),
    "shutdown-send-retry-after": bool({
      help: "If true, the server answers new requests with 429 and a Retry-After header while it ends, after it has stopped to listen.",
    }),
    "strict-transport-security-directives": stringSlice({
      help: "Directives of the HSTS header. Empty: no header.",
    }),
    "target-ram-mb": int({
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "Memory limit of the server in MB, from which cache sizes were derived.",
    }),
  }),
  section("Etcd", {
    "default-watch-cache-size": int({
      default: 100,
      help: "Default size of watch caches. 0 turns the watch cache off for resources that have no size of their own.",
    }),
    "delete-collection-workers": int({
      default: 1,
      help: "Number of workers of a DeleteCollection call; they speed up namespace cleanup.",
    }),
    "deserialization-cache-size": int({
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "Number of deserialized objects to keep in memory.",
    }),
    "enable-garbage-collector": bool({
      default: true,
      help: "Enables the generic garbage collector. Must agree between the API server and the controller manager.",
    }),
    "encryption-provider-config": string({ help: "File with the configuration of encryption providers for secrets in etcd." }),
    "etcd-cafile": string({ help: "Certificate authority file that secures communication with etcd." }),
    "etcd-certfile": string({ help: "Certificate file that secures communication with etcd." }),
    "etcd-compaction-interval": duration({
      default: "5m0s",
      help: "The interval of compaction requests. 0 turns compaction by the API server off.",
    }),
    "etcd-count-metric-poll-period": duration({
      default: "1m0s",
      help: "How often etcd is asked for the number of objects of each resource. 0 turns the metric off.",
    }),
    "etcd-db-metric-poll-interval": duration({
      default: "30s",
      help: "How often etcd is asked for its size. 0 turns the metric off.",
    }),
    "etcd-healthcheck-timeout": duration({ default: "2s", help: "Time limit of the check of etcd's health." }),
    "etcd-keyfile": string({ help: "Key file that secures communication with etcd." }),
    "etcd-prefix": string({ default: "/registry", help: "The prefix of all keys in etcd." }),
    "etcd-servers": stringSlice({ help: "etcd servers to connect to (scheme://ip:port), comma separated." }),
    "etcd-servers-overrides": stringSlice({
      help: "etcd servers for single resources, comma separated: group/resource#servers, where servers are URLs, semicolon separated.",
    }),
    "experimental-encryption-provider-config": string({
      hidden: true,
      deprecated: "will be removed in a future version.",
      help: "The former name of --encryption-provider-config.",
    }),
    "lease-reuse-duration-seconds": int({
      default: 60,
      help: "How long in seconds each etcd lease is used again. A low value could make many leases, which slows etcd down.",
    }),
    "storage-backend": string({ help: "The storage backend for persistence. Options: 'etcd3' (default)." }),
    "storage-media-type": string({
      default: "application/vnd.kubernetes.protobuf",
      help: "The media type of objects in storage. Some resources support only one, and ignore this.",
    }),
    "watch-cache": bool({ default: true, help: "Turns watch caching on in the API server." }),
    "watch-cache-sizes": stringSlice({
      help: "Watch cache sizes of single resources, comma separated: resource[.group]#size. 0 turns the cache of a resource off; other values are dropped, since the size follows from use, but events then have a cache.",
    }),
  }),
  section("Secure serving", servingFlags({ certDir: "/var/run/kubernetes", securePort: 6443 })),
  section("Insecure serving", {
    address: ip({
      default: "127.0.0.1",
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The IP address of the insecure port.",
    }),
    "insecure-bind-address": ip({
      default: "127.0.0.1",
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The IP address of the insecure port.",
    }),
    "insecure-port": int({
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "The port of unsecured, unauthenticated access.",
    }),
    port: int({ hidden: true, deprecated: "it has no effect.", wired: false, help: "The port of unsecured access." }),
  }),
  section("Auditing", {
    "audit-log-batch-buffer-size": int({
      default: 10000,
      help: "The size of the buffer of events before batching and writing. Only used in batch mode.",
    }),
    "audit-log-batch-max-size": int({ default: 1, help: "The largest size of a batch. Only used in batch mode." }),
    "audit-log-batch-max-wait": duration({
      help: "How long to wait before a batch that has not reached its largest size is written. Only used in batch mode.",
    }),
    "audit-log-batch-throttle-burst": int({
      help: "How many requests may be sent at once when throttling was not used before. Only used in batch mode.",
    }),
    "audit-log-batch-throttle-enable": bool({ help: "Whether batches are throttled. Only used in batch mode." }),
    "audit-log-batch-throttle-qps": float({
      help: "Largest average number of batches a second. Only used in batch mode.",
    }),
    "audit-log-compress": bool({ help: "If set, rotated log files are compressed with gzip." }),
    "audit-log-format": string({
      default: "json",
      help: "Format of saved audits: 'legacy' is one line of text for each event, 'json' structured JSON.",
    }),
    "audit-log-maxage": int({
      help: "The largest number of days to keep old audit log files, by the date in their name.",
    }),
    "audit-log-maxbackup": int({ help: "The largest number of old audit log files to keep. 0 means no limit." }),
    "audit-log-maxsize": int({ help: "The size in megabytes at which the audit log file is rotated." }),
    "audit-log-mode": string({
      default: "blocking",
      help: "Strategy for sending audit events: blocking answers wait for the write, batch writes in the background, blocking-strict fails the request when its first event cannot be written. Known modes are batch,blocking,blocking-strict.",
    }),
    "audit-log-path": string({
      help: "If set, all requests to the API server are logged to this file. '-' means standard out.",
    }),
    "audit-log-truncate-enabled": bool({ help: "Whether events and batches are cut." }),
    "audit-log-truncate-max-batch-size": int({
      default: 10485760,
      help: "Largest size in bytes of a batch sent to the backend; a larger one is split.",
    }),
    "audit-log-truncate-max-event-size": int({
      default: 102400,
      help: "Largest size in bytes of an event; the first request and response are left out of a larger one, and if it is still too large it is dropped.",
    }),
    "audit-log-version": string({
      default: "audit.k8s.io/v1",
      help: "API group and version used for serializing audit events written to log.",
    }),
    "audit-policy-file": string({ help: "Path to the file that defines the audit policy." }),
    "audit-webhook-batch-buffer-size": int({
      default: 10000,
      help: "The size of the buffer of events before batching and sending. Only used in batch mode.",
    }),
    "audit-webhook-batch-initial-backoff": duration({
      default: "10s",
      hidden: true,
      deprecated: "will be removed in a future version.",
      help: "How long to wait before the first retry of a failed request.",
    }),
    "audit-webhook-batch-max-size": int({
      default: 400,
      help: "The largest size of a batch. Only used in batch mode.",
    }),
    "audit-webhook-batch-max-wait": duration({
      default: "30s",
      help: "How long to wait before a batch that has not reached its largest size is sent. Only used in batch mode.",
    }),
    "audit-webhook-batch-throttle-burst": int({
      default: 15,
      help: "How many requests may be sent at once when throttling was not used before. Only used in batch mode.",
    }),
    "audit-webhook-batch-throttle-enable": bool({
      default: true,
      help: "Whether batches are throttled. Only used in batch mode.",
    }),
    "audit-webhook-batch-throttle-qps": float({
      default: 10,
      help: "Largest average number of batches a second. Only used in batch mode.",
    }),
    "audit-webhook-config-file": string({
      help: "Path to a kubeconfig file with the configuration of the audit webhook.",
    }),
    "audit-webhook-initial-backoff": duration({
      default: "10s",
      help: "How long to wait before the first retry of a failed request.",
    }),
    "audit-webhook-mode": string({
      default: "batch",
      help: "Strategy for sending audit events: blocking answers wait for the webhook, batch sends in the background. Known modes are batch,blocking,blocking-strict.",
    }),
    "audit-webhook-truncate-enabled": bool({ help: "Whether events and batches are cut." }),
    "audit-webhook-truncate-max-batch-size": int({
      default: 10485760,
      help: "Largest size in bytes of a batch sent to the backend; a larger one is split.",
    }),
    "audit-webhook-truncate-max-event-size": int({
      default: 102400,
      help: "Largest size in bytes of an event; the first request and response are left out of a larger one, and if it is still too large it is dropped.",
    }),
    "audit-webhook-version": string({
      default: "audit.k8s.io/v1",
      help: "API group and version used for serializing audit events sent to the webhook.",
    }),
  }),
  section("Features", {
    "contention-profiling": bool({ wired: false, help: "Turns lock contention profiling on, if profiling is on." }),
    "enable-swagger-ui": bool({
      hidden: true,
      deprecated: "it has no effect.",
      wired: false,
      help: "Serves a user interface for the API's description.",
    }),
    profiling: bool({ default: true, help: "Enables profiling through host:port/debug/pprof/." }),
  }),
  section("Authentication", {
    "anonymous-auth": bool({
      default: true,
      help: "Enables anonymous requests. Requests that no other method rejects are treated as anonymous: user system:anonymous, group system:unauthenticated.",
    }),
    "api-audiences": stringSlice({
      help: "Identifiers of the API. A service account token is valid when it is bound to at least one of them. If only --service-account-issuer is given, it is the issuer URL.",
    }),
    "authentication-token-webhook-cache-ttl": duration({
      default: "2m0s",
      help: "How long answers of the token webhook are kept.",
    }),
    "authentication-token-webhook-config-file": string({
      help: "File with the webhook configuration for token authentication in kubeconfig format. The server asks the remote service whether bearer tokens are valid.",
    }),
    "authentication-token-webhook-version": string({
      default: "v1beta1",
      help: "The version of authentication.k8s.io TokenReview to send to and expect from the webhook.",
    }),
    "client-ca-file": string({
      help: "If set, a request with a client certificate signed by one of the authorities in this file is authenticated as the certificate's CommonName.",
    }),
    "enable-bootstrap-token-auth": bool({
      help: "Allows secrets of type 'bootstrap.kubernetes.io/token' in the 'kube-system' namespace to be used for TLS bootstrapping authentication.",
    }),
    "oidc-ca-file": string({
      help: "If set, the OpenID server's certificate is checked against the authorities in this file, otherwise against the host's root set.",
    }),
    "oidc-client-id": string({
      help: "The client ID of the OpenID Connect client; must be set if oidc-issuer-url is.",
    }),
    "oidc-groups-claim": string({
      help: "If given, the name of the OpenID Connect claim that holds user groups: a string or a list of strings.",
    }),
    "oidc-groups-prefix": string({
      help: "If given, it is put before all groups, so that they do not clash with other methods' groups.",
    }),
    "oidc-issuer-url": string({
      help: "The URL of the OpenID issuer, only HTTPS. If set, it is used to verify OIDC JSON Web Tokens.",
    }),
    "oidc-required-claim": mapStringString({
      help: "A key=value pair that an ID token must have as a claim. Repeat the flag for several claims.",
    }),
    "oidc-signing-algs": stringSlice({
      default: ["RS256"],
      help: "Allowed JOSE asymmetric signing algorithms. Supported values: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
    }),
    "oidc-username-claim": string({
      default: "sub",
      help: "The OpenID claim to use as the user name. Claims other than 'sub' are not guaranteed to be unique and immutable.",
    }),
    "oidc-username-prefix": string({
      help: "If given, it is put before all user names. Without it, names of claims other than 'email' are prefixed by the issuer URL. '-' means no prefix.",
    }),
    "requestheader-allowed-names": stringSlice({
      help: "Common names of client certificates that may give user names in the headers of --requestheader-username-headers. Empty: any certificate of --requestheader-client-ca-file.",
    }),
    "requestheader-client-ca-file": string({
      help: "Root certificates that client certificates of incoming requests are checked against before user names in headers are trusted. WARNING: do not rely on authorization having been done for them already.",
    }),
    "requestheader-extra-headers-prefix": stringSlice({
      help: "Prefixes of request headers to look at. X-Remote-Extra- is suggested.",
    }),
    "requestheader-group-headers": stringSlice({
      help: "Request headers to look at for groups. X-Remote-Group is suggested.",
    }),
    "requestheader-username-headers": stringSlice({
      help: "Request headers to look at for user names. X-Remote-User is common.",
    }),
    "service-account-api-audiences": stringSlice({
      hidden: true,
      deprecated: "will be removed in a future version.",
      wired: false,
      help: "The former name of --api-audiences.",
    }),
    "service-account-extend-token-expiration": bool({
      default: true,
      help: "Extends the life of projected service account tokens, which eases the step from legacy tokens. Then the given expiration is no limit, up to a year.",
    }),
    "service-account-issuer": stringSlice({
      help: "Identifier of the issuer of service account tokens, put into their 'iss' claim: a string or URI. Repeat the flag for several; the first one signs, all are accepted.",
    }),
    "service-account-jwks-uri": string({
      help: "Overrides the URI of the JSON Web Key Set in the discovery document at /.well-known/openid-configuration.",
    }),
    "service-account-key-file": stringSlice({
      help: "File with PEM-encoded RSA or ECDSA private or public keys that verify service account tokens. It may hold several keys, and the flag may be repeated. If absent, --tls-private-key-file is used.",
    }),
    "service-account-lookup": bool({
      default: true,
      help: "If true, service account tokens are only valid while their account (and secret or pod) exists in etcd.",
    }),
    "service-account-max-token-expiration": duration({
      help: "The longest validity of a token that the server issues. A longer request is answered with a token of this validity.",
    }),
    "service-account-signing-key-file": string({
      help: "Path to the file with the private key that signs service account tokens.",
    }),
    "token-auth-file": string({
      help: "If set, the file with the tokens that authenticate requests to the secure port.",
    }),
  }),
  section("Authorization", {
    "authorization-mode": stringSlice({
      default: ["AlwaysAllow"],
      help: "Authorization plugins in the order they are asked. Known ones: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.",
    }),
    "authorization-policy-file": string({
      help: "File with the authorization policy, one JSON object a line, for --authorization-mode=ABAC.",
    }),
    "authorization-webhook-cache-authorized-ttl": duration({
      default: "5m0s",
      help: "How long 'authorized' answers of the webhook authorizer are kept.",
    }),
    "authorization-webhook-cache-unauthorized-ttl": duration({
      default: "30s",
      help: "How long 'unauthorized' answers of the webhook authorizer are kept.",
    }),
    "authorization-webhook-config-file": string({
      help: "File with the webhook configuration in kubeconfig format, for --authorization-mode=Webhook.",
    }),
    "authorization-webhook-version": string({
      default: "v1beta1",
      help: "The version of authorization.k8s.io SubjectAccessReview to send to and expect from the webhook.",
    }),
  }),
  section("Cloud provider", {
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
  }),
  section("API enablement", {
    "runtime-config": mapStringString({
      bareKeys: true,
      help: "key=value pairs that turn built-in APIs on or off: v1=true|false for the core group, <group>/<version>=true|false for one version, api/all, api/ga, api/beta and api/alpha for all of a kind. api/legacy is deprecated.",
    }),
  }),
  section("Egress selector", {
    "egress-selector-config-file": string({ help: "File with the configuration of egress selectors." }),
  }),
  section("Admission", {
    "admission-control": stringSlice({
      deprecated: "will be removed in a future version.",
      help: "Admission control plugins in order, as one exclusive list.",
    }),
    "admission-control-config-file": string({ help: "File with the configuration of admission plugins." }),
    "default-not-ready-toleration-seconds": int({
      default: 300,
      help: "Seconds of the toleration for notReady:NoExecute that every pod gets that does not have one.",
    }),
    "default-unreachable-toleration-seconds": int({
      default: 300,
      help: "Seconds of the toleration for unreachable:NoExecute that every pod gets that does not have one.",
    }),
    "disable-admission-plugins": stringSlice({
      help: "Admission plugins to disable although they are enabled by default. The order does not matter.",
    }),
    "enable-admission-plugins": stringSlice({
      help: "Admission plugins to enable in addition to the default ones. The order does not matter.",
    }),
  }),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
  section("Traces", {
    "tracing-config-file": string({ help: "File with the configuration of tracing." }),
  }),
  section("Misc", {
    "allow-privileged": bool({ help: "If true, allow privileged containers." }),
    "apiserver-count": int({
      default: 1,
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
      help: "Which endpoint reconciler to use: master-count, lease or none.",
    }),
    "event-ttl": duration({ default: "1h0m0s", help: "How long events are kept." }),
    "identity-lease-duration-seconds": int({
      default: 3600,
      help: "Duration in seconds of the lease that identifies an API server; must be positive. (In use when the APIServerIdentity gate is on.)",
    }),
    "identity-lease-renew-interval-seconds": int({
      default: 10,
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
  }),
);
export type ApiserverFlags = FlagValues<typeof flagTable.table>; // durations arrive as milliseconds

export const kubeApiserver: Program<typeof flagTable.table> = {
  name: "kube-apiserver",
  description:
    "The Kubernetes API server validates and configures data for the API objects, which include pods, services, replication controllers, and others. It serves REST operations and is the frontend of the cluster's shared state, through which all other components interact.",
  flags: flagTable,
};

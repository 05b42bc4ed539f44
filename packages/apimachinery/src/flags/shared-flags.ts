import type { Rule } from "./rules.ts";
import { bool, duration, int, ip, level, namedCertKeys, string, stringSlice, text, uint } from "./types.ts";

/** Flags shared by several programs. Not grouped into sections here, because the programs show them in different ones. */

/** Deprecation notice of klog's flags. */
export const klogIsLeaving = "will be removed in a future release.";

/** klog's flags. Source: component-base/logs */
export const loggingFlags = {
  "add-dir-header": bool({
    deprecated: klogIsLeaving,
    help: "If true, adds the file directory to the header of the log messages.",
  }),
  alsologtostderr: bool({
    deprecated: klogIsLeaving,
    help: "log to standard error as well as files",
  }),
  "experimental-logging-sanitization": bool({
    help: "[Experimental] When on, keeps fields tagged as sensitive (passwords, keys, tokens) out of logs. It costs a lot and should not be on in production.",
  }),
  "log-backtrace-at": text("traceLocation", {
    default: ":0",
    deprecated: klogIsLeaving,
    help: "when logging hits line file:N, emit a stack trace",
  }),
  "log-dir": string({
    deprecated: klogIsLeaving,
    help: "If non-empty, write log files in this directory",
  }),
  "log-file": string({
    deprecated: klogIsLeaving,
    help: "If non-empty, use this log file",
  }),
  "log-file-max-size": uint({
    default: 1800,
    deprecated: klogIsLeaving,
    help: "Largest size of a log file in megabytes. 0: no limit.",
  }),
  "log-flush-frequency": duration({
    default: "5s",
    idle: "lines are never held back",
    help: "Longest time between log flushes.",
  }),
  "logging-format": string({ default: "text", help: 'Sets the log format. Permitted formats: "json", "text".' }),
  logtostderr: bool({
    default: true,
    deprecated: klogIsLeaving,
    help: "log to standard error instead of files",
  }),
  "one-output": bool({
    deprecated: klogIsLeaving,
    help: "If true, only write logs to their native severity level (otherwise to each lower one as well)",
  }),
  "skip-headers": bool({
    deprecated: klogIsLeaving,
    help: "If true, avoid header prefixes in the log messages",
  }),
  "skip-log-headers": bool({
    deprecated: klogIsLeaving,
    help: "If true, avoid headers when opening log files",
  }),
  stderrthreshold: text("severity", {
    default: "2",
    deprecated: klogIsLeaving,
    help: "logs at or above this threshold go to stderr",
  }),
  v: level({ shorthand: "v", help: "number for the log level verbosity" }),
  vmodule: text("moduleSpec", {
    help: "comma-separated list of pattern=N settings for file-filtered logging (only works for the text log format)",
  }),
};

interface ServingDefaults {
  readonly certDir: string;
  readonly securePort: number;
  readonly portRule?: Rule<number>;
}

/** Flags of a component's secure port. Source: apiserver pkg/server/options/serving.go */
export const servingFlags = ({ certDir, securePort, portRule }: ServingDefaults) => ({
  "bind-address": ip({
    default: "0.0.0.0",
    help: "The IP address on which to listen for --secure-port. Must be reachable by the rest of the cluster and by clients. If blank or unspecified (0.0.0.0 or ::), all interfaces are used.",
  }),
  "cert-dir": string({
    default: certDir,
    help: "The directory where the TLS certificates are located. If --tls-cert-file and --tls-private-key-file are given, it is not used.",
  }),
  "permit-address-sharing": bool({
    idle: "it is always so here, as it is in Go",
    help: "If true, SO_REUSEADDR is used when the port is bound: wildcard and specific addresses may share it, and it need not leave TIME_WAIT first.",
  }),
  "permit-port-sharing": bool({
    help: "If true, SO_REUSEPORT is used when the port is bound, so that several instances may listen on the same address and port.",
  }),
  "secure-port": int({
    default: securePort,
    ...(portRule === undefined ? {} : { must: portRule }),
    help: "The port on which to serve HTTPS with authentication and authorization.",
  }),
  "tls-cert-file": string({
    help: "File with the x509 certificate for HTTPS (with the authority's after it). If neither it nor --tls-private-key-file is given, a self-signed pair is made for the public address and kept in --cert-dir.",
  }),
  "tls-cipher-suites": stringSlice({
    help: "Cipher suites of the server. If absent, the runtime's defaults are used.",
  }),
  "tls-min-version": string({
    help: "Least TLS version. Possible values: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.",
  }),
  "tls-private-key-file": string({ help: "File with the x509 private key that belongs to --tls-cert-file." }),
  "tls-sni-cert-key": namedCertKeys({
    help: "A pair of certificate and key files, with domain patterns after them if wanted: fully qualified names, with a wildcard as first part perhaps. Without patterns the certificate's names are used. Exact names win over wildcards, patterns over names of the certificate. Repeat the flag for several pairs.",
  }),
});

/** Flags of delegated authentication. Source: apiserver pkg/server/options/authentication.go */
export const delegatedAuthenticationFlags = ({ toleratesLookupFailure }: { toleratesLookupFailure: boolean }) => ({
  "authentication-kubeconfig": string({
    help: "kubeconfig file of the server that may create tokenreviews.authentication.k8s.io. If empty, all token requests are anonymous and no client CA is looked up in the cluster.",
  }),
  "authentication-skip-lookup": bool({
    help: "If false, --authentication-kubeconfig is used to look up missing authentication configuration in the cluster.",
  }),
  "authentication-token-webhook-cache-ttl": duration({
    default: "10s",
    help: "How long answers of the token webhook are kept.",
  }),
  "authentication-tolerate-lookup-failure": bool({
    default: toleratesLookupFailure,
    help: "If true, a failed look-up of authentication configuration in the cluster is no error; then all requests may be anonymous.",
  }),
  "client-ca-file": string({
    help: "If set, a request with a client certificate signed by one of the authorities in this file is authenticated as the certificate's CommonName.",
  }),
  "requestheader-allowed-names": stringSlice({
    help: "Common names of client certificates that may give user names in the headers of --requestheader-username-headers. Empty: any certificate of --requestheader-client-ca-file.",
  }),
  "requestheader-client-ca-file": string({
    help: "Root certificates that client certificates of incoming requests are checked against before user names in headers are trusted. WARNING: do not rely on authorization having been done for them already.",
  }),
  "requestheader-extra-headers-prefix": stringSlice({
    default: ["x-remote-extra-"],
    help: "Prefixes of request headers to read. X-Remote-Extra- is suggested.",
  }),
  "requestheader-group-headers": stringSlice({
    default: ["x-remote-group"],
    help: "Request headers to read groups from. X-Remote-Group is suggested.",
  }),
  "requestheader-username-headers": stringSlice({
    default: ["x-remote-user"],
    help: "Request headers to read user names from. X-Remote-User is common.",
  }),
});

/** Flags of delegated authorization. Source: apiserver pkg/server/options/authorization.go */
export const delegatedAuthorizationFlags = {
  "authorization-always-allow-paths": stringSlice({
    default: ["/healthz", "/readyz", "/livez"],
    help: "HTTP paths to skip in authorization: they are allowed without a request to the server.",
  }),
  "authorization-kubeconfig": string({
    help: "kubeconfig file of the server that may create subjectaccessreviews.authorization.k8s.io. If empty, requests that are not skipped by authorization are forbidden.",
  }),
  "authorization-webhook-cache-authorized-ttl": duration({
    default: "10s",
    help: "How long 'authorized' answers of the webhook authorizer are kept.",
  }),
  "authorization-webhook-cache-unauthorized-ttl": duration({
    default: "10s",
    help: "How long 'unauthorized' answers of the webhook authorizer are kept.",
  }),
};

/** Flags of leader election. Source: component-base/config/options/leaderelectionconfig.go */
export const leaderElectionFlags = (resourceName: string) => ({
  "leader-elect": bool({
    default: true,
    help: "Starts a leader election client and gains leadership before the main loop. On for replicated components for high availability.",
  }),
  "leader-elect-lease-duration": duration({
    default: "15s",
    help: "How long candidates that are not the leader wait after a renewal before they try to take over: the longest time until a stopped leader is noticed.",
  }),
  "leader-elect-renew-deadline": duration({
    default: "10s",
    help: "How long the leader tries to renew before it gives up. Must be at most the lease duration.",
  }),
  "leader-elect-resource-lock": string({
    default: "leases",
    help: "The type of the resource that is the lock. Supported: 'endpoints', 'configmaps', 'leases', 'endpointsleases' and 'configmapsleases'.",
  }),
  "leader-elect-resource-name": string({
    default: resourceName,
    help: "The name of the resource that is the lock.",
  }),
  "leader-elect-resource-namespace": string({
    default: "kube-system",
    help: "The namespace of the resource that is the lock.",
  }),
  "leader-elect-retry-period": duration({
    default: "2s",
    help: "How long candidates wait between attempts to become or stay the leader.",
  }),
});

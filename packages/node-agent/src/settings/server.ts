import { between } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int32, ip, namedCertKeys, string, stringSlice } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";

/** The kubelet's server: addresses, certificates, authentication and authorization. */
export const serverSettings = {
  enableServer: bool({
    flag: "enable-server",
    field: "enableServer",
    default: true,
    deprecated: inFile,
    help: "Enables the kubelet's server.",
  }),
  address: ip({
    flag: "address",
    field: "address",
    default: "0.0.0.0",
    deprecated: inFile,
    help: "The IP address of the insecure port.",
  }),
  port: int32({
    flag: "port",
    field: "port",
    default: 10250,
    deprecated: inFile,
    must: between(1, 65_535),
    help: "The port of unsecured access.",
  }),
  tlsCertFile: string({
    flag: "tls-cert-file",
    field: "tlsCertFile",
    deprecated: inFile,
    isPath: true,
    help: "File with the x509 certificate for HTTPS (with the authority's after it). If neither it nor --tls-private-key-file is given, a self-signed pair is made for the public address and kept in --cert-dir.",
  }),
  tlsPrivateKeyFile: string({
    flag: "tls-private-key-file",
    field: "tlsPrivateKeyFile",
    deprecated: inFile,
    isPath: true,
    help: "File with the x509 private key that belongs to --tls-cert-file.",
  }),
  /** Format: see parseSniCertKey. */
  tlsSniCertKeys: namedCertKeys({
    flag: "tls-sni-cert-key",
    help: "A pair of certificate and key files, with domain patterns after them if wanted: fully qualified names, with a wildcard as first part perhaps. Without patterns the certificate's names are used. Exact names win over wildcards, patterns over names of the certificate. Repeat the flag for several pairs.",
  }),
  tlsCipherSuites: stringSlice({
    flag: "tls-cipher-suites",
    field: "tlsCipherSuites",
    deprecated: inFile,
    help: "Cipher suites of the server. If absent, the runtime's defaults are used.",
  }),
  tlsMinVersion: string({
    flag: "tls-min-version",
    field: "tlsMinVersion",
    deprecated: inFile,
    help: "Least TLS version. Possible values: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.",
  }),
  certDir: string({
    flag: "cert-dir",
    default: "/var/lib/kubelet/pki",
    help: "The directory where the TLS certificates are located. If --tls-cert-file and --tls-private-key-file are given, it is not used.",
  }),
  /** The serving certificate is requested from the API server. */
  rotateServerCertificates: bool({
    flag: "rotate-server-certificates",
    field: "serverTLSBootstrap",
    deprecated: leaving,
    refusedWithout: "RotateKubeletServerCertificate",
    help: "Requests and renews serving certificates from the API server. Needs the gate RotateKubeletServerCertificate and an approver of the requests.",
  }),
  anonymousAuth: bool({
    flag: "anonymous-auth",
    field: "authentication.anonymous.enabled",
    default: true,
    deprecated: inFile,
    fileDefault: false,
    help: "Enables anonymous requests. Requests that no other method rejects are treated as anonymous: user system:anonymous, group system:unauthenticated.",
  }),
  webhookAuth: bool({
    flag: "authentication-token-webhook",
    field: "authentication.webhook.enabled",
    deprecated: inFile,
    fileDefault: true,
    help: "Validates bearer tokens with the TokenReview API.",
  }),
  webhookAuthCacheTtlMs: duration({
    flag: "authentication-token-webhook-cache-ttl",
    field: "authentication.webhook.cacheTTL",
    default: "2m0s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How long answers of the token webhook are kept.",
  }),
  clientCaFile: string({
    flag: "client-ca-file",
    field: "authentication.x509.clientCAFile",
    deprecated: inFile,
    isPath: true,
    help: "If set, a request with a client certificate signed by one of the authorities in this file is authenticated as the certificate's CommonName.",
  }),
  authorizationMode: string({
    flag: "authorization-mode",
    field: "authorization.mode",
    default: "AlwaysAllow",
    deprecated: inFile,
    fileDefault: "Webhook",
    help: "Authorization plugins in the order they are consulted. Known ones: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.",
  }),
  authorizedTtlMs: duration({
    flag: "authorization-webhook-cache-authorized-ttl",
    field: "authorization.webhook.cacheAuthorizedTTL",
    default: "5m0s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How long 'authorized' answers of the webhook authorizer are kept.",
  }),
  unauthorizedTtlMs: duration({
    flag: "authorization-webhook-cache-unauthorized-ttl",
    field: "authorization.webhook.cacheUnauthorizedTTL",
    default: "30s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How long 'unauthorized' answers of the webhook authorizer are kept.",
  }),
  enableDebuggingHandlers: bool({
    flag: "enable-debugging-handlers",
    field: "enableDebuggingHandlers",
    default: true,
    deprecated: inFile,
    help: "Enables server endpoints for log collection and for running containers and commands.",
  }),
  enableSystemLogHandler: bool({
    field: "enableSystemLogHandler",
    default: true,
    help: "Serves /var/log under /logs/.",
  }),
  healthzBindAddress: ip({
    flag: "healthz-bind-address",
    field: "healthzBindAddress",
    default: "127.0.0.1",
    deprecated: inFile,
    help: "The address of the health server. 0.0.0.0 or ::: all interfaces.",
  }),
  healthzPort: int32({
    flag: "healthz-port",
    field: "healthzPort",
    default: 10248,
    deprecated: inFile,
    must: between(0, 65_535),
    help: "The port of the local health endpoint. 0 turns it off.",
  }),
  /** Port of the unauthenticated read-only server; 0 disables it. */
  readOnlyPort: int32({
    flag: "read-only-port",
    field: "readOnlyPort",
    default: 10255,
    deprecated: inFile,
    fileDefault: 0,
    must: between(0, 65_535),
    help: "The port that is served without authentication or authorization. 0 turns it off.",
  }),
};

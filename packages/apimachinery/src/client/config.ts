import { kubernetesRelease } from "../process/release.ts";

/**
 * Address and credentials of an API server. Inline PEM takes precedence over the corresponding file. Files, and certificates in a
 * kubeconfig, are reread for new connections, so that renewed certificates and tokens are used without a restart.
 * Source: k8s.io/client-go rest/config.go
 */
export interface ClientConfig {
  /** `https://10.0.0.1:6443`, optionally with a path prefix of the API. `http://` uses no TLS. */
  readonly host: string;
  /** CA bundle for the server's certificate, PEM; the system's when neither this nor `caFile` is set. */
  readonly ca?: string | undefined;
  readonly caFile?: string | undefined;
  /** Client certificate and key, PEM. */
  readonly cert?: string | undefined;
  readonly certFile?: string | undefined;
  readonly key?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The kubeconfig file of these settings, for messages; certificates in it are reread as files are. */
  readonly kubeconfigFile?: string | undefined;
  /** The name of the context to use; undefined: the file's current one. */
  readonly kubeconfigContext?: string | undefined;
  /** Disables verification of the server's certificate. */
  readonly insecure?: boolean | undefined;
  /** Server name for SNI and certificate verification; default the host. */
  readonly serverName?: string | undefined;
  /** `http://`, `https://` or `socks5://`; default HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment. */
  readonly proxyUrl?: string | undefined;
  readonly token?: string | undefined;
  /** Reread once a minute; takes precedence over `token` while it is readable. */
  readonly tokenFile?: string | undefined;
  /** Called for each request, so it must cache. @param refused the token that the server has last refused: a different one is needed */
  readonly tokenSource?: ((refused: string | undefined) => Promise<string>) | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly exec?: ExecConfig | undefined;
  readonly impersonate?: Impersonation | undefined;
  /** Sustained requests per second, default 5; negative: unlimited. Source: rest/config.go DefaultQPS */
  readonly qps?: number | undefined;
  /** Burst of the rate limit, default 10. */
  readonly burst?: number | undefined;
  readonly userAgent?: string | undefined;
  /** How often a read is retried after its connection was lost: once immediately, then every second. Default 10. */
  readonly retriesOfLost?: number | undefined;
  /** Time limit, in ms, for the TCP connection of a TLS client. Default: 30 s for connection and handshake together. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * `application/vnd.kubernetes.protobuf`: encodes bodies of built-in kinds as protobuf and accepts it in responses. Default:
   * JSON.
   */
  readonly contentType?: string | undefined;
  /**
   * Returns objects without `metadata.managedFields`, which controllers do not read and which are half of a small object. An update
   * without them leaves them as they are.
   */
  readonly omitsManagedFields?: boolean | undefined;
}

export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A credential plugin, which prints an ExecCredential. Source: client.authentication.k8s.io */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: readonly { name: string; value: string }[];
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
}

/**
 * `kube-scheduler/v1.23.0 (linux/amd64) kubernetes/coxswain`, optionally followed by `/<part>` to distinguish uses of a client.
 */
export function userAgentOf(program: string, part?: string): string {
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const base = `${program}/${kubernetesRelease.gitVersion} (${process.platform}/${arch}) kubernetes/coxswain`;
  return part === undefined ? base : `${base}/${part}`;
}

/**
 * How to reach an API server and as whom. PEM text beats the file of the same name; files are read again for each
 * new connection, so that renewed certificates and tokens are taken up without a restart.
 * Source: k8s.io/client-go rest/config.go
 */
export interface ClientConfig {
  /** `https://10.0.0.1:6443`, with a path below which the API is served if there is one. `http://` is taken as it is. */
  readonly host: string;
  /** Authorities that sign the server's certificate, PEM; the system's when neither this nor `caFile` is there. */
  readonly ca?: string | undefined;
  readonly caFile?: string | undefined;
  /** Client certificate and key, PEM. */
  readonly cert?: string | undefined;
  readonly certFile?: string | undefined;
  readonly key?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The kubeconfig that all this is from, for messages. */
  readonly kubeconfigFile?: string | undefined;
  /** The server's certificate is not checked. */
  readonly insecure?: boolean | undefined;
  /** Name to ask for and to check, instead of the host's. */
  readonly serverName?: string | undefined;
  /** `http://`, `https://` or `socks5://`; the environment's HTTPS_PROXY, HTTP_PROXY and NO_PROXY when absent. */
  readonly proxyUrl?: string | undefined;
  readonly token?: string | undefined;
  /** Read again each minute; beats `token` as long as it can be read. */
  readonly tokenFile?: string | undefined;
  /** Asked for each request; keeps its own time. */
  readonly tokenSource?: (() => Promise<string>) | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly exec?: ExecConfig | undefined;
  readonly impersonate?: Impersonation | undefined;
  /** Requests a second, 5 when absent; below zero means no limit. Source: rest/config.go DefaultQPS */
  readonly qps?: number | undefined;
  /** Requests at once, 10 when absent. */
  readonly burst?: number | undefined;
  readonly userAgent?: string | undefined;
  /**
   * `application/vnd.kubernetes.protobuf`: bodies of built-in kinds go so, and answers may come so. Default: JSON alone.
   */
  readonly contentType?: string | undefined;
}

export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A program that prints an ExecCredential. Source: client.authentication.k8s.io */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: readonly { name: string; value: string }[];
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
}

/** `kube-scheduler/v1.23.0 (linux/amd64) kubernetes/coxswain`, optionally with `/<part>` for one user of the client. */
export function userAgentOf(program: string, part?: string): string {
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const base = `${program}/v1.23.0 (${process.platform}/${arch}) kubernetes/coxswain`;
  return part === undefined ? base : `${base}/${part}`;
}

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { messageOf } from "../objects/errors/message.ts";
import { parseTime } from "../objects/meta/time.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { ClientConfig, ExecConfig } from "./config.ts";
import type { TransportRequest } from "./transport-messages.ts";
import { parseWire, stringifyWire } from "./wire-json.ts";

/** What an exec plugin prints. Source: client.authentication.k8s.io/v1 */
interface ExecCredential {
  readonly apiVersion?: string;
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

type AuthHeaders = Readonly<Record<string, string | string[]>>;

/** Supplies the authentication headers of each request, and a plugin's client certificate. */
interface Credentials {
  /** A promise only where a token has to be read. @throws Error when a credential plugin or the token file fails */
  headers(): AuthHeaders | Promise<AuthHeaders>;
  certificate(): { cert: string; key: string } | undefined;
  /** Reports a 401. @param headers of the request @returns true when a retry may use different credentials */
  rejected(headers: TransportRequest["headers"]): boolean;
}

/** @param onNewCertificate called when a plugin returns a different certificate */
export function newCredentials(config: ClientConfig, clock: Clock, onNewCertificate: () => void): Credentials {
  const fixed = impersonationHeaders(config);
  if (config.username !== undefined && config.username !== "") {
    fixed["authorization"] = `Basic ${Buffer.from(`${config.username}:${config.password ?? ""}`).toString("base64")}`;
  }
  const tokenFile = config.tokenFile ? newTokenFile(config.tokenFile, config.token, clock) : undefined;
  const plugin = config.exec === undefined ? undefined : newExecPlugin(config.exec, config, clock, onNewCertificate);
  let refused: string | undefined;

  // With one token the headers are always the same.
  let bearer: { readonly token: string; readonly headers: AuthHeaders } | undefined;
  const headersWith = (token: string | undefined): AuthHeaders => {
    if (token === undefined || token === "") return fixed;
    if (bearer?.token !== token) bearer = { token, headers: { ...fixed, authorization: `Bearer ${token}` } };
    return bearer.headers;
  };

  return {
    headers() {
      const token = plugin?.token() ?? tokenFile?.read() ?? config.tokenSource?.(refused) ?? config.token;
      return token instanceof Promise ? token.then(headersWith) : headersWith(token);
    },
    certificate: () => plugin?.certificate(),
    rejected(headers) {
      plugin?.forget();
      tokenFile?.forget();
      refused = /^Bearer (.*)$/.exec(String(headers?.["authorization"]))?.[1];
      return plugin !== undefined || tokenFile !== undefined || config.tokenSource !== undefined;
    },
  };
}

/** Source: client-go transport/round_trippers.go, impersonatingRoundTripper */
function impersonationHeaders(config: ClientConfig): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  const { impersonate } = config;
  if (impersonate === undefined) return headers;
  headers["impersonate-user"] = impersonate.user;
  if (impersonate.uid !== undefined) headers["impersonate-uid"] = impersonate.uid;
  if (impersonate.groups !== undefined && impersonate.groups.length > 0) headers["impersonate-group"] = [...impersonate.groups];
  for (const [key, values] of Object.entries(impersonate.extra ?? {})) {
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = [...values];
  }
  return headers;
}

/** Reread after a minute; if that fails, the last token stays in use. Source: client-go transport/token_source.go */
function newTokenFile(path: string, fallback: string | undefined, clock: Clock) {
  let token = fallback;
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    async read(): Promise<string | undefined> {
      if (clock.monotonic() - readAt < 60_000) return token;
      try {
        const text = (await readFile(path, "utf8")).trim();
        if (text === "") throw new Error(`read empty token from file ${JSON.stringify(path)}`);
        token = text;
        readAt = clock.monotonic();
      } catch (err) {
        if (token === undefined) throw new Error(`cannot read the token file: ${messageOf(err)}`, { cause: err });
      }
      return token;
    },
    forget() {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}

const run = promisify(execFile);

/** Source: client-go plugin/pkg/client/auth/exec/exec.go */
function newExecPlugin(exec: ExecConfig, config: ClientConfig, clock: Clock, onNewCertificate: () => void) {
  let current: { token?: string; cert?: string; key?: string; expiresAt?: number } | undefined;
  /** The server refused `current`. It stays until it is replaced: connections with its certificate are still open. */
  let refused = false;
  let running: Promise<void> | undefined;

  const refresh = async (): Promise<void> => {
    const env: NodeJS.ProcessEnv = { ...process.env };
    for (const { name, value } of exec.env ?? []) env[name] = value;
    env["KUBERNETES_EXEC_INFO"] = stringifyWire(execInfo(exec, config));
    let stdout: string;
    try {
      ({ stdout } = await run(exec.command, [...(exec.args ?? [])], { env, encoding: "utf8", timeout: 60_000 }));
    } catch (err) {
      const hint = exec.installHint ? `\n\n${exec.installHint}` : "";
      throw new Error(`getting credentials: exec: executable ${exec.command} failed${hint}`, { cause: err });
    }
    const { apiVersion, status }: ExecCredential = parseWire(stdout) ?? {};
    if (apiVersion !== exec.apiVersion) {
      throw new Error(
        `getting credentials: exec plugin is configured to use API version ${exec.apiVersion}, plugin returned version ${apiVersion}`,
      );
    }
    if (status === undefined) throw new Error("getting credentials: exec plugin didn't return a status field");
    if (!status.token && !status.clientCertificateData) {
      throw new Error("getting credentials: exec plugin didn't return a token or cert/key pair");
    }
    if (Boolean(status.clientCertificateData) !== Boolean(status.clientKeyData)) {
      throw new Error("getting credentials: exec plugin returned only certificate or key, not both");
    }
    const expiresAt = status.expirationTimestamp === undefined ? undefined : parseTime(status.expirationTimestamp);
    const changed = current !== undefined && current.cert !== status.clientCertificateData;
    current = {
      ...(status.token ? { token: status.token } : {}),
      ...(status.clientCertificateData ? { cert: status.clientCertificateData, key: status.clientKeyData! } : {}),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    };
    refused = false;
    if (changed) onNewCertificate();
  };

  return {
    async token(): Promise<string | undefined> {
      if (current === undefined || refused || (current.expiresAt !== undefined && clock.now() >= current.expiresAt)) {
        running ??= refresh().finally(() => {
          running = undefined;
        });
        await running;
      }
      return current?.token;
    },
    certificate: () => (current?.cert === undefined ? undefined : { cert: current.cert, key: current.key! }),
    forget() {
      refused = true;
    },
  };
}

function execInfo(exec: ExecConfig, config: ClientConfig): unknown {
  const cluster = {
    server: config.host,
    ...(config.serverName === undefined ? {} : { "tls-server-name": config.serverName }),
    ...(config.insecure === true ? { "insecure-skip-tls-verify": true } : {}),
    ...(config.ca === undefined ? {} : { "certificate-authority-data": Buffer.from(config.ca).toString("base64") }),
  };
  const spec = { ...(exec.provideClusterInfo === true ? { cluster } : {}), interactive: false };
  return { apiVersion: exec.apiVersion, kind: "ExecCredential", spec };
}

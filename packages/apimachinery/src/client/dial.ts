import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type tls from "node:tls";
import { type Connect, connectTls, serverIdentityFault } from "../transport/connect.ts";
import type { ClientConfig } from "./config.ts";
import { withCurrentPem } from "./kubeconfig.ts";

/**
 * TLS options of a configuration.
 * @param certificate of a credential plugin; used when the configuration has none
 * @throws Error for unreadable files
 * Source: client-go transport/transport.go TLSConfigFor
 */
export async function tlsOptions(
  url: URL,
  config: ClientConfig,
  certificate: { cert: string; key: string } | undefined,
): Promise<tls.ConnectionOptions> {
  const now = await withCurrentPem(config);
  const [ca, ownCert, ownKey] = await Promise.all([
    pem(now.ca, now.caFile),
    pem(now.cert, now.certFile),
    pem(now.key, now.keyFile),
  ]);
  const pair = ownCert === undefined ? certificate : { cert: ownCert, key: ownKey };
  const name = config.serverName ?? stripBrackets(url.hostname);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...pair,
    rejectUnauthorized: config.insecure !== true,
    minVersion: "TLSv1.2",
    ...(isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_host, peer) => serverIdentityFault(name, peer),
  };
}

/** @returns the text or the file's content; undefined when neither is given */
export async function pem(text: string | undefined, file: string | undefined): Promise<string | undefined> {
  if (text !== undefined && text !== "") return text;
  return file === undefined || file === "" ? undefined : await readFile(file, "utf8");
}

/**
 * Opens a TLS connection to the URL's host; `alpnProtocol` is the negotiated protocol.
 * @param acceptMs time until the host has accepted the connection
 * @throws Error, ETIMEDOUT after `acceptMs` or 30 s
 */
export async function connectHost(
  url: URL,
  secure: tls.ConnectionOptions,
  connect: Connect | undefined,
  acceptMs = dialTimeoutMs,
): Promise<tls.TLSSocket> {
  const to = { host: stripBrackets(url.hostname), port: url.port === "" ? 443 : Number(url.port) };
  const over = connect && { socket: await connect(to.host, to.port) };
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      ...secure,
      ...to,
      ...over,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    const limited = (ms: number) => setTimeout(() => socket.destroy(timedOut()), ms);
    const deadline = limited(dialTimeoutMs);
    const accepting = over === undefined ? limited(acceptMs) : undefined;
    socket.once("connect", () => clearTimeout(accepting));
    socket.once("secureConnect", () => {
      clearTimeout(deadline);
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", (err) => {
      clearTimeout(deadline);
      clearTimeout(accepting);
      reject(err);
    });
  });
}

/** Source: client-go transport/cache.go, Dialer{Timeout: 30 * time.Second} */
const dialTimeoutMs = 30_000;

function timedOut(): Error {
  return Object.assign(new Error("timed out connecting to the server"), { code: "ETIMEDOUT" });
}

/** Removes the brackets of an IPv6 literal in a URL. */
export function stripBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

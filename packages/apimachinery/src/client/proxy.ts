import { once } from "node:events";
import { isIP, isIPv6, connect as netConnect, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { messageOf } from "../objects/errors/message.ts";
import { cidrContains, parseCidr } from "../objects/meta/ip.ts";
import { type Connect, connectTls } from "../transport/connect.ts";
import { requestTunnel } from "./http-connect.ts";
import { connectThroughSocks5 } from "./socks5.ts";

const schemes = ["http:", "https:", "socks5:"];

/**
 * Parses `proxy-url` of a kubeconfig cluster.
 * @throws Error with client-go's text
 * Source: client-go tools/clientcmd/client_config.go parseProxyURL
 */
export function parseProxyUrl(text: string): URL {
  if (!URL.canParse(text)) throw new Error(`could not parse: ${text}`);
  const url = new URL(text);
  if (schemes.includes(url.protocol)) return url;
  throw new Error(`unsupported scheme ${JSON.stringify(url.protocol.slice(0, -1))}, must be http, https, or socks5`);
}

/**
 * The proxy for a server according to HTTPS_PROXY, HTTP_PROXY and NO_PROXY; never for loopback addresses.
 * @throws Error for an invalid proxy address
 * Source: golang.org/x/net/http/httpproxy
 */
export function proxyFromEnvironment(server: URL, env: NodeJS.ProcessEnv = process.env): URL | undefined {
  const either = (name: string): string => env[name] || env[name.toLowerCase()] || "";
  const proxy = either(server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (proxy === "" || isExempt(server, either("NO_PROXY"))) return undefined;
  if (URL.canParse(proxy) && schemes.includes(new URL(proxy).protocol)) return new URL(proxy);
  if (URL.canParse(`http://${proxy}`)) return new URL(`http://${proxy}`);
  throw new Error(`invalid proxy address ${JSON.stringify(proxy)}`);
}

function isExempt(server: URL, noProxy: string): boolean {
  const host = hostOf(server).toLowerCase().replace(/\.$/, "");
  const port = portOf(server);
  if (host === "localhost" || host === "::1" || cidrContains("127.0.0.0/8", host)) return true;
  return noProxy
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry === "*" || (entry !== "" && matches(entry, host, port)));
}

/**
 * Matches a NO_PROXY entry: an IP address, a CIDR, or a domain with its subdomains; `.example.com` and `*.example.com` match only
 * subdomains.
 */
function matches(entry: string, host: string, port: number): boolean {
  if (parseCidr(entry) !== undefined) return cidrContains(entry, host);
  if (isIP(entry) !== 0) return entry === host;
  const withPort = /^(.*):(\d{1,5})$/.exec(entry);
  if (withPort !== null && Number(withPort[2]) !== port) return false;
  const name = (withPort?.[1] ?? entry).replace(/^\[(.*)\]$/, "$1").replace(/^\*\./, ".");
  if (name === "") return false;
  return isIP(name) !== 0 ? name === host : host.endsWith(name.startsWith(".") ? name : `.${name}`) || host === name;
}

/** Time limit for reaching the proxy and the target. Source: client-go transport/cache.go, Dialer{Timeout: 30 * time.Second} */
const dialTimeoutMs = 30_000;

/**
 * Creates a dialer that connects through an HTTP, HTTPS or SOCKS5 proxy.
 * @param trust supplies the TLS options for an HTTPS proxy
 */
export function connectOverProxy(proxy: URL, trust: () => Promise<ConnectionOptions>): Connect {
  const name = proxy.username === "" ? undefined : decodeURIComponent(proxy.username);
  const credentials = name === undefined ? undefined : { username: name, password: decodeURIComponent(proxy.password) };
  const late = (what: string): Error => new Error(`${what}: i/o timeout, after ${dialTimeoutMs / 1000} s`);
  return async (host, port) => {
    const signal = AbortSignal.timeout(dialTimeoutMs);
    const connection = await connectionTo(proxy, trust, signal).catch((err: unknown) => {
      throw signal.aborted ? late(`proxyconnect tcp: dial tcp ${proxy.hostname}:${portOf(proxy)}`) : err;
    });
    try {
      if (proxy.protocol === "socks5:") await connectThroughSocks5(connection, { host, port }, credentials, signal);
      else {
        const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
        const basic = credentials && Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
        const headers = { host: target, ...(basic && { "proxy-authorization": `Basic ${basic}` }) };
        const { code, message } = await requestTunnel(connection, target, headers, signal);
        if (code !== 200) throw new Error(message || `status code ${code}`);
      }
      return connection;
    } catch (err) {
      connection.destroy();
      const cause = signal.aborted ? late(`dial tcp ${isIPv6(host) ? `[${host}]` : host}:${port}`) : err;
      throw new Error(`cannot connect over the proxy ${proxy.host}: ${messageOf(cause)}`, { cause });
    }
  };
}

async function connectionTo(proxy: URL, trust: () => Promise<ConnectionOptions>, signal: AbortSignal): Promise<Socket> {
  const to = { host: hostOf(proxy), port: portOf(proxy) };
  const isSecure = proxy.protocol === "https:";
  const servername = isIP(to.host) === 0 ? { servername: to.host } : {};
  const connection = isSecure ? connectTls({ ...(await trust()), ...servername, ...to }) : netConnect(to);
  try {
    await once(connection, isSecure ? "secureConnect" : "connect", { signal });
    return connection;
  } catch (err) {
    connection.destroy();
    throw err;
  }
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, "$1");
const ports: Readonly<Record<string, number>> = { "http:": 80, "https:": 443, "socks5:": 1080 };
const portOf = (url: URL): number => Number(url.port) || (ports[url.protocol] ?? 0);

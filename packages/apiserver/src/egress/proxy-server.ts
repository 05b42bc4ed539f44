/**
 * A proxy server of the egress configuration: its address, TLS settings and protocol.
 * Source: k8s.io/apiserver pkg/server/egressselector/egress_selector.go
 */

import { readFileSync } from "node:fs";
import { isIP, connect as netConnect, type Socket } from "node:net";
import { type ConnectionOptions, createSecureContext } from "node:tls";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { parseBundle } from "@coxswain/apimachinery/serving/authentication/x509";
import { connectTls } from "@coxswain/apimachinery/transport/connect";
import type { Connection, TcpTransport, TlsConfig } from "./selections.ts";

export interface ProxyServer {
  readonly protocol: "http_connect" | "grpc";
  readonly transport: "tcp" | "uds";
  /** Name in messages: `proxy.example.com:8131`, `/run/proxy.sock`. */
  readonly name: string;
  /** @returns a connection to the proxy @throws Error of the socket or of TLS; the signal's reason */
  connect(signal: AbortSignal): Promise<Socket>;
}

/** Reads the files of a validated connection of a type other than Direct. @throws Error describing the problem */
export function proxyServerOf({ proxyProtocol, transport = {} }: Connection): ProxyServer {
  const protocol = proxyProtocol === "GRPC" ? "grpc" : "http_connect";
  const { uds, tcp = {} } = transport;
  if (uds === undefined) return { protocol, transport: "tcp", ...overTcp(tcp) };
  const path = uds.udsName ?? "";
  return { protocol, transport: "uds", name: path, connect: (signal) => connected(netConnect({ path }), "connect", signal) };
}

function overTcp({ url = "", tlsConfig }: TcpTransport): Pick<ProxyServer, "name" | "connect"> {
  const { host, port, isSecure, name } = addressOf(url);
  if (!isSecure) return { name, connect: (signal) => connected(netConnect({ host, port }), "connect", signal) };
  const options: ConnectionOptions = {
    ...{ host, port, secureContext: secureContextOf(tlsConfig) },
    ...(isIP(host) === 0 && { servername: host }),
  };
  return { name, connect: (signal) => connected(connectTls(options), "secureConnect", signal) };
}

function addressOf(text: string) {
  let url: URL;
  try {
    url = new URL(text);
  } catch (err) {
    throw new Error(`invalid proxy server url ${JSON.stringify(text)}: ${messageOf(err)}`, { cause: err });
  }
  const isSecure = url.protocol === "https:";
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port) || (isSecure ? 443 : 80),
    isSecure,
    // From the text, because URL.host omits a default port.
    name: /^https?:\/\/(?:[^@/]*@)?([^/?#]*)/.exec(text)?.[1] ?? url.host,
  };
}

function secureContextOf({ caBundle = "", clientCert = "", clientKey = "" }: TlsConfig = {}) {
  let pair: { cert: string; key: string };
  try {
    pair = { cert: readPem(clientCert, "certificate"), key: readPem(clientKey, "key") };
    createSecureContext(pair);
  } catch (err) {
    const isMismatch = errorCode(err) === "ERR_OSSL_X509_KEY_VALUES_MISMATCH";
    const why = isMismatch ? "tls: private key does not match public key" : messageOf(err);
    throw new Error(`failed to read key pair ${clientCert} & ${clientKey}, got ${why}`, { cause: err });
  }
  return createSecureContext({ ...pair, ...(caBundle !== "" && { ca: authoritiesIn(caBundle) }) });
}

/** @throws Error with the text of Go's tls.X509KeyPair */
function readPem(path: string, what: "certificate" | "key"): string {
  const text = readFileSync(path, "utf8");
  if (!text.includes("-----BEGIN ")) throw new Error(`tls: failed to find any PEM data in ${what} input`);
  return text;
}

function authoritiesIn(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (err) {
    throw new Error(`failed to read cert file ${path}, got ${messageOf(err)}`, { cause: err });
  }
  try {
    parseBundle(text, path);
  } catch (err) {
    throw new Error("failed to append CA cert to the cert pool", { cause: err });
  }
  return text;
}

function connected(socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => void socket.destroy(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.once("error", reject);
    socket.once(event, () => {
      signal.removeEventListener("abort", giveUp);
      socket.off("error", reject);
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}

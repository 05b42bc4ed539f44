/**
 * HTTP client for OpenID providers: HTTPS only, also after redirects, with time and size limits.
 * Source: k8s.io/apiserver plugin/pkg/authenticator/token/oidc/oidc.go (its HTTP client), RFC 7231 section 6.4
 */
import type { IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { readUpTo } from "@coxswain/apimachinery/client/read-up-to";
import { onUnsolicitedUpgrade } from "@coxswain/apimachinery/client/unsolicited-upgrade";
import { serverIdentityFault } from "@coxswain/apimachinery/transport/connect";

export interface HttpsAnswer {
  readonly status: number;
  /** `404 Not Found` */
  readonly statusText: string;
  readonly body: string;
}

export type HttpsGet = (url: string, headers?: Readonly<Record<string, string>>) => Promise<HttpsAnswer>;

const timeoutMs = 30_000;
const longestAnswerBytes = 5 * 1024 * 1024;
const mostRedirects = 10;

/**
 * @param ca PEM bundle to verify the providers' certificates; the system's roots when undefined
 * @param signal aborts requests in flight
 */
export function newHttpsGet(ca: string | undefined, signal: AbortSignal): HttpsGet {
  const agent = new Agent({ keepAlive: false, checkServerIdentity: serverIdentityFault, ...(ca === undefined ? {} : { ca }) });
  return async (start, headers = {}) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let url = httpsUrl(start);
    let sent = headers;
    for (let redirects = 0; ; redirects++) {
      const response = await answerOf(url, sent, agent, limit);
      const { location } = response.headers;
      const status = response.statusCode ?? 0;
      if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) {
        return { status, statusText: `${status} ${response.statusMessage ?? ""}`.trim(), body: await textOf(response) };
      }
      response.destroy();
      if (redirects === mostRedirects) throw new Error(`Get ${JSON.stringify(start)}: stopped after ${mostRedirects} redirects`);
      const next = httpsUrl(new URL(location, url).href);
      // Headers may carry credentials; do not forward them to another host.
      if (next.host !== url.host) sent = {};
      url = next;
    }
  };
}

function httpsUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw new Error(`${JSON.stringify(text)} is not a URL`);
  if (url.protocol !== "https:") throw new Error(`${JSON.stringify(text)} has invalid scheme, require 'https'`);
  return url;
}

function answerOf(
  url: URL,
  headers: Readonly<Record<string, string>>,
  agent: Agent,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { agent, headers: { ...headers }, signal }, resolve);
    const fail = (err: Error): void => reject(new Error(`Get ${JSON.stringify(url.href)}: ${err.message}`, { cause: err }));
    request.once("error", fail);
    onUnsolicitedUpgrade(request, fail);
    request.end();
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  const tooLong = (): Error => new Error("unable to read response body: it is too large");
  return (await readUpTo(response, longestAnswerBytes, tooLong)).toString("utf8");
}

/**
 * Sends one request to a webhook over HTTPS. The certificate is always verified, redirects are not followed, and responses
 * are limited in size and time.
 * Source: k8s.io/apiserver pkg/util/webhook/client.go, client-go rest/request.go
 */

import type { IncomingMessage } from "node:http";
import { type Agent, type RequestOptions as HttpsRequestOptions, request as httpsRequest } from "node:https";
import type { ClientObserver } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { onUnsolicitedUpgrade } from "@coxswain/apimachinery/client/unsolicited-upgrade";
import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { failureIn, genericServerResponse, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { WebhookClientConfig } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import { type Connect, watchedIdentity } from "@coxswain/apimachinery/transport/connect";
import { tunnelledAgent } from "../../egress/agents.ts";
import { traceparent } from "../../request/trace.ts";
import type { Credentials, CredentialsFor } from "./credentials.ts";
import { type Endpoint, endpointOf, type ResolveService } from "./endpoint.ts";

/** The call failed without a usable response; the caller applies its failure policy. */
export class WebhookCallError extends Error {
  /** HTTP status of the response, or 503 when there was none. */
  readonly code: number;
  constructor(message: string, code = 503, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The endpoint or the credentials could not be resolved; no request was sent. */
export class WebhookNotCalledError extends WebhookCallError {}

interface WebhookQuestion {
  readonly body: string;
  readonly timeoutSeconds: number;
  /** Sends the timeout in the query of the request. */
  readonly namesTimeout?: boolean;
  readonly signal?: AbortSignal;
}

interface WebhookCaller {
  /** @returns the body of a 2xx response @throws WebhookCallError */
  call(config: WebhookClientConfig, question: WebhookQuestion): Promise<Buffer>;
}

const longestAnswerBytes = 16 * 1024 * 1024;
/** More is read in turns of the event loop: thirty webhooks that send what they can would occupy it with decryption. */
const readAtOnceBytes = 64 * 1024;
const idleMs = 90_000;
const mostAgents = 200;
/** This apiserver, which is always dialed directly. */
const ownHostPort = "kubernetes.default.svc:443";

export interface WebhookDialers {
  /** Dialer for webhooks behind services; undefined: direct. */
  readonly toServices?: Connect | undefined;
  /** Dialer for webhooks with a URL; undefined: direct. */
  readonly toUrls?: Connect | undefined;
  /** Notified of each call, for metrics. */
  readonly observer?: ClientObserver;
  /** Notified of each connection to a server whose certificate has no alternative names. */
  readonly missingSan?: () => void;
}

/** A caller with keep-alive connections, pooled per CA bundle and client certificate. */
export function newWebhookCaller(
  resolve: ResolveService,
  credentialsFor: CredentialsFor,
  turns: Turns,
  { toServices, toUrls, observer, missingSan }: WebhookDialers = {},
): WebhookCaller {
  const agents = new Map<string, Agent>();
  const agentFor = (caBundle: string | undefined, certificate: Credentials["certificate"], endpoint: Endpoint): Agent => {
    const isService = endpoint.locate !== undefined;
    const isSelf = endpoint.hostPort === ownHostPort;
    const key = JSON.stringify([caBundle, certificate, isService, isSelf]);
    let agent = agents.get(key);
    if (agent === undefined) {
      const ca = caBundle === undefined ? {} : { ca: Buffer.from(caBundle, "base64") };
      agent = tunnelledAgent(
        { keepAlive: true, timeout: idleMs, checkServerIdentity: watchedIdentity(missingSan), ...ca, ...certificate },
        isSelf ? undefined : isService ? toServices : toUrls,
      );
      // CA bundles change on renewal; without this, agents for old bundles would accumulate.
      if (agents.size > mostAgents) agents.clear();
      agents.set(key, agent);
    }
    return agent;
  };
  return {
    async call(config, { body, timeoutSeconds, namesTimeout, signal }) {
      let endpoint: Endpoint;
      let credentials: Credentials;
      try {
        endpoint = endpointOf(config, resolve);
        credentials = credentialsFor(endpoint.hostPort);
      } catch (err) {
        throw new WebhookNotCalledError(`could not get REST client: ${messageOf(err)}`, 500, err);
      }
      if (namesTimeout) endpoint.url.searchParams.set("timeout", `${timeoutSeconds}s`);
      const agent = agentFor(config.caBundle, credentials.certificate, endpoint);
      const patience = AbortSignal.timeout(timeoutSeconds * 1000);
      const deadline = signal === undefined ? patience : AbortSignal.any([signal, patience]);
      const startedMs = performance.now();
      const observe = (code: string): void => observer?.requested("POST", endpoint.hostPort, code, performance.now() - startedMs);
      return post(endpoint, body, { agent, headers: credentials.headers, signal: deadline, turns, observe });
    },
  };
}

interface Posting {
  readonly agent: Agent;
  readonly headers: Credentials["headers"];
  readonly signal: AbortSignal;
  readonly turns: Turns;
  readonly observe: (code: string) => void;
}

function post(
  { url, hostPort, locate }: Endpoint,
  body: string,
  { agent, headers, signal, turns, observe }: Posting,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const shown = locate === undefined ? url.href : `https://${hostPort}${url.pathname}${url.search}`;
    let code = 0;
    const fail = (err: Error): void => {
      if (code === 0) observe("<error>");
      reject(new WebhookCallError(`Post "${shown}": ${textOf(err)}`, 503, err));
    };
    let located: HttpsRequestOptions = {};
    try {
      const location = locate?.();
      if (location !== undefined) located = { hostname: location.host, port: location.port, servername: url.hostname };
    } catch (err) {
      return fail(errorOf(err));
    }
    const parent = traceparent();
    const request = httpsRequest(
      url,
      {
        ...located,
        method: "POST",
        agent,
        signal,
        headers: {
          ...headers,
          host: locate === undefined ? url.host : hostPort,
          "content-type": "application/json",
          accept: "application/json, */*",
          "content-length": Buffer.byteLength(body),
          "user-agent": userAgentOf("kube-apiserver"),
          ...(parent !== undefined && { traceparent: parent }),
        },
      },
      (response) => {
        code = response.statusCode ?? 0;
        observe(String(code));
        answerOf(response, turns).then((answer) => {
          if (code >= 200 && code <= 206) return resolve(answer);
          const status = refusalOf(code, answer);
          reject(new WebhookCallError(status.message, status.code));
        }, fail);
      },
    );
    request.once("error", fail);
    onUnsolicitedUpgrade(request, fail);
    request.end(body);
  });
}

/** @throws Error for an answer that is too long or breaks off; the connection is then closed */
async function answerOf(response: IncomingMessage, turns: Turns): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Cast: without an encoding a response consists of buffers.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > longestAnswerBytes) throw new Error("the answer is too large");
    chunks.push(chunk);
    turns.transferred(chunk.length);
    if (size > readAtOnceBytes) await turns.next();
  }
  return Buffer.concat(chunks);
}

/** Error for a response that is not 2xx: from its Status, else from the HTTP code. */
function refusalOf(code: number, body: Buffer): StatusError {
  try {
    const status = failureIn(parseJson(body));
    if (status?.status === "Failure") return new StatusError(status);
  } catch {
    // Not a Status: the text of the body is used for codes without a specific message.
  }
  return genericServerResponse(code, "POST", { group: "", resource: "" }, "", body.toString("utf8").slice(0, 2048), 0, true);
}

function textOf(err: Error): string {
  return err.name === "TimeoutError" || err.name === "AbortError" ? "context deadline exceeded" : dialErrorText(err);
}

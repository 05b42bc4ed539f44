/**
 * Servers behind APIServices: TLS verification, client certificate, and pools of idle connections.
 * Source: kube-aggregator pkg/apiserver/handler_proxy.go updateAPIService
 */
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import { createSecureContext, type SecureContext } from "node:tls";
import type { ServiceReference } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import { parseBundle } from "@coxswain/apimachinery/serving/authentication/x509";
import { type Connect, watchedIdentity } from "@coxswain/apimachinery/transport/connect";
import { tunnelledAgent } from "../egress/agents.ts";
import { type ApiService, nameOf, serviceOf } from "./api-services.ts";
import type { KeyPair, ProxyCertificate } from "./proxy-certificate.ts";
import { formatLocation, type Location } from "./service-resolver.ts";

interface BackendTls {
  readonly servername: string;
  readonly rejectUnauthorized: boolean;
  /** Certificates and key, parsed once for all connections; absent when the caBundle is invalid. */
  readonly secureContext?: SecureContext;
  /** Only read for the message of a refused handshake, which says when our certificate has expired. */
  readonly cert?: string;
  readonly checkServerIdentity: ReturnType<typeof watchedIdentity>;
}

export interface Backend {
  readonly service: Required<ServiceReference>;
  readonly tls: BackendTls;
  /** Error text when the caBundle is invalid; no connection is made then. */
  readonly problem: string | undefined;
  readonly agent: Agent;
  /** Dialer; undefined: direct. */
  readonly tunnel?: Connect | undefined;
}

export interface Backends {
  /** @returns undefined for local APIServices. */
  of(service: ApiService): Backend | undefined;
  forget(name: string): void;
}

/** Shorter than the idle timeout of servers, to avoid reusing a connection that the server is closing. */
const idleMs = 30_000;

/** @param missingSan notified of each connection to a server whose certificate has no alternative names */
export function newBackends(certificate: Pick<ProxyCertificate, "current">, tunnel?: Connect, missingSan?: () => void): Backends {
  const checkServerIdentity = watchedIdentity(missingSan);
  const known = new Map<string, { readonly backend: Backend; readonly pair: KeyPair | undefined; readonly bundle: string }>();
  return {
    of(apiService) {
      const service = serviceOf(apiService);
      if (service === undefined) return undefined;
      const name = nameOf(apiService);
      const { caBundle = "", insecureSkipTLSVerify = false } = apiService.spec ?? {};
      const { current: pair } = certificate;
      const before = known.get(name);
      if (
        before !== undefined &&
        before.pair === pair &&
        before.bundle === caBundle &&
        before.backend.tls.rejectUnauthorized === !insecureSkipTLSVerify &&
        isSame(before.backend.service, service)
      ) {
        return before.backend;
      }
      const verified = { rejectUnauthorized: !insecureSkipTLSVerify, checkServerIdentity };
      const backend = newBackend(service, caBundle, pair, verified, tunnel);
      known.set(name, { backend, pair, bundle: caBundle });
      return backend;
    },
    forget: (name) => void known.delete(name),
  };
}

function isSame(a: Required<ServiceReference>, b: Required<ServiceReference>): boolean {
  return a.namespace === b.namespace && a.name === b.name && a.port === b.port;
}

function newBackend(
  service: Required<ServiceReference>,
  caBundle: string,
  pair: KeyPair | undefined,
  verified: Pick<BackendTls, "rejectUnauthorized" | "checkServerIdentity">,
  tunnel: Connect | undefined,
): Backend {
  const ca = Buffer.from(caBundle, "base64").toString("latin1");
  const secureContext = isBundle(ca) ? createSecureContext({ ...(ca !== "" && { ca }), ...pair }) : undefined;
  const tls: BackendTls = {
    servername: `${service.name}.${service.namespace}.svc`,
    ...(secureContext !== undefined && { secureContext }),
    ...(pair !== undefined && { cert: pair.cert }),
    ...verified,
  };
  const problem = secureContext === undefined ? badBundle : undefined;
  const agent = tunnelledAgent({ keepAlive: true, timeout: idleMs, ...tls }, tunnel);
  return { service, tls, problem, agent, tunnel };
}

const badBundle = "unable to load root certificates: unable to parse bytes as PEM block";

function isBundle(ca: string): boolean {
  if (ca === "") return true;
  try {
    parseBundle(ca, "caBundle");
    createSecureContext({ ca });
    return true;
  } catch {
    return false;
  }
}

const dialTimeoutMs = 30_000;

/** Limits connect plus TLS handshake: an unused address may drop packets, and a non-TLS server may never respond. */
function limitDialling(outgoing: ClientRequest, onTimeout: () => void): void {
  outgoing.once("socket", (socket) => {
    if (outgoing.reusedSocket) return;
    const timer = setTimeout(onTimeout, dialTimeoutMs);
    for (const event of ["secureConnect", "close"]) socket.once(event, () => clearTimeout(timer));
  });
}

function dialTimeout(location: Location): Error {
  return new Error(`dial tcp ${formatLocation(location)}: i/o timeout`);
}

interface BackendRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** Streamed; undefined for none. */
  readonly body?: NodeJS.ReadableStream | undefined;
  readonly signal: AbortSignal;
}

/** A new connection for a single request. */
function ownAgent({ tls, tunnel }: Pick<Backend, "tls" | "tunnel">): Agent | false {
  return tunnel === undefined ? false : tunnelledAgent({ ...tls }, tunnel);
}

/** Methods that are safe to retry. */
const replayable: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Resolves with the response head; the caller reads the body. Requests that are not safe to retry use a new connection: a
 * pooled one may be closed by the server, and then it is unknown whether the request was processed.
 * @throws Error of the socket; the signal's reason as an AbortError
 */
export function send(
  backend: Pick<Backend, "agent" | "tls" | "tunnel">,
  { host, port }: Location,
  request: BackendRequest,
): Promise<IncomingMessage> {
  const { body, ...head } = request;
  return new Promise((resolve, reject) => {
    const mayWait = body === undefined && replayable.has(head.method);
    const connection = mayWait ? { agent: backend.agent } : { agent: ownAgent(backend), ...backend.tls };
    const outgoing = httpsRequest({ ...head, host, port, setHost: false, ...connection });
    let isAnswered = false;
    outgoing.once("response", (answer) => {
      isAnswered = true;
      resolve(answer);
    });
    // An upgrade that was not requested; the caller detects it by the status.
    outgoing.once("upgrade", (answer, socket) => {
      socket.destroy();
      resolve(answer);
    });
    limitDialling(outgoing, () => outgoing.destroy(dialTimeout({ host, port })));
    // Errors also occur after the response, e.g. when the server stops reading the request body.
    outgoing.on("error", (err: NodeJS.ErrnoException) => {
      const wasEnded = mayWait && outgoing.reusedSocket && err.code === "ECONNRESET";
      if (wasEnded && !isAnswered && !request.signal.aborted) send(backend, { host, port }, request).then(resolve, reject);
      else reject(err);
    });
    if (body === undefined) {
      outgoing.end();
      return;
    }
    body.once("error", (err) => outgoing.destroy(err));
    body.pipe(outgoing);
  });
}

/**
 * A small aggregated API server for tests: real TLS, authentication by the front proxy's headers and certificate only, one
 * group with one resource that supports list, get, create, delete, watch, discovery and OpenAPI.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";

interface AggregatedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Common name of the client certificate; `""` when the front proxy's CA did not sign it. */
  readonly certificate: string;
}

export interface AggregatedServer {
  readonly group: string;
  readonly port: number;
  /** CA of the serving certificate, PEM, in the format of `caBundle`. */
  readonly caBundle: string;
  /** Requests other than those of the aggregator itself. */
  readonly requests: AggregatedRequest[];
  /** Number of requests of the aggregator, by kind. */
  readonly requested: { discovery: number; openApi: number };
  /** Number of open watches. */
  readonly watches: number;
  /** Keys of the stored objects. */
  readonly stored: readonly string[];
  /** Response to /openapi/v2, with its ETag. */
  openApi: { etag: string; document: unknown };
  /** Status code of discovery responses. */
  discoveryStatus: number;
  stop(): void;
}

interface AggregatedServerOptions {
  readonly group: string;
  /** IP address of this machine to listen on. */
  readonly address: string;
  /** DNS names of the certificate: `<service>.<namespace>.svc`. */
  readonly names: readonly string[];
  /** Common name of the certificate. */
  readonly commonName?: string;
  /** CA of the front proxy's client certificate, PEM. */
  readonly proxyCa: string;
}

interface Flunder {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; namespace: string; resourceVersion: string; uid?: string };
}

const ca: Promise<KeyPair> = newCa({ commonName: "aggregated-ca" });

export async function startAggregatedServer(
  t: { after(fn: () => void): void },
  options: AggregatedServerOptions,
): Promise<AggregatedServer> {
  const { address, names, commonName = "aggregated", proxyCa } = options;
  const authority = await ca;
  const pair = await newCertificate({ commonName, dnsNames: [...names], usages: ["server"], ca: authority });
  const listener = createTlsServer({
    cert: pair.certPem,
    key: pair.keyPem,
    ca: proxyCa,
    requestCert: true,
    rejectUnauthorized: false,
  });
  const server = new FlunderServer(options.group, authority, listener);
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(0, address, resolve);
  });
  server.port = (listener.address() as AddressInfo).port;
  t.after(() => server.stop());
  return server;
}

class FlunderServer implements AggregatedServer {
  readonly group: string;
  port = 0;
  readonly caBundle: string;
  readonly requests: AggregatedRequest[] = [];
  readonly requested = { discovery: 0, openApi: 0 };
  openApi: AggregatedServer["openApi"];
  discoveryStatus = 200;
  readonly #listener: Server;
  readonly #flunders: Flunders;

  constructor(group: string, authority: KeyPair, listener: Server) {
    this.group = group;
    this.caBundle = Buffer.from(authority.certPem).toString("base64");
    this.openApi = { etag: '"1"', document: openApiOf(group) };
    this.#flunders = new Flunders(`${group}/v1`);
    this.#listener = listener;
    listener.on("request", (req, res) => this.#handle(req, res));
    listener.on("upgrade", (req, socket, head) => {
      this.requests.push(requestOf(req));
      echoUpgraded(socket, head);
    });
  }

  get watches(): number {
    return this.#flunders.watches;
  }

  get stored(): readonly string[] {
    return this.#flunders.keys;
  }

  stop(): void {
    this.#listener.close();
    this.#listener.closeAllConnections();
  }

  #handle(req: IncomingMessage, res: ServerResponse) {
    const seen = requestOf(req);
    const user = seen.headers["x-remote-user"];
    if (seen.certificate === "" || user === undefined) {
      return answer(res, 401, statusOf(401, "Unauthorized", "Unauthorized"));
    }
    if (user === "system:kube-aggregator") this.requested.discovery++;
    else if (user === "system:aggregator") this.requested.openApi++;
    else this.requests.push(seen);
    const [path = "", query = ""] = seen.url.split("?");
    if (path === "/openapi/v2") return this.#answerOpenApi(req, res);
    if (path === `/apis/${this.group}/v1`) return answer(res, this.discoveryStatus, discoveryOf(this.group));
    const [, , , , ...parts] = path.split("/");
    if (parts.includes("redirect")) return void res.writeHead(302, { location: "https://169.254.169.254/" }).end("gone");
    if (parts.includes("headers")) return answer(res, 200, seen.headers);
    if (parts.includes("echo")) return echo(req, res);
    const [scope, namespace = "", plural, name = ""] = parts[0] === "namespaces" ? parts : ["", "", ...parts];
    if (plural !== "flunders") return answer(res, 404, statusOf(404, "NotFound", "not here"));
    if (req.method === "POST" && scope !== undefined) return void this.#flunders.create(req, res, namespace);
    this.#flunders.handle(req, res, { namespace, name, query: new URLSearchParams(query) });
  }

  #answerOpenApi(req: IncomingMessage, res: ServerResponse) {
    const { etag, document } = this.openApi;
    if (req.headers["if-none-match"] === etag) return void res.writeHead(304, { etag }).end();
    answer(res, 200, document, { etag });
  }
}

/** The stored objects and their watches. */
class Flunders {
  readonly #apiVersion: string;
  readonly #stored = new Map<string, Flunder>();
  readonly #watchers = new Set<ServerResponse>();
  #revision = 1;

  constructor(apiVersion: string) {
    this.#apiVersion = apiVersion;
  }

  get keys(): readonly string[] {
    return [...this.#stored.keys()];
  }

  get watches(): number {
    return this.#watchers.size;
  }

  async create(req: IncomingMessage, res: ServerResponse, namespace: string): Promise<void> {
    const object = JSON.parse((await bodyOf(req)).toString()) as Flunder;
    const resourceVersion = String(++this.#revision);
    object.apiVersion = this.#apiVersion;
    object.kind = "Flunder";
    object.metadata = { ...object.metadata, namespace, resourceVersion, uid: `uid-${resourceVersion}` };
    this.#stored.set(`${namespace}/${object.metadata.name}`, object);
    this.#report("ADDED", object);
    answer(res, 201, object);
  }

  /** @param of `name` is empty for a list or watch, `namespace` for one of all namespaces */
  handle(req: IncomingMessage, res: ServerResponse, of: { namespace: string; name: string; query: URLSearchParams }) {
    const { namespace, name, query } = of;
    const key = `${namespace}/${name}`;
    const found = this.#stored.get(key);
    if (name !== "" && found === undefined) return answer(res, 404, statusOf(404, "NotFound", `flunders "${name}" not found`));
    if (req.method === "DELETE") {
      this.#stored.delete(key);
      this.#report("DELETED", found as Flunder);
      return answer(res, 200, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });
    }
    if (name !== "") return answer(res, 200, found);
    if (query.get("watch") === "true" || query.get("watch") === "1") return this.#watch(res);
    const items = [...this.#stored.values()].filter(({ metadata }) => namespace === "" || metadata.namespace === namespace);
    const metadata = { resourceVersion: String(this.#revision) };
    answer(res, 200, { kind: "FlunderList", apiVersion: this.#apiVersion, metadata, items });
  }

  #watch(res: ServerResponse): void {
    res.writeHead(200, { "content-type": "application/json" });
    res.flushHeaders();
    for (const object of this.#stored.values()) res.write(`${JSON.stringify({ type: "ADDED", object })}\n`);
    this.#watchers.add(res);
    res.once("close", () => this.#watchers.delete(res));
  }

  #report(type: string, object: Flunder): void {
    for (const watcher of this.#watchers) watcher.write(`${JSON.stringify({ type, object })}\n`);
  }
}

function echo(req: IncomingMessage, res: ServerResponse): void {
  res.writeHead(200, { "content-type": "application/octet-stream", "access-control-allow-origin": "*" });
  res.flushHeaders();
  req.pipe(res);
}

function echoUpgraded(socket: Duplex, head: Buffer): void {
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  if (head.length > 0) socket.write(head);
  socket.on("error", () => {});
  socket.pipe(socket);
}

function requestOf(req: IncomingMessage): AggregatedRequest {
  const socket = req.socket as TLSSocket;
  const certificate = socket.authorized ? String(socket.getPeerCertificate().subject?.CN ?? "") : "";
  return { method: req.method ?? "", url: req.url ?? "", headers: req.headers, certificate };
}

async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function answer(res: ServerResponse, code: number, body: unknown, headers: Record<string, string> = {}): void {
  res.writeHead(code, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function statusOf(code: number, reason: string, message: string) {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message };
}

function discoveryOf(group: string) {
  const verbs = ["create", "delete", "get", "list", "watch"];
  const resources = [{ name: "flunders", singularName: "flunder", namespaced: true, kind: "Flunder", shortNames: ["fl"], verbs }];
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: `${group}/v1`, resources };
}

/** @param spec description of the field `spec`, shown by `kubectl explain` */
function openApiOf(group: string, spec = "What a flunder is to be.") {
  const kind = { group, version: "v1", kind: "Flunder" };
  const name = `test.example.v1.Flunder`;
  const meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  const ok = { description: "OK", schema: { $ref: `#/definitions/${name}` } };
  return {
    swagger: "2.0",
    info: { title: "flunders", version: "v1" },
    paths: {
      "/healthz": { get: { responses: { "200": { description: "OK", schema: { $ref: "#/definitions/test.example.Health" } } } } },
      [`/apis/${group}/v1/namespaces/{namespace}/flunders`]: {
        post: {
          operationId: "createFlunder",
          parameters: [{ name: "body", in: "body", required: true, schema: { $ref: `#/definitions/${name}` } }],
          responses: { "201": ok },
          "x-kubernetes-action": "post",
          "x-kubernetes-group-version-kind": kind,
        },
        parameters: [{ name: "namespace", in: "path", required: true, type: "string", uniqueItems: true }],
      },
    },
    definitions: {
      [name]: {
        description: "A flunder is a wardle's friend.",
        type: "object",
        properties: {
          apiVersion: { type: "string", description: "Which version of the schema." },
          kind: { type: "string", description: "Which kind it is." },
          metadata: { $ref: `#/definitions/${meta}`, description: "What it is called.", default: {} },
          spec: { type: "object", description: spec, properties: { default: { $ref: `#/definitions/${meta}` } } },
        },
        "x-kubernetes-group-version-kind": [kind],
      },
      [meta]: {
        description: "Another one than the API server's.",
        type: "object",
        properties: { name: { type: "string" }, namespace: { type: "string" } },
      },
      "test.example.Health": { type: "string" },
    },
  };
}

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SmallApi {
  readonly host: string;
  /** Everything that was created besides accounts and their tokens, in order. */
  readonly writes: readonly { readonly path: string; readonly name: string; readonly authorization: string }[];
}

/**
 * As much of an API server as a manager needs to find one namespace and nothing in it. Tokens are named after their
 * account, which does not exist until somebody makes it.
 */
export async function startSmallApi(t: { after(fn: () => void): void }): Promise<SmallApi> {
  const accounts = new Set<string>();
  const writes: SmallApi["writes"][number][] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const url = new URL(request.url ?? "", "http://x");
    const send = (code: number, value: object): void => {
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const own = /^\/api\/v1\/namespaces\/kube-system\/serviceaccounts(?:\/([^/]+)\/token)?$/.exec(url.pathname);
    if (request.method === "POST" && own !== null) {
      if (own[1] === undefined) {
        accounts.add(body.metadata.name);
        return send(201, body);
      }
      const missing = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        reason: "NotFound",
        code: 404,
        message: "not found",
      };
      if (!accounts.has(own[1])) return send(404, missing);
      const expirationTimestamp = new Date(Date.now() + 3_600_000).toISOString();
      return send(201, { ...body, status: { token: `token-of-${own[1]}`, expirationTimestamp } });
    }
    if (request.method === "POST") {
      writes.push({ path: url.pathname, name: body.metadata?.name, authorization: request.headers.authorization ?? "" });
      return send(201, body);
    }
    if (url.searchParams.has("watch")) return void response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    const namespace = { metadata: { name: "web", uid: "u", resourceVersion: "1" }, status: { phase: "Active" } };
    send(200, { metadata: { resourceVersion: "1" }, items: url.pathname === "/api/v1/namespaces" ? [namespace] : [] });
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { host: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, writes };
}

import { startJsonServer } from "./json-server.ts";

interface SmallApi {
  readonly host: string;
  /** All created objects except ServiceAccounts and tokens, in order. */
  readonly writes: readonly { readonly path: string; readonly name: string; readonly authorization: string }[];
}

/**
 * A minimal API server for the manager, with one empty namespace. Tokens are named after their ServiceAccount, which
 * does not exist until it is created.
 */
export async function startSmallApi(t: { after(fn: () => void): void }): Promise<SmallApi> {
  const accounts = new Set<string>();
  const writes: SmallApi["writes"][number][] = [];
  const host = await startJsonServer(t, ({ method, url, body, authorization, send }) => {
    const own = /^\/api\/v1\/namespaces\/kube-system\/serviceaccounts(?:\/([^/]+)\/token)?$/.exec(url.pathname);
    if (method === "POST" && own !== null) {
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
    if (method === "POST") {
      writes.push({ path: url.pathname, name: body.metadata?.name, authorization });
      return send(201, body);
    }
    const namespace = { metadata: { name: "web", uid: "u", resourceVersion: "1" }, status: { phase: "Active" } };
    send(200, { metadata: { resourceVersion: "1" }, items: url.pathname === "/api/v1/namespaces" ? [namespace] : [] });
  });
  return { host, writes };
}

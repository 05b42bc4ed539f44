import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Patch } from "@coxswain/apimachinery/client/client";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { builtInResources } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { FakeClient } from "@coxswain/apimachinery/testing/fake-client";

/** Serves the objects of a fake client as an API server does, in JSON. @returns its address */
export async function serveClient(t: { after(fn: () => void): void }, client: FakeClient): Promise<string> {
  const server = createServer((request, response) => {
    answer(client, request, response).catch((err: unknown) => {
      const status = err instanceof StatusError ? err.status : { kind: "Status", apiVersion: "v1", status: "Failure", code: 500 };
      if (response.headersSent) response.destroy();
      else send(response, status.code ?? 500, { ...status, message: String(err) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Target {
  ref: ResourceRef;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

/** Parses `/api/v1/[namespaces/<namespace>/]<resource>[/<name>[/<subresource>]]`, or the same below `/apis/<group>/<version>`. */
function targetOf(path: string): Target {
  const [, root, ...parts] = path.split("/");
  const group = root === "apis" ? (parts.shift() ?? "") : "";
  const version = parts.shift();
  const namespace = parts[0] === "namespaces" && parts.length > 2 ? parts.splice(0, 2)[1] : undefined;
  const [resource, name, subresource] = parts;
  const ref = builtInResources.find((row) => row.group === group && row.version === version && row.resource === resource);
  if (ref === undefined) throw new Error(`${path} is no resource`);
  return { ref, namespace, name, subresource };
}

async function answer(client: FakeClient, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "", "http://server");
  const { ref, namespace, name, subresource } = targetOf(url.pathname);
  const sent = await text(request);
  const body = (): Unstructured => JSON.parse(sent);
  const query = Object.fromEntries(url.searchParams);
  const named = { namespace, name: name ?? "", subresource };
  if (request.method === "GET" && query["watch"] === "true") {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    const { resourceVersion, fieldSelector, labelSelector } = query;
    const options = { signal: gone.signal, resourceVersion, fieldSelector, labelSelector };
    for await (const event of client.watch(ref, { namespace }, options)) response.write(`${JSON.stringify(event)}\n`);
    return void response.end();
  }
  switch (request.method) {
    case "GET":
      return send(response, 200, await (name === undefined ? client.list(ref, { namespace }, query) : client.get(ref, named)));
    case "POST":
      return send(
        response,
        201,
        await client.create(ref, body(), { namespace, ...(name !== undefined && { name, subresource }) }),
      );
    case "PUT":
      return send(response, 200, await client.update(ref, body(), { subresource }));
    case "PATCH":
      return send(
        response,
        200,
        await client.patch(ref, named, { type: patchType(request.headers["content-type"]), body: body() }),
      );
    default:
      await client.delete(ref, named, sent === "" ? {} : body());
      return send(response, 200, { kind: "Status", apiVersion: "v1", status: "Success" });
  }
}

function patchType(contentType = ""): Patch["type"] {
  if (contentType.startsWith("application/strategic-merge-patch")) return "strategic";
  return contentType.startsWith("application/json-patch") ? "json" : "merge";
}

function send(response: ServerResponse, status: number, object: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(object));
}

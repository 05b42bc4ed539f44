import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface JsonRequest {
  readonly method: string | undefined;
  readonly url: URL;
  /** Parsed body; undefined when none was sent. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever a test sends
  readonly body: any;
  readonly authorization: string;
  send(code: number, value: object): void;
}

/**
 * Starts an HTTP server in place of an API server: `answer` handles requests; watches stay open without events.
 * @returns its URL `http://127.0.0.1:…`
 */
export async function startJsonServer(
  t: { after(fn: () => void): void },
  answer: (request: JsonRequest) => void,
  { onWatch }: { readonly onWatch?: (url: URL) => void } = {},
): Promise<string> {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "", "http://x");
    const type = { "content-type": "application/json" };
    if (request.method === "GET" && url.searchParams.has("watch")) {
      onWatch?.(url);
      return response.writeHead(200, type).flushHeaders();
    }
    answer({
      method: request.method,
      url,
      body: chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString("utf8")),
      authorization: request.headers.authorization ?? "",
      send: (code, value) => void response.writeHead(code, type).end(JSON.stringify(value)),
    });
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

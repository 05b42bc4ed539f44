import type { TestContext } from "node:test";
import { connectRaw, type RawClient, type RawClientOptions } from "../http2/testing/raw-client.ts";
import { discardLogger } from "../logging/logger.ts";
import type { ExchangeHandler } from "../serving/exchange.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "../serving/https-server.ts";
import { type TestPair, testPair } from "./tls.ts";
import { waitFor } from "./wait-for.ts";

export interface Http2Bench {
  readonly server: HttpServer;
  /** Whom its clients trust. */
  readonly ca: string;
  connect(options?: Partial<RawClientOptions>): Promise<RawClient>;
}

/**
 * `performance.now()` stands still unless it is moved: how long a client of HTTP/2 takes is up to the test then, and not to how busy
 * the machine is.
 * @returns moves it, until something is so
 */
export function holdTime(t: TestContext): (stepMs: number, isSo: () => boolean, what: string) => Promise<void> {
  let now = performance.now();
  t.mock.method(performance, "now", () => now);
  return async (stepMs, isSo, what) => {
    const look = (): boolean => {
      now += stepMs;
      return isSo();
    };
    await waitFor(look, { what });
  };
}

let pair: Promise<TestPair> | undefined;

/** A server with this handler and clients that write frames by hand; all of it ends with the test. */
export async function startHttp2Bench(
  t: TestContext,
  handler: ExchangeHandler,
  options: Partial<HttpServerOptions> = {},
): Promise<Http2Bench> {
  pair ??= testPair();
  const { cert, key, ca } = await pair;
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert, key },
    handler,
    log: discardLogger,
    ...options,
  });
  t.after(() => server.close());
  return {
    server,
    ca,
    async connect(more = {}) {
      const client = await connectRaw({ port: server.port, ca, ...more });
      t.after(() => void client.socket.destroy());
      return client;
    },
  };
}

import http2 from "node:http2";
import type { Clock, Timer } from "../clock/clock.ts";
import { asError, ConnectionLost, NotProcessed } from "./transport-errors.ts";
import type { TransportRequest, TransportResponse } from "./transport-messages.ts";

export interface PingOptions {
  readonly clock: Clock;
  readonly pingIntervalMs?: number;
  readonly pingTimeoutMs?: number;
}

/** Sends periodic pings and destroys a session whose server does not respond, so that watches end instead of hanging. */
export function keepAsking(session: http2.ClientHttp2Session, options: PingOptions): Timer {
  const { clock, pingIntervalMs = 30_000, pingTimeoutMs = 15_000 } = options;
  let waiting: Timer | undefined;
  const asking = clock.every(pingIntervalMs, () => {
    if (waiting !== undefined || session.destroyed) return;
    waiting = clock.after(pingTimeoutMs, () => session.destroy(new ConnectionLost("the server does not answer pings")));
    session.ping(() => {
      waiting?.cancel();
      waiting = undefined;
    });
  });
  return {
    cancel() {
      asking.cancel();
      waiting?.cancel();
    },
  };
}

/**
 * Sends a request over HTTP/2. Resolves with the head of the response; rejects with NotProcessed if it is safe to retry.
 * @param release called once, when the stream is closed
 */
export function requestOverHttp2(
  session: http2.ClientHttp2Session,
  url: URL,
  request: TransportRequest,
  release: () => void,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const { body, signal } = request;
    let stream: http2.ClientHttp2Stream;
    try {
      signal?.throwIfAborted();
      stream = openStream(session, url, request);
    } catch (err) {
      release();
      return reject(err);
    }
    let answered = false;
    const onAbort = (): void => {
      reject(signal?.reason);
      stream.close(http2.constants.NGHTTP2_CANCEL);
      stream.destroy(asError(signal?.reason));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    stream.once("response", (received) => {
      answered = true;
      resolve({ status: Number(received[":status"]), headers: received, body: stream });
    });
    stream.on("error", (err) => {
      if (!answered) reject(refused(stream) ? new NotProcessed("the server refused the stream", { cause: err }) : err);
    });
    stream.once("close", () => {
      release();
      signal?.removeEventListener("abort", onAbort);
      if (answered) return;
      reject(
        refused(stream)
          ? new NotProcessed("the server refused the stream")
          : new ConnectionLost("the connection was closed before the answer"),
      );
    });
    if (body !== undefined) stream.end(body);
  });
}

function openStream(session: http2.ClientHttp2Session, url: URL, request: TransportRequest): http2.ClientHttp2Stream {
  if (session.closed || session.destroyed) throw new NotProcessed("the connection was closed before the request was sent");
  const { method, path, headers, body } = request;
  return session.request(
    {
      ...(headers as http2.OutgoingHttpHeaders),
      ":method": method,
      ":path": path,
      ":authority": url.host,
      ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
    },
    { endStream: body === undefined },
  );
}

function refused(stream: http2.ClientHttp2Stream): boolean {
  return stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM;
}

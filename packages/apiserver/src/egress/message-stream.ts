import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import { grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import { framedMessage, newMessageReader, statusMessage } from "@coxswain/apimachinery/grpc/messages";

/** A bidirectional gRPC call on a connection of its own. */
export interface MessageStream {
  /** @param sent called when flow control allows more data, or the stream has ended */
  send(messages: readonly Uint8Array[], sent?: () => void): void;
  /** Stops reading; messages already received are still delivered. The server is stopped by flow control. */
  pause(): void;
  resume(): void;
  /** Closes the connection. No more events are emitted. */
  close(): void;
}

export interface MessageStreamEvents {
  message(message: Buffer): void;
  /** Called last, once. @param err in gRPC's wording; undefined when the server ended the call with status OK */
  ended(err: Error | undefined): void;
}

/** Flow-control window: maximum bytes in flight while the reader is paused. */
const windowBytes = 256 * 1024;
/** Source: google.golang.org/grpc defaultClientMaxReceiveMessageSize */
const longestMessage = 4 * 1024 * 1024;

/**
 * Starts a gRPC call.
 * @param way connection to the server; closed at the end of the call
 * @param path `/ProxyService/Proxy`
 */
export function openMessageStream(way: Socket, path: string, events: MessageStreamEvents): MessageStream {
  const session = connect("http://localhost", {
    createConnection: () => way,
    settings: { enablePush: false, initialWindowSize: windowBytes },
  });
  session.setLocalWindowSize(windowBytes);
  const call = session.request(
    { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
    { endStream: false },
  );
  let isOver = false;
  const end = (err: Error | undefined): void => {
    if (isOver) return;
    isOver = true;
    session.destroy();
    events.ended(err);
  };
  const read = newMessageReader((message) => {
    if (!isOver) events.message(message);
  }, longestMessage);
  call.on("data", (chunk: Buffer) => {
    try {
      read(chunk);
    } catch (err) {
      end(failure("Internal", (err as Error).message));
    }
  });
  whenOver(session, call, end);
  return {
    send(messages, sent = () => {}) {
      if (isOver || call.destroyed) return sent();
      call.write(Buffer.concat(messages.map(framedMessage)), () => sent());
    },
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    close() {
      isOver = true;
      session.destroy();
    },
  };
}

function whenOver(session: ClientHttp2Session, call: ClientHttp2Stream, end: (err: Error | undefined) => void): void {
  let status: IncomingHttpHeaders = {};
  let cause: Error | undefined;
  call.on("response", (headers) => {
    status = headers;
  });
  call.on("trailers", (trailers) => {
    status = trailers;
  });
  const over = (): void => {
    const { [":status"]: http = 200, "grpc-status": code, "grpc-message": message = "" } = status;
    if (code === "0") end(undefined);
    else if (code !== undefined) end(failure(grpcCodeNames[Number(code)] ?? `Code(${code})`, statusMessage(String(message))));
    else if (http !== 200) end(failure("Unknown", `unexpected HTTP status code received from server: ${http}`));
    else end(failure("Unavailable", `error reading from server: ${cause?.message ?? "EOF"}`));
  };
  for (const one of [session, call]) one.on("error", (err: Error) => (cause ??= err));
  call.once("close", over);
  // The server may half-close; wait for the trailers, which arrive at about the same time.
  call.once("end", () => setImmediate(over));
}

function failure(code: string, description: string): Error {
  return new Error(`rpc error: code = ${code} desc = ${description}`);
}

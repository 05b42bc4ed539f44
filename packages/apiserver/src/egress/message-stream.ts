import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import { grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import { framedMessage, newMessageReader, statusMessage } from "@coxswain/apimachinery/http2/grpc-messages";

/** A gRPC call with messages both ways, on a connection of its own. */
export interface MessageStream {
  /** @param sent called when the server lets more come, or the stream is over */
  send(messages: readonly Uint8Array[], sent?: () => void): void;
  /** Few messages still come: those that are here already. The server is held up by its window. */
  pause(): void;
  resume(): void;
  /** Ends the connection. Nothing is told any more. */
  close(): void;
}

export interface MessageStreamEvents {
  message(message: Buffer): void;
  /** Last, once. @param err in gRPC's words; undefined when the server ended the call in good order */
  ended(err: Error | undefined): void;
}

/** What may be on its way to somebody who does not read. */
const windowBytes = 256 * 1024;
/** Source: google.golang.org/grpc defaultClientMaxReceiveMessageSize */
const longestMessage = 4 * 1024 * 1024;

/** @param path `/ProxyService/Proxy` */
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
  // A server may end its side alone; what it says by trailers is told at about the same time.
  call.once("end", () => setImmediate(over));
}

function failure(code: string, description: string): Error {
  return new Error(`rpc error: code = ${code} desc = ${description}`);
}

import type { Socket } from "node:net";
import { MessageStream, RequestBlocks } from "@coxswain/apimachinery/transport/grpc/call";
import type { GrpcError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import { ClientConnection } from "@coxswain/apimachinery/transport/http2/client/connection";

interface MessageStreamEvents {
  message(message: Buffer): void;
  /** Called last, once. @param err undefined when the server ended the call with status OK */
  ended(err: GrpcError | undefined): void;
}

/** Flow-control window: maximum bytes in flight while the reader is paused. */
const windowBytes = 256 * 1024;
/** Source: google.golang.org/grpc defaultClientMaxReceiveMessageSize */
const mostMessageBytes = 4 * 1024 * 1024;
const blocks = new RequestBlocks({ scheme: "http", authority: "localhost" });
const noBytes = Buffer.alloc(0);

/**
 * Starts a bidirectional gRPC call on a new connection.
 * @param socket connection to the server; closed at the end of the call
 * @param path `/ProxyService/Proxy`
 */
export function openMessageStream(socket: Socket, path: string, events: MessageStreamEvents): MessageStream {
  const windows = { streamWindowBytes: windowBytes, connectionWindowBytes: windowBytes };
  const connection = new ClientConnection(socket, windows, { ready() {}, leaving() {}, closed() {} });
  const onOver = (): void => connection.close();
  const stream = new MessageStream(events, { mostMessageBytes, onOver });
  stream.start((handlers) => connection.request(blocks.get(path, "", "", undefined), noBytes, false, handlers));
  return stream;
}

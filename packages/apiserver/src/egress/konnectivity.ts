/**
 * Connections through a konnectivity server, whose agents dial the target. Each connection uses a separate gRPC call, so
 * that flow control works per connection and a slow reader blocks no other connection.
 * Source: sigs.k8s.io/apiserver-network-proxy konnectivity-client/pkg/client
 */
import { randomInt } from "node:crypto";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Connection } from "@coxswain/apimachinery/transport/connect";
import type { MessageStream } from "@coxswain/apimachinery/transport/grpc/call";
import { decodePacket, encodeCloseRequest, encodeData, encodeDialRequest, type Packet } from "./konnectivity-packets.ts";
import { openMessageStream } from "./message-stream.ts";

const closeTimeoutMs = 10_000;
/** Payload of one data packet; the server's message limit is 4 MiB. */
const mostDataBytes = 64 * 1024;
const mostRandom = 2 ** 47;

/**
 * @param tunnel connection to the konnectivity server; closed together with the tunnel
 * @param target `10.0.0.7:443`
 * @throws Error reported by the agent or the server, or the abort reason of `signal`
 */
export function connectThroughKonnectivity(
  tunnel: Socket,
  _proxy: unknown,
  target: string,
  signal: AbortSignal,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const random = String(randomInt(1, mostRandom));
    let made: TunnelledConnection | undefined;
    const fail = (message: string): void => {
      stream.cancel();
      reject(new Error(message));
    };
    const giveUp = (): void => fail(signal.reason.message);
    const answered = (packet: Packet): void => {
      if (!("random" in packet) || packet.random !== random) return;
      const refused = packet.type === "dialled" ? packet.error : "dial closed";
      if (packet.type !== "dialled" || refused !== "") {
        fail(refused);
        return;
      }
      signal.removeEventListener("abort", giveUp);
      made = new TunnelledConnection(stream, tunnel, packet.connection);
      resolve(made);
    };
    const stream = openMessageStream(tunnel, "/ProxyService/Proxy", {
      message(bytes) {
        const packet = decodePacket(bytes);
        if (made === undefined) answered(packet);
        else made.receive(packet);
      },
      ended(err) {
        if (made === undefined) fail(err?.message ?? "tunnel closed");
        else made.close();
      },
    });
    signal.addEventListener("abort", giveUp, { once: true });
    stream.write(encodeDialRequest(target, random));
  });
}

/**
 * Sends written bytes as data packets. The protocol has no half-close: after a close request, data in flight may still be
 * received, but nothing can be sent.
 */
class TunnelledConnection extends Duplex implements Connection {
  readonly #stream: MessageStream;
  readonly #tunnel: Socket;
  readonly #connection: string;
  /** A close was sent or received. */
  #closing = false;
  #closed = false;
  #patience: NodeJS.Timeout | undefined;

  constructor(stream: MessageStream, tunnel: Socket, connection: string) {
    super({ allowHalfOpen: false });
    this.#stream = stream;
    this.#tunnel = tunnel;
    this.#connection = connection;
  }

  receive(packet: Packet): void {
    if (packet.type !== "data" && packet.type !== "closed") return;
    if (packet.connection !== this.#connection) return;
    if (packet.type === "closed") this.close();
    else if (!this.destroyed && !this.push(packet.bytes)) this.#stream.pause();
  }

  /** Ends the readable side; a lost server looks like a peer that closes the connection. */
  close(): void {
    if (this.#closed) return;
    this.#closed = this.#closing = true;
    clearTimeout(this.#patience);
    this.#stream.cancel();
    if (this.destroyed) return;
    this.push(null);
    this.read(0); // emits "end" even without a reader
  }

  /** Sends the close request once and waits for the response, up to closeTimeoutMs. */
  #requestClose(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#stream.write(encodeCloseRequest(this.#connection));
    this.#tunnel.unref();
    this.#patience = setTimeout(() => {
      this.close();
      this.destroy();
    }, closeTimeoutMs).unref();
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this._writev([{ chunk, encoding }], done);
  }

  override _writev(chunks: readonly { chunk: Buffer | string; encoding: BufferEncoding }[], done: () => void): void {
    const bytes = chunks.map(({ chunk, encoding }) => (typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk));
    const packets: Buffer[] = [];
    for (const all of bytes) {
      for (let at = 0; at < all.length; at += mostDataBytes) {
        packets.push(encodeData(this.#connection, all.subarray(at, at + mostDataBytes)));
      }
    }
    const last = packets.pop();
    for (const packet of packets) this.#stream.write(packet);
    if (last === undefined) done();
    else this.#stream.write(last, done);
  }

  override _final(done: () => void): void {
    this.#requestClose();
    done();
  }

  override _destroy(err: Error | null, done: (err?: Error | null) => void): void {
    this.#requestClose();
    this.#stream.resume(); // discards data until the close response
    done(err);
  }

  destroySoon(): void {
    this.end(() => this.destroy());
  }
}

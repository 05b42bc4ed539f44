/** Proxies for tests of egress selections: an HTTP CONNECT proxy and a konnectivity server. */
import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import protobuf from "protobufjs";

export interface EgressProxy {
  /** Requested targets, such as `10.0.0.7:443`. */
  readonly requested: readonly string[];
  /** Listening port; 0 for a unix socket. */
  readonly port: number;
  /** Stops the proxy and closes all its connections. */
  stop(): Promise<void>;
}

interface ProxyOptions {
  /** Path of a unix socket, or a port. */
  readonly at: string | number;
  /** Port of this machine to connect to for a target; undefined refuses the connection. */
  readonly portOf: (target: string) => number | undefined;
}

/** An HTTP CONNECT proxy; refused targets get a 502. @param tls serves TLS */
export async function startConnectProxy({ at, portOf }: ProxyOptions, tls?: ServerOptions): Promise<EgressProxy> {
  const proxy: HttpServer = tls === undefined ? createServer() : createHttpsServer(tls);
  const requested: string[] = [];
  const led = new Set<Duplex>();
  proxy.on("connection", (socket: Socket) => led.add(socket));
  proxy.on("connect", (request, socket) => {
    const target = request.url ?? "";
    requested.push(target);
    const port = portOf(target);
    // Like Go's servers, rejects a path as host.
    if (request.headers.host?.includes("/")) return socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    if (port === undefined) return socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const behind = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      for (const [from, to] of [
        [behind, socket],
        [socket, behind],
      ] as const)
        pipeline(from, to, () => {});
    });
    for (const end of [behind, socket]) led.add(end.on("error", () => {}));
  });
  if (typeof at === "string") proxy.listen(at);
  else proxy.listen(at, "127.0.0.1");
  await once(proxy, "listening");
  return {
    requested,
    port: typeof at === "string" ? 0 : (proxy.address() as AddressInfo).port,
    async stop() {
      const gone = proxy.listening ? once(proxy, "close") : undefined;
      proxy.close();
      for (const end of led) end.destroy();
      await gone;
    },
  };
}

/**
 * Own copy of the schema, independent of the code under test.
 * Source: apiserver-network-proxy konnectivity-client/proto/client/client.proto
 */
const definition = `
syntax = "proto3";
enum PacketType { DIAL_REQ = 0; DIAL_RSP = 1; CLOSE_REQ = 2; CLOSE_RSP = 3; DATA = 4; DIAL_CLS = 5; }
message Packet {
  PacketType type = 1;
  oneof payload {
    DialRequest dialRequest = 2; DialResponse dialResponse = 3; Data data = 4; CloseRequest closeRequest = 5;
    CloseResponse closeResponse = 6; CloseDial closeDial = 7;
  }
}
message DialRequest { string protocol = 1; string address = 2; int64 random = 3; }
message DialResponse { string error = 1; int64 connectID = 2; int64 random = 3; string bearerToken = 4; }
message CloseRequest { int64 connectID = 1; }
message CloseResponse { string error = 1; int64 connectID = 2; }
message CloseDial { int64 random = 1; }
message Data { int64 connectID = 1; string error = 2; bytes data = 3; }
`;
const packetType = protobuf.parse(definition).root.lookupType("Packet");
// biome-ignore lint/suspicious/noExplicitAny: what protobufjs decodes has no type.
type WirePacket = any;

export type KonnectivityCall = ServerDuplexStream<WirePacket, WirePacket>;

interface KonnectivityServer extends EgressProxy {
  /** Types of received packets, in order. */
  readonly packets: readonly string[];
}

interface KonnectivityOptions extends ProxyOptions {
  /** Called for each call; `true` skips the default handling. */
  readonly onCall?: (call: KonnectivityCall) => boolean;
}

/** A konnectivity server that dials targets itself, without agents. */
export async function startKonnectivityServer({ at, portOf, onCall }: KonnectivityOptions): Promise<KonnectivityServer> {
  const server = new Server();
  const requested: string[] = [];
  const packets: string[] = [];
  const led = new Set<Socket>();
  let nextId = 2n ** 53n; // connection IDs are 64 bits wide
  const serve = (call: KonnectivityCall): void => {
    call.on("error", () => {});
    if (onCall?.(call)) return;
    let behind: Socket | undefined;
    const connectID = String(++nextId);
    const dial = ({ address, random }: WirePacket["dialRequest"]): void => {
      requested.push(address);
      const port = portOf(address);
      if (port === undefined) {
        const error = `dial tcp ${address}: connect: connection refused`;
        call.write({ type: "DIAL_RSP", dialResponse: { error, random } });
        return;
      }
      const socket = connect(port, "127.0.0.1");
      behind = socket;
      led.add(socket);
      socket.once("connect", () => call.write({ type: "DIAL_RSP", dialResponse: { connectID, random } }));
      socket.on("data", (data: Buffer) => {
        if (call.write({ type: "DATA", data: { connectID, data } })) return;
        socket.pause();
        call.once("drain", () => socket.resume());
      });
      socket.on("error", () => {});
      socket.once("close", () => call.write({ type: "CLOSE_RSP", closeResponse: { connectID } }));
    };
    call.on("data", (packet: WirePacket) => {
      packets.push(packet.type);
      if (packet.type === "DIAL_REQ") dial(packet.dialRequest);
      else if (packet.type === "CLOSE_REQ") behind?.end();
      else if (packet.type === "DATA" && behind?.write(packet.data.data) === false) {
        call.pause();
        behind.once("drain", () => call.resume());
      }
    });
    call.on("cancelled", () => behind?.destroy());
    call.on("end", () => behind?.destroy());
  };
  const serialize = (packet: object): Buffer => Buffer.from(packetType.encode(packetType.fromObject(packet)).finish());
  const deserialize = (bytes: Buffer): object =>
    packetType.toObject(packetType.decode(bytes), { enums: String, longs: String, defaults: true });
  const both = { requestStream: true, responseStream: true, requestSerialize: serialize, requestDeserialize: deserialize };
  const codec = { ...both, responseSerialize: serialize, responseDeserialize: deserialize };
  server.addService({ Proxy: { path: "/ProxyService/Proxy", ...codec } }, { Proxy: serve });
  const port = await new Promise<number>((resolve, reject) => {
    const where = typeof at === "string" ? `unix:${at}` : `127.0.0.1:${at}`;
    server.bindAsync(where, ServerCredentials.createInsecure(), (err, bound) => (err ? reject(err) : resolve(bound)));
  });
  return {
    requested,
    packets,
    port: typeof at === "string" ? 0 : port,
    async stop() {
      server.forceShutdown();
      for (const socket of led) socket.destroy();
    },
  };
}

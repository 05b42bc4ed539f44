import { connect as connectTcp, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { type Connect, connectTls } from "../connect.ts";

/** A server's address, from a gRPC target or a URL. */
export interface GrpcTarget {
  /** Name for messages: `https://10.0.0.1:2379`, `unix:///run/kms.sock`. */
  readonly name: string;
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Path of a unix socket; an abstract one begins with a NUL. */
  readonly socket?: string;
  readonly host: string;
  readonly port: number;
}

/** Certificates of a client, PEM. */
export interface GrpcIdentity {
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | undefined;
  readonly key?: Buffer | undefined;
  /** Path of the certificate, for error messages. */
  readonly certFile?: string | undefined;
}

/**
 * @param target `https://10.0.0.1:2379`, `http://…`, `10.0.0.1:4317`, `dns:///otel:4317`, `unix:///run/kms.sock`,
 * `unix-abstract:kms`
 * @throws Error for a target without an address
 * Source: https://github.com/grpc/grpc/blob/master/doc/naming.md
 */
export function grpcTarget(target: string): GrpcTarget {
  const [, unix] = /^unix:(?:\/\/)?(.+)$/.exec(target) ?? [];
  if (unix !== undefined) return socketTarget(target, unix);
  const [, abstract] = /^unix-abstract:(.+)$/.exec(target) ?? [];
  if (abstract !== undefined) return socketTarget(target, `\0${abstract}`);
  const address = target.replace(/^dns:(?:\/\/(?:[^/]*\/)?)?/, "");
  const name = /^https?:\/\//.test(address) ? address : `http://${address}`;
  const { protocol, hostname, host, port } = new URL(name);
  const isSecure = protocol === "https:";
  return {
    ...{ name, scheme: isSecure ? "https" : "http", authority: host },
    host: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    port: Number(port || (isSecure ? 443 : 80)),
  };
}

const socketTarget = (name: string, socket: string): GrpcTarget => ({
  ...{ name, scheme: "http", authority: "localhost", socket, host: "localhost", port: 0 },
});

/**
 * Starts a connection; the socket may be written to at once.
 * @param connect a dialer to use instead of a direct connection
 */
export function dialTarget(
  target: GrpcTarget,
  identity: GrpcIdentity,
  connect: Connect | undefined,
): Duplex | PromiseLike<Duplex> {
  const { host, port, socket: path } = target;
  if (path !== undefined) return connectTcp({ path });
  if (connect !== undefined)
    return connect(host, port).then((tunnel) => (target.scheme === "https" ? overTls(target, identity, tunnel) : tunnel));
  if (target.scheme === "https") return overTls(target, identity);
  return connectTcp({ host, port, noDelay: true });
}

function overTls({ host, port }: GrpcTarget, { ca, cert, key, certFile }: GrpcIdentity, tunnel?: Duplex): Duplex {
  const socket = connectTls({
    ...{ host, port },
    ...(tunnel !== undefined && { socket: tunnel }),
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ["h2"],
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    certFile,
  });
  socket.setNoDelay(true);
  return socket;
}

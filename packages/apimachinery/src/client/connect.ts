/** Servers that are reached over somebody else: a proxy, a tunnel. */
import type { Agent, AgentOptions } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from "node:tls";

/** A socket, or what stands for one. */
export interface Connection extends Duplex {
  /** Closes it when all is written. */
  destroySoon(): void;
}

/** @returns a connection to a host, on which nothing was said yet @throws Error of the way there */
export type Connect = (host: string, port: number) => Promise<Connection>;

/** Node lets `createConnection` answer later; its types do not say so. */
type LateConnection = (
  options: AgentOptions & { host: string; port: number },
  done: (err: Error | null, socket?: Duplex) => void,
) => void;

/**
 * Begins TLS, over a connection if there is one. It ends when that is not possible: nobody else would end it.
 * @throws Error for certificates that are none
 */
export function connectTls(options: Omit<ConnectionOptions, "socket"> & { socket?: Duplex }): TLSSocket {
  try {
    return tlsConnect(options);
  } catch (err) {
    options.socket?.destroy();
    throw err;
  }
}

/**
 * @param agent whose connections go over `connect` from now on
 * @param isSecure whether it speaks TLS, with the host at the far end
 * @returns the same agent
 */
export function connectingOver<A extends Agent>(agent: A, connect: Connect, isSecure: boolean): A {
  const createConnection: LateConnection = (options, done) => {
    connect(options.host, Number(options.port))
      .then((socket) => (isSecure ? connectTls({ ...options, socket }) : socket))
      .then(
        (socket) => done(null, socket),
        (err: Error) => done(err),
      );
  };
  const { keepSocketAlive } = agent;
  return Object.assign(agent, {
    createConnection,
    // What only stands for a socket has no idle time that could be bounded: it serves one request.
    keepSocketAlive: (socket: Duplex) => socket instanceof Socket && keepSocketAlive.call(agent, socket),
  });
}

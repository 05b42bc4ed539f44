import { connect as connectTcp } from "node:net";
import type { Duplex } from "node:stream";
import { duplexPair } from "node:stream";
import type { Connect, Connection } from "@coxswain/apimachinery/transport/connect";

/** Accepts connections to a host that exists only in this process. @throws Error when it is unreachable */
export type Accept = (connection: Duplex) => void;

/** Opens the API server's connections to nodes, Pods and webhooks: hosts registered in this process take precedence over the network. */
export class Dialer {
  /** By `host:port`, or by host for all ports. */
  readonly #hosts = new Map<string, Accept>();
  readonly #open = new Set<Duplex>();

  /** @param host with or without `:port`. @returns a function that removes the host */
  serve(host: string, accept: Accept): () => void {
    this.#hosts.set(host, accept);
    return () => void this.#hosts.delete(host);
  }

  readonly connect: Connect = async (host, port) => {
    const accept = this.#hosts.get(`${host}:${port}`) ?? this.#hosts.get(host);
    if (accept !== undefined) return this.#pair(accept);
    return new Promise((resolve, reject) => {
      const socket = connectTcp({ host, port });
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(this.#kept(socket));
      });
      socket.once("error", reject);
    });
  };

  /** Destroys all connections. */
  close(): void {
    for (const one of this.#open) one.destroy();
    this.#open.clear();
  }

  #pair(accept: Accept): Connection {
    const [near, far] = duplexPair();
    // As with sockets, closing one end closes the other; an end that closes without error has been read to its end.
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
    this.#kept(far as Duplex & Connection);
    try {
      accept(far);
    } catch (err) {
      far.destroy();
      throw err;
    }
    return this.#kept(Object.assign(near, { destroySoon: () => void near.end() }));
  }

  #kept<C extends Duplex>(connection: C): C {
    this.#open.add(connection);
    connection.once("close", () => void this.#open.delete(connection));
    return connection;
  }
}

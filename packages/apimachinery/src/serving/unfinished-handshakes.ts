import type { Socket } from "node:net";

/** Each takes 40 kB, and thousands that end together take a long turn of the event loop. A client needs milliseconds for one. */
const mostPerAddress = 2_000;

/** Connections whose TLS handshake has not ended. Of too many from one address the oldest is closed. */
export class UnfinishedHandshakes {
  readonly #most: number;
  /** By address and port of the client; oldest first. */
  readonly #byAddress = new Map<string, Map<number, Socket>>();

  constructor(most = mostPerAddress) {
    this.#most = most;
  }

  add(socket: Socket): void {
    const { remoteAddress, remotePort } = socket;
    if (remoteAddress === undefined || remotePort === undefined) return; // closed already
    const own = this.#byAddress.getOrInsertComputed(remoteAddress, () => new Map());
    own.set(remotePort, socket);
    socket.once("close", () => {
      if (own.get(remotePort) === socket) this.#delete(remoteAddress, remotePort);
    });
    if (own.size <= this.#most) return;
    const [oldest] = own;
    if (oldest === undefined) return;
    const [port, abandoned] = oldest;
    this.#delete(remoteAddress, port);
    abandoned.destroy();
  }

  /** @param wrapped the TLS socket of a finished handshake */
  finished({ remoteAddress = "", remotePort = 0 }: Pick<Socket, "remoteAddress" | "remotePort">): void {
    this.#delete(remoteAddress, remotePort);
  }

  #delete(address: string, port: number): void {
    const own = this.#byAddress.get(address);
    if (own?.delete(port) && own.size === 0) this.#byAddress.delete(address);
  }
}

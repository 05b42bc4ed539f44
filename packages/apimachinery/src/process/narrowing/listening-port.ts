import type { AddressInfo } from "node:net";

/** The port of a server that listens on TCP. @throws Error when it does not listen, or listens on a Unix socket */
export function listeningPort(server: { address(): AddressInfo | string | null }): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen on a port");
  return address.port;
}

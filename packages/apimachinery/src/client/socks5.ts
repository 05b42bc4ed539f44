import type { Socket } from "node:net";

const version = 5;
const withoutCredentials = 0;
const withPassword = 2;
const toConnect = 1;
const byName = 3;
/** Bytes of an address by its type; domain names are length-prefixed instead. */
const addressBytes: Readonly<Record<number, number>> = { 1: 4, 4: 16 };
const refusals = [
  "",
  "general SOCKS server failure",
  "connection not allowed by ruleset",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

/**
 * Requests a connection from a SOCKS5 proxy, which resolves the host name.
 * @param connection a connection to the proxy; afterwards it is connected to the target
 * @throws Error of the connection or the proxy; the caller has to destroy `connection` then
 * Source: RFC 1928, RFC 1929; golang.org/x/net/internal/socks
 */
export async function connectThroughSocks5(
  connection: Socket,
  target: { readonly host: string; readonly port: number },
  credentials: { readonly username: string; readonly password: string } | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { read, release } = newReader(connection, signal);
  const methods = credentials === undefined ? [withoutCredentials] : [withoutCredentials, withPassword];
  connection.write(Buffer.from([version, methods.length, ...methods]));
  const [, method] = await read(2);
  if (method === withPassword && credentials !== undefined) {
    connection.write(Buffer.concat([Buffer.from([1]), counted(credentials.username), counted(credentials.password)]));
    if ((await read(2))[1] !== 0) throw new Error("socks connect: username/password authentication failed");
  } else if (method !== withoutCredentials) throw new Error("socks connect: no acceptable authentication methods");
  const port = Buffer.alloc(2);
  port.writeUInt16BE(target.port);
  connection.write(Buffer.concat([Buffer.from([version, toConnect, 0, byName]), counted(target.host), port]));
  const [, code = 0, , kind = 0] = await read(4);
  if (code !== 0) throw new Error(`socks connect: ${refusals[code] ?? `unknown code: ${code}`}`);
  const address = kind === byName ? (await read(1))[0]! : addressBytes[kind];
  if (address === undefined) throw new Error(`socks connect: unknown address type ${kind}`);
  await read(address + 2);
  release();
}

/** Length-prefixed bytes. @throws Error above 255 bytes */
function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 255) throw new Error("socks connect: a name is too long");
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

/** Reads exact numbers of bytes from a socket, one read at a time. */
function newReader(connection: Socket, signal: AbortSignal) {
  let buffered = Buffer.alloc(0);
  let problem: Error | undefined;
  let changed: () => void = () => {};
  const onData = (bytes: Buffer): void => {
    buffered = Buffer.concat([buffered, bytes]);
    changed();
  };
  const fail = (err: Error): void => {
    problem ??= err;
    changed();
  };
  const onEnd = (): void => fail(new Error("socks connect: unexpected EOF"));
  const onAbort = (): void => fail(signal.reason);
  connection.on("data", onData).on("error", fail).on("close", onEnd).on("end", onEnd);
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    async read(length: number): Promise<Buffer> {
      while (buffered.length < length) {
        if (problem !== undefined) throw problem;
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
      }
      const bytes = buffered.subarray(0, length);
      buffered = buffered.subarray(length);
      return bytes;
    },
    /** Detaches from the socket and unshifts unread bytes. */
    release(): void {
      connection.off("data", onData).off("error", fail).off("close", onEnd).off("end", onEnd);
      signal.removeEventListener("abort", onAbort);
      connection.pause();
      if (buffered.length > 0) connection.unshift(buffered);
    },
  };
}

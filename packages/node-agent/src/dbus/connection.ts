import { connect, type Socket } from "node:net";
import { type DbusMessage, type DbusValue, decodeMessage, encodeMessage } from "./message.ts";

/** A method call; `signature` lists the types of `body`. */
interface DbusCall {
  destination: string;
  path: string;
  interface: string;
  member: string;
  signature?: string;
  body?: readonly DbusValue[];
}

/** An error reply. */
export class DbusError extends Error {
  /** `org.freedesktop.systemd1.UnitExists` */
  readonly errorName: string;

  constructor(errorName: string, message: string) {
    super(message);
    this.errorName = errorName;
  }
}

/** The connection ended before the reply: whether the call was executed is unknown. */
export class DbusClosed extends Error {}

const systemBus = "unix:path=/var/run/dbus/system_bus_socket";
const busName = "org.freedesktop.DBus";
const busPath = "/org/freedesktop/DBus";
const callTimeoutMs = 25_000;

/**
 * Connects to the system bus as the user of this process. File descriptors cannot be passed: Node.js cannot receive them.
 * @param address `unix:path=…`; default `DBUS_SYSTEM_BUS_ADDRESS`, else the well-known path
 * Source: the D-Bus Specification
 */
export async function connectToBus(address = process.env["DBUS_SYSTEM_BUS_ADDRESS"] || systemBus): Promise<DbusConnection> {
  const bus = { destination: busName, path: busPath, interface: busName };
  const connection = await connectTo(address, async (rule) => {
    await connection.call({ ...bus, member: "AddMatch", signature: "s", body: [rule] });
  });
  try {
    await connection.call({ ...bus, member: "Hello" });
  } catch (err) {
    connection.close();
    throw err;
  }
  return connection;
}

/** A peer-to-peer connection without a bus: destinations are not used, and all signals are delivered. */
export const connectToPeer = (address: string): Promise<DbusConnection> => connectTo(address, async () => undefined);

async function connectTo(address: string, addMatch: (rule: string) => Promise<void>): Promise<DbusConnection> {
  return new DbusConnection(await open(address), addMatch);
}

/** A D-Bus connection, to a bus or peer to peer. */
export class DbusConnection {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly closed: Promise<void>;
  readonly #addMatch: (rule: string) => Promise<void>;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, { resolve: (body: readonly DbusValue[]) => void; reject: (err: Error) => void }>();
  readonly #listeners: ((message: DbusMessage) => void)[] = [];
  #handler: Parameters<DbusConnection["answer"]>[0] = () => undefined;
  #serial = 0;
  #received: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, addMatch: (rule: string) => Promise<void>) {
    this.#addMatch = addMatch;
    this.#socket = socket;
    this.closed = new Promise<void>((resolve) => {
      this.#socket.once("close", () => {
        for (const { reject } of this.#waiting.values()) reject(new DbusClosed("connection to the message bus closed"));
        resolve();
      });
    });
    this.#socket.on("error", () => undefined); // "close" follows
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  /** @returns the values of the reply. @throws DbusError for an error reply; DbusClosed when the connection ends */
  call({ signature = "", body = [], ...request }: DbusCall): Promise<readonly DbusValue[]> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new DbusClosed("connection to the message bus closed"));
      const own = this.#send({ kind: "call", ...request, signature, body });
      const timer = setTimeout(() => {
        this.#waiting.delete(own);
        reject(new Error(`D-Bus call ${request.interface}.${request.member}: no reply within ${callTimeoutMs / 1000} s`));
      }, callTimeoutMs);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          settle(value);
        };
      this.#waiting.set(own, { resolve: settled(resolve), reject: settled(reject) });
    });
  }

  /** Subscribes to a signal. */
  async onSignal(
    match: { path: string; interface: string; member: string },
    heard: (body: readonly DbusValue[]) => void,
  ): Promise<void> {
    this.#listeners.push((message) => {
      if (message.path === match.path && message.interface === match.interface && message.member === match.member) {
        heard(message.body);
      }
    });
    await this.#addMatch(`type='signal',path='${match.path}',interface='${match.interface}',member='${match.member}'`);
  }

  /** Sets the handler for incoming calls: undefined results in an UnknownMethod error, a thrown DbusError in that error. */
  answer(next: (call: DbusMessage) => { signature: string; body: readonly DbusValue[] } | undefined): void {
    this.#handler = next;
  }

  emit({ signature = "", body = [], ...signal }: Omit<DbusCall, "destination">): void {
    this.#send({ kind: "signal", ...signal, signature, body });
  }

  /** Closes the connection; pending calls reject. */
  close(): void {
    this.#socket.destroy();
  }

  #send(message: Omit<DbusMessage, "serial">): number {
    this.#socket.write(encodeMessage({ ...message, serial: ++this.#serial }));
    return this.#serial;
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    try {
      for (let next = decodeMessage(this.#received); next !== undefined; next = decodeMessage(this.#received)) {
        this.#received = this.#received.subarray(next.size);
        this.#take(next.message);
      }
    } catch {
      this.#socket.destroy(); // the start of the next message is unknown
    }
  }

  #take(message: DbusMessage): void {
    const { kind, replySerial = 0, body } = message;
    if (kind === "signal") for (const listener of this.#listeners) listener(message);
    if (kind === "call") this.#answerTo(message);
    const asker = this.#waiting.get(replySerial);
    if (asker === undefined) return;
    this.#waiting.delete(replySerial);
    if (kind === "return") asker.resolve(body);
    else asker.reject(new DbusError(message.errorName ?? "", String(body[0] ?? message.errorName ?? "unknown error")));
  }

  #answerTo(message: DbusMessage): void {
    const back = { destination: message.sender ?? "", replySerial: message.serial };
    try {
      const answer = this.#handler(message);
      if (answer === undefined) throw new DbusError("org.freedesktop.DBus.Error.UnknownMethod", "No such method");
      this.#send({ kind: "return", ...back, ...answer });
    } catch (err) {
      if (!(err instanceof DbusError)) throw err;
      this.#send({ kind: "error", ...back, errorName: err.errorName, signature: "s", body: [err.message] });
    }
  }
}

/** Connects and authenticates with EXTERNAL: the peer knows the UID from the socket credentials. */
async function open(address: string): Promise<Socket> {
  const path = address.split(";").flatMap((one) => (one.startsWith("unix:path=") ? one.slice(10).split(",")[0] : []) ?? [])[0];
  if (path === undefined) throw new Error(`no unix socket in the bus address ${address}`);
  const socket = connect(path);
  try {
    await new Promise<void>((resolve, reject) => {
      let answer = "";
      const hear = (chunk: Buffer): void => {
        answer += chunk.toString("latin1");
        const end = answer.indexOf("\r\n");
        if (end < 0 && answer.length < 1024) return;
        socket.off("data", hear);
        if (answer.startsWith("OK ")) resolve();
        else reject(new Error(`the message bus refused authentication: ${answer.slice(0, Math.max(0, end))}`));
      };
      socket.on("data", hear);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the message bus closed the connection")));
      const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString("hex");
      socket.write(`\0AUTH EXTERNAL ${uid}\r\n`);
    });
    socket.write("BEGIN\r\n");
    return socket;
  } catch (err) {
    socket.destroy();
    throw err;
  }
}

import { connect, type Socket } from "node:net";
import { type DbusMessage, type DbusValue, decodeMessage, encodeMessage } from "./dbus-message.ts";

export interface DbusCall {
  destination: string;
  path: string;
  interface: string;
  member: string;
  signature?: string;
  body?: readonly DbusValue[];
}

export interface DbusConnection {
  /** @returns the answer's values. @throws Error with the other side's words */
  call(request: DbusCall): Promise<readonly DbusValue[]>;
  /** Hears signals of that name from now on. */
  onSignal(
    match: { path: string; interface: string; member: string },
    heard: (body: readonly DbusValue[]) => void,
  ): Promise<void>;
  /** Answers calls to this connection; an undefined answer is an error for the caller. */
  answer(handler: (call: DbusMessage) => { signature: string; body: readonly DbusValue[] } | undefined): void;
  emit(signal: Omit<DbusCall, "destination">): void;
  /** Resolves when the connection has ended, whoever ended it. */
  closed: Promise<void>;
  close(): void;
}

const systemBus = "unix:path=/var/run/dbus/system_bus_socket";
const busName = "org.freedesktop.DBus";
const busPath = "/org/freedesktop/DBus";
const callTimeoutMs = 25_000;

/**
 * A connection to the system's message bus, as this process' user. File descriptors cannot be passed over it: Node has no
 * way to receive any.
 * @param address `unix:path=…`; of `DBUS_SYSTEM_BUS_ADDRESS`, else where the system's bus always is
 * Source: the D-Bus Specification
 */
export async function connectToBus(address = process.env["DBUS_SYSTEM_BUS_ADDRESS"] || systemBus): Promise<DbusConnection> {
  const socket = await open(address);
  const waiting = new Map<number, { resolve: (body: readonly DbusValue[]) => void; reject: (err: Error) => void }>();
  const listeners: ((message: DbusMessage) => void)[] = [];
  let handler: Parameters<DbusConnection["answer"]>[0] = () => undefined;
  let serial = 0;
  let received: Buffer = Buffer.alloc(0);

  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      for (const { reject } of waiting.values()) reject(new Error("connection to the message bus closed"));
      resolve();
    });
  });
  const send = (message: Omit<DbusMessage, "serial">): number => {
    socket.write(encodeMessage({ ...message, serial: ++serial }));
    return serial;
  };

  function take(message: DbusMessage): void {
    const { kind, replySerial = 0, body } = message;
    if (kind === "signal") for (const listener of listeners) listener(message);
    if (kind === "call") {
      const { sender: destination = "", serial: answers } = message;
      const answer = handler(message);
      const back = { destination, replySerial: answers };
      if (answer !== undefined) send({ kind: "return", ...back, ...answer });
      else {
        const errorName = "org.freedesktop.DBus.Error.UnknownMethod";
        send({ kind: "error", ...back, errorName, signature: "s", body: ["No such method"] });
      }
    }
    const asker = waiting.get(replySerial);
    if (asker === undefined) return;
    waiting.delete(replySerial);
    if (kind === "return") asker.resolve(body);
    else asker.reject(new Error(String(body[0] ?? message.errorName ?? "unknown error")));
  }

  socket.on("error", () => undefined); // "close" follows
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    try {
      for (let next = decodeMessage(received); next !== undefined; next = decodeMessage(received)) {
        received = received.subarray(next.size);
        take(next.message);
      }
    } catch {
      socket.destroy(); // nobody knows where the next message begins
    }
  });

  function call({ signature = "", body = [], ...request }: DbusCall): Promise<readonly DbusValue[]> {
    return new Promise((resolve, reject) => {
      const own = send({ kind: "call", ...request, signature, body });
      const timer = setTimeout(() => {
        waiting.delete(own);
        reject(new Error(`${request.interface}.${request.member} was not answered`));
      }, callTimeoutMs);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          settle(value);
        };
      waiting.set(own, { resolve: settled(resolve), reject: settled(reject) });
    });
  }

  const connection: DbusConnection = {
    call,
    async onSignal(match, heard) {
      listeners.push((message) => {
        if (message.path === match.path && message.interface === match.interface && message.member === match.member) {
          heard(message.body);
        }
      });
      const rule = `type='signal',path='${match.path}',interface='${match.interface}',member='${match.member}'`;
      const bus = { destination: busName, path: busPath, interface: busName };
      await call({ ...bus, member: "AddMatch", signature: "s", body: [rule] });
    },
    answer(next) {
      handler = next;
    },
    emit: ({ signature = "", body = [], ...signal }) => void send({ kind: "signal", ...signal, signature, body }),
    closed,
    close: () => socket.destroy(),
  };
  try {
    await call({ destination: busName, path: busPath, interface: busName, member: "Hello" });
  } catch (err) {
    socket.destroy();
    throw err;
  }
  return connection;
}

/** Connects and says who we are: the kernel has told the bus already. */
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
        else reject(new Error(`the message bus does not let us in: ${answer.slice(0, Math.max(0, end))}`));
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

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DbusError } from "../dbus/connection.ts";
import { type DbusMessage, type DbusValue, decodeMessage, encodeMessage, type Variant } from "../dbus/message.ts";

/** A fake systemd manager at a private socket, using the peer-to-peer D-Bus protocol of systemd's own socket. */
export interface PlayedSystemd {
  address: string;
  /** Properties by unit. */
  units: Map<string, Map<string, DbusValue>>;
  /** Calls in order, as method and unit: `StopUnit a.slice`. */
  calls: string[];
  /** Result of the next job instead of `done`; `"never"` for a job that does not finish. */
  nextResult: string | undefined;
  /** Number of calls whose connection is closed before the call is executed, or before it is answered. */
  cutOff: { unheard: number; unanswered: number };
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface PlayedSystemdOptions {
  onStart?: (unit: string) => void;
  onStop?: (unit: string) => void;
}

const service = "org.freedesktop.systemd1";
const object = "/org/freedesktop/systemd1";

export async function playSystemd(
  t: { after(fn: () => Promise<void>): void },
  options: PlayedSystemdOptions = {},
): Promise<PlayedSystemd> {
  const dir = await mkdtemp(join(tmpdir(), "cox-played-systemd-"));
  const path = join(dir, "private");
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let jobs = 0;
  let sent = 0;
  const played: PlayedSystemd = {
    address: `unix:path=${path}`,
    units: new Map(),
    calls: [],
    nextResult: undefined,
    cutOff: { unheard: 0, unanswered: 0 },
    async stop() {
      for (const socket of sockets) socket.destroy();
      const closing = server;
      server = undefined;
      if (closing !== undefined) await new Promise((resolve) => closing.close(resolve));
    },
    async start() {
      server = createServer(serve).listen(path);
      await once(server, "listening");
    },
  };
  t.after(async () => {
    await played.stop();
    await rm(dir, { recursive: true, force: true });
  });
  await played.start();
  return played;

  function serve(socket: Socket): void {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    let received: Buffer = Buffer.alloc(0);
    let begun = false;
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (!begun) {
        const end = received.indexOf("BEGIN\r\n");
        if (end < 0) return void socket.write("OK 1234deadbeef\r\n");
        begun = true;
        received = received.subarray(end + "BEGIN\r\n".length);
      }
      for (let next = decodeMessage(received); next !== undefined; next = decodeMessage(received)) {
        received = received.subarray(next.size);
        hear(socket, next.message);
      }
    });
  }

  function set(unit: string, properties: DbusValue): void {
    const known = played.units.get(unit) ?? new Map<string, DbusValue>();
    for (const [name, { value }] of properties as unknown as [string, Variant][]) known.set(name, value);
    played.units.set(unit, known);
  }

  /** @returns whether the call creates a job. @throws DbusError */
  function obey(member: string, unit: string, properties: DbusValue | undefined): boolean {
    const there = played.units.has(unit);
    switch (member) {
      case "StartTransientUnit":
        if (there) throw new DbusError(`${service}.UnitExists`, `Unit ${unit} was already loaded or has a fragment file.`);
        set(unit, properties ?? []);
        options.onStart?.(unit);
        return true;
      case "SetUnitProperties":
        if (!there) throw new DbusError(`${service}.NoSuchUnit`, `Unit ${unit} not loaded.`);
        set(unit, properties ?? []);
        return false;
      case "StopUnit":
        if (!there) throw new DbusError(`${service}.NoSuchUnit`, `Unit ${unit} not loaded.`);
        played.units.delete(unit);
        options.onStop?.(unit);
        return true;
      case "ResetFailedUnit":
        played.units.delete(unit);
        return false;
      default:
        throw new DbusError("org.freedesktop.DBus.Error.UnknownMethod", `Unknown method ${member}`);
    }
  }

  function cut(socket: Socket, which: keyof PlayedSystemd["cutOff"]): boolean {
    if (played.cutOff[which] === 0) return false;
    played.cutOff[which]--;
    socket.destroy();
    return true;
  }

  function hear(socket: Socket, { member = "", serial: replySerial, body }: DbusMessage): void {
    if (cut(socket, "unheard")) return;
    const [unit, , properties] = body as [string, DbusValue, DbusValue | undefined];
    played.calls.push(`${member} ${unit}`);
    const send = (message: Omit<DbusMessage, "serial">): void => void socket.write(encodeMessage({ ...message, serial: ++sent }));
    let makesJob: boolean;
    try {
      makesJob = obey(member, unit, properties);
    } catch (err) {
      const { errorName, message } = err as DbusError;
      send({ kind: "error", replySerial, errorName, signature: "s", body: [message] });
      return;
    }
    if (!makesJob) {
      send({ kind: "return", replySerial, body: [] });
      return;
    }
    if (cut(socket, "unanswered")) return;
    const id = ++jobs;
    const result = played.nextResult ?? "done";
    played.nextResult = undefined;
    const reply = { kind: "return", replySerial, signature: "o", body: [`${object}/job/${id}`] } as const;
    const removed = { kind: "signal", path: object, interface: `${service}.Manager`, member: "JobRemoved" } as const;
    const end = { ...removed, signature: "uoss", body: [id, `${object}/job/${id}`, unit, result] } as const;
    const messages = result === "never" ? [reply] : [reply, end];
    // systemd may send JobRemoved before the method return.
    for (const message of id % 2 === 0 ? messages.toReversed() : messages) send(message);
  }
}

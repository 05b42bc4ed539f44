import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DbusError } from "../dbus/connection.ts";
import { type DbusMessage, type DbusValue, decodeMessage, encodeMessage, type Variant } from "../dbus/message.ts";

interface FakeSystemdOptions {
  readonly onStart?: (unit: string) => void;
  readonly onStop?: (unit: string) => void;
}

const service = "org.freedesktop.systemd1";
const object = "/org/freedesktop/systemd1";

/** Starts a fake systemd manager, which is stopped at the end of the test. */
export async function startFakeSystemd(
  t: { after(fn: () => Promise<void>): void },
  options: FakeSystemdOptions = {},
): Promise<FakeSystemd> {
  const dir = await mkdtemp(join(tmpdir(), "cox-fake-systemd-"));
  const systemd = new FakeSystemd(join(dir, "private"), options);
  t.after(async () => {
    await systemd.stop();
    await rm(dir, { recursive: true, force: true });
  });
  await systemd.start();
  return systemd;
}

/** A systemd manager at a private socket, using the peer-to-peer D-Bus protocol of systemd's own socket. */
export class FakeSystemd {
  readonly address: string;
  /** Properties by unit. */
  readonly units = new Map<string, Map<string, DbusValue>>();
  /** Calls in order, as method and unit: `StopUnit a.slice`. */
  readonly calls: string[] = [];
  /** The second argument of each of these calls: a job's mode, or whether properties last until the next boot only. */
  readonly manners: DbusValue[] = [];
  /** Result of the next job instead of `done`; `"never"` for a job that does not finish. */
  nextResult: string | undefined;
  /** When set, jobs end only when these are called. */
  held: (() => void)[] | undefined;
  /** Number of calls whose connection is closed before the call is executed, or before it is answered. */
  cutOff = { unheard: 0, unanswered: 0 };
  readonly #path: string;
  readonly #options: FakeSystemdOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #jobs = 0;
  #sent = 0;

  constructor(path: string, options: FakeSystemdOptions) {
    this.#path = path;
    this.address = `unix:path=${path}`;
    this.#options = options;
  }

  /** Closes all connections and stops listening. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closing = this.#server;
    this.#server = undefined;
    if (closing !== undefined) await new Promise((resolve) => closing.close(resolve));
  }

  async start(): Promise<void> {
    this.#server = createServer((socket) => this.#serve(socket)).listen(this.#path);
    await once(this.#server, "listening");
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
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
        this.#hear(socket, next.message);
      }
    });
  }

  #set(unit: string, properties: DbusValue): void {
    const known = this.units.get(unit) ?? new Map<string, DbusValue>();
    for (const [name, { value }] of properties as [string, Variant][]) known.set(name, value);
    this.units.set(unit, known);
  }

  /** @returns whether the call creates a job. @throws DbusError */
  #obey(member: string, unit: string, properties: DbusValue | undefined): boolean {
    const there = this.units.has(unit);
    switch (member) {
      case "StartTransientUnit":
        if (there) throw new DbusError(`${service}.UnitExists`, `Unit ${unit} was already loaded or has a fragment file.`);
        this.#set(unit, properties ?? []);
        this.#options.onStart?.(unit);
        return true;
      case "SetUnitProperties":
        if (!there) throw new DbusError(`${service}.NoSuchUnit`, `Unit ${unit} not loaded.`);
        this.#set(unit, properties ?? []);
        return false;
      case "StopUnit":
        if (!there) throw new DbusError(`${service}.NoSuchUnit`, `Unit ${unit} not loaded.`);
        this.units.delete(unit);
        this.#options.onStop?.(unit);
        return true;
      case "ResetFailedUnit":
        this.units.delete(unit);
        return false;
      default:
        throw new DbusError("org.freedesktop.DBus.Error.UnknownMethod", `Unknown method ${member}`);
    }
  }

  #cut(socket: Socket, which: keyof FakeSystemd["cutOff"]): boolean {
    if (this.cutOff[which] === 0) return false;
    this.cutOff[which]--;
    socket.destroy();
    return true;
  }

  #hear(socket: Socket, { member = "", serial: replySerial, body }: DbusMessage): void {
    if (this.#cut(socket, "unheard")) return;
    const [unit, how, properties] = body as [string, DbusValue, DbusValue | undefined];
    this.calls.push(`${member} ${unit}`);
    this.manners.push(how);
    const send = (message: Omit<DbusMessage, "serial">): void =>
      void socket.write(encodeMessage({ ...message, serial: ++this.#sent }));
    let makesJob: boolean;
    try {
      makesJob = this.#obey(member, unit, properties);
    } catch (err) {
      const { errorName, message } = err as DbusError;
      send({ kind: "error", replySerial, errorName, signature: "s", body: [message] });
      return;
    }
    if (!makesJob) {
      send({ kind: "return", replySerial, body: [] });
      return;
    }
    if (this.#cut(socket, "unanswered")) return;
    const id = ++this.#jobs;
    const result = this.nextResult ?? "done";
    this.nextResult = undefined;
    const reply = { kind: "return", replySerial, signature: "o", body: [`${object}/job/${id}`] } as const;
    const removed = { kind: "signal", path: object, interface: `${service}.Manager`, member: "JobRemoved" } as const;
    const end = { ...removed, signature: "uoss", body: [id, `${object}/job/${id}`, unit, result] } as const;
    if (this.held !== undefined) {
      this.held.push(() => send(end));
      send(reply);
      return;
    }
    const messages = result === "never" ? [reply] : [reply, end];
    // systemd may send JobRemoved before the method return.
    for (const message of id % 2 === 0 ? messages.toReversed() : messages) send(message);
  }
}

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { connectToBus, connectToPeer, DbusClosed, type DbusConnection, DbusError } from "./connection.ts";
import { type DbusMessage, decodeMessage, encodeMessage } from "./message.ts";

/** A peer that answers what the test tells it to. */
class Peer {
  readonly socket: Socket;
  readonly #waiting: ((message: DbusMessage) => void)[] = [];
  readonly #messages: DbusMessage[] = [];
  #received: Buffer = Buffer.alloc(0);
  #serial = 0;

  /** @param begun what came with the end of the authentication */
  constructor(socket: Socket, begun: Buffer) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#receive(begun);
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (let next = decodeMessage(this.#received); next !== undefined; next = decodeMessage(this.#received)) {
      this.#received = this.#received.subarray(next.size);
      const waiter = this.#waiting.shift();
      if (waiter === undefined) this.#messages.push(next.message);
      else waiter(next.message);
    }
  }

  /** The next message that it receives. */
  next(): Promise<DbusMessage> {
    const [first] = this.#messages.splice(0, 1);
    return first === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(first);
  }

  encoded(message: Omit<DbusMessage, "serial">): Buffer {
    return encodeMessage({ ...message, serial: ++this.#serial });
  }

  send(...messages: Omit<DbusMessage, "serial">[]): void {
    this.socket.write(Buffer.concat(messages.map((message) => this.encoded(message))));
  }

  reply(to: DbusMessage, text: string): void {
    this.send({ kind: "return", replySerial: to.serial, signature: "s", body: [text] });
  }
}

/** @param greeting the answer to the authentication */
async function listen(
  t: TestContext,
  greeting: string,
  accepted: (socket: Socket, rest: Buffer) => void = () => {},
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-dbus-"));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("data", () => {
      socket.write(greeting);
      const begin = "BEGIN\r\n";
      if (greeting.startsWith("OK"))
        socket.once("data", (chunk: Buffer) => accepted(socket, chunk.subarray(chunk.indexOf(begin) + begin.length)));
    });
  });
  server.listen(join(dir, "bus"));
  await once(server, "listening");
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(dir, { recursive: true, force: true });
  });
  return `unix:path=${join(dir, "bus")}`;
}

async function connected(t: TestContext): Promise<{ connection: DbusConnection; peer: Peer }> {
  const peer = Promise.withResolvers<Peer>();
  const address = await listen(t, "OK 1234\r\n", (...given) => peer.resolve(new Peer(...given)));
  const connection = await connectToPeer(address);
  t.after(() => connection.close());
  return { connection, peer: await peer.promise };
}

const request = (member: string) => ({ destination: "d", path: "/p", interface: "i", member });
const signal = (member: string, text: string, more = {}) =>
  ({ kind: "signal", path: "/p", interface: "i", member, signature: "s", body: [text], ...more }) as const;

test("replies reach the calls they answer, in any order and however they are cut into pieces", async (t) => {
  const { connection, peer } = await connected(t);
  const calls = ["A", "B", "C"].map((member) => connection.call(request(member)));
  const [a, b, c] = [await peer.next(), await peer.next(), await peer.next()];
  peer.send(
    { kind: "return", replySerial: b.serial, signature: "s", body: ["for B"] },
    { kind: "return", replySerial: a.serial, signature: "s", body: ["for A"] },
  );
  assert.deepEqual(await Promise.all(calls.slice(0, 2)), [["for A"], ["for B"]], "both in one piece");
  for (const byte of peer.encoded({ kind: "return", replySerial: c.serial, signature: "s", body: ["for C"] }))
    peer.socket.write(Buffer.from([byte]));
  assert.deepEqual(await calls[2], ["for C"]);
});

test("an error reply rejects its call with the error's name, and other calls go on", async (t) => {
  const { connection, peer } = await connected(t);
  const [failing, other] = [connection.call(request("A")), connection.call(request("B"))];
  const [a, b] = [await peer.next(), await peer.next()];
  peer.send({ kind: "error", replySerial: a.serial, errorName: "x.NoSuchUnit", signature: "s", body: ["no unit"] });
  await assert.rejects(
    failing,
    (err) => err instanceof DbusError && err.errorName === "x.NoSuchUnit" && err.message === "no unit",
  );
  peer.reply(b, "b");
  assert.deepEqual(await other, ["b"]);
  const unexplained = connection.call(request("C"));
  peer.send({ kind: "error", replySerial: (await peer.next()).serial, errorName: "x.Failed", body: [] });
  await assert.rejects(unexplained, /^DbusError: x\.Failed$|^Error: x\.Failed$/);
});

test("a listener hears its signal only, by path, interface and member", async (t) => {
  const { connection, peer } = await connected(t);
  const heard: string[] = [];
  for (const member of ["Down", "Up"])
    await connection.onSignal({ path: "/p", interface: "i", member }, ([text]) => void heard.push(`${member} ${text}`));
  peer.send(signal("Down", "1"), signal("Up", "2"), signal("Other", "3"));
  peer.send(signal("Down", "4", { path: "/q" }), signal("Down", "5", { interface: "j" }), signal("Down", "6"));
  const call = connection.call(request("A"));
  peer.reply(await peer.next(), "after the signals");
  await call;
  assert.deepEqual(heard, ["Down 1", "Up 2", "Down 6"]);
});

test("calls that wait when the connection ends are rejected, and later ones at once", async (t) => {
  const { connection, peer } = await connected(t);
  const calls = [connection.call(request("A")), connection.call(request("B"))];
  await peer.next();
  await peer.next();
  peer.socket.destroy();
  for (const call of calls) await assert.rejects(call, DbusClosed);
  await connection.closed;
  await assert.rejects(connection.call(request("C")), DbusClosed);
});

test("bytes that are no message end the connection", async (t) => {
  const { connection, peer } = await connected(t);
  const call = connection.call(request("A"));
  await peer.next();
  peer.socket.write(Buffer.alloc(64, 0xff));
  await assert.rejects(call, DbusClosed);
});

test("a call without a reply is rejected after 25 s, and its late reply is ignored", async (t) => {
  const { connection, peer } = await connected(t);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const call = connection.call(request("A"));
  const late = await peer.next();
  t.mock.timers.tick(24_999);
  t.mock.timers.tick(1);
  await assert.rejects(call, /D-Bus call i\.A: no reply within 25 s/);
  peer.reply(late, "late");
  const next = connection.call(request("B"));
  peer.reply(await peer.next(), "b");
  assert.deepEqual(await next, ["b"]);
});

test("a call that has its reply, or failed, leaves no timer", async (t) => {
  const { connection, peer } = await connected(t);
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const answered = connection.call(request("A"));
  peer.reply(await peer.next(), "a");
  await answered;
  const refused = assert.rejects(connection.call(request("B")), DbusError);
  peer.send({ kind: "error", replySerial: (await peer.next()).serial, errorName: "x.Busy", body: [] });
  await refused;
  assert.equal(timers(), before);
});

test("incoming calls are answered by the handler: its values, its error, and UnknownMethod without one", async (t) => {
  const { connection, peer } = await connected(t);
  const ask = async (member: string): Promise<unknown[]> => {
    peer.send({ kind: "call", path: "/p", interface: "i", member, sender: "asker", body: [] });
    const { kind, errorName, body, destination } = await peer.next();
    return [kind, errorName, body, destination];
  };
  assert.deepEqual(await ask("A"), ["error", "org.freedesktop.DBus.Error.UnknownMethod", ["No such method"], "asker"]);
  connection.answer(({ member }) => {
    if (member === "Fails") throw new DbusError("x.Busy", "later");
    return { signature: "s", body: [member ?? ""] };
  });
  assert.deepEqual(await ask("A"), ["return", undefined, ["A"], "asker"]);
  assert.deepEqual(await ask("Fails"), ["error", "x.Busy", ["later"], "asker"]);
});

for (const { what, greeting } of [
  { what: "in one piece", greeting: "REJECTED EXTERNAL\r\n" },
  { what: "without an end", greeting: "x".repeat(2_000) },
]) {
  test(`connecting fails when authentication is refused ${what}`, async (t) => {
    await assert.rejects(connectToPeer(await listen(t, greeting)), /the message bus refused authentication/);
  });
}

test("connecting fails when the bus closes the connection, when nothing listens, and without a unix socket", async (t) => {
  const address = await listen(t, "OK 1\r\n", (socket) => socket.destroy());
  await assert.rejects(connectToBus(address), DbusClosed, "instead of the reply to Hello");
  await assert.rejects(connectToPeer(`${address}-absent`), /ENOENT/);
  await assert.rejects(connectToPeer("tcp:host=127.0.0.1"), /no unix socket in the bus address tcp:host=127\.0\.0\.1/);
});

test("a connection whose Hello the bus refuses is closed", async (t) => {
  let isClosed = false;
  const address = await listen(t, "OK 1\r\n", (socket, rest) => {
    socket.once("close", () => {
      isClosed = true;
    });
    const peer = new Peer(socket, rest);
    void peer
      .next()
      .then(({ serial }) => peer.send({ kind: "error", replySerial: serial, errorName: "x.LimitsExceeded", body: [] }));
  });
  await assert.rejects(connectToBus(address), DbusError);
  await waitFor(() => isClosed, { what: "the connection to be closed" });
});

test("a connection to a bus says Hello first, and adds a match for each signal", async (t) => {
  const seen: string[] = [];
  const address = await listen(t, "OK 1\r\n", (...given) => {
    const peer = new Peer(...given);
    void (async () => {
      for (;;) {
        const message = await peer.next();
        seen.push([message.member, ...message.body].join(" "));
        peer.send({ kind: "return", replySerial: message.serial, body: [] });
      }
    })();
  });
  const connection = await connectToBus(`unix:abstract=x;${address},guid=1`);
  t.after(() => connection.close());
  await connection.onSignal({ path: "/p", interface: "i", member: "m" }, () => {});
  assert.deepEqual(seen, ["Hello", "AddMatch type='signal',path='/p',interface='i',member='m'"]);
});

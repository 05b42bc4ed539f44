import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { settle } from "../testing/wait-for.ts";
import { requestTunnel } from "./http-connect.ts";
import { connectThroughSocks5 } from "./socks5.ts";

/** Both ends of a connection to a proxy: the client's, and the proxy's, which the test controls. */
function aConnection() {
  const [connection, proxy] = duplexPair();
  connection.on("error", () => {});
  proxy.on("error", () => {});
  const said: Buffer[] = [];
  proxy.on("data", (bytes: Buffer) => said.push(bytes));
  return { connection: connection as unknown as Socket, proxy, said: () => Buffer.concat(said.splice(0)) };
}

const never = new AbortController().signal;
const target = { host: "api", port: 6443 };

for (const { name, address } of [
  { name: "IPv4", address: [1, 10, 0, 0, 7] },
  { name: "IPv6", address: [4, ...Array(16).fill(0)] },
  { name: "a name", address: [3, 5, ...Buffer.from("proxy")] },
]) {
  test(`a SOCKS proxy that answers with ${name} is passed; early bytes of the target are not lost`, async () => {
    const { connection, proxy, said } = aConnection();
    const { signal } = new AbortController();
    const pending = connectThroughSocks5(connection, target, undefined, signal);
    await settle();
    assert.deepEqual([...said()], [5, 1, 0]);
    proxy.write(Buffer.from([5, 0]));
    await settle();
    assert.deepEqual([...said()], [5, 1, 0, 3, 3, ...Buffer.from("api"), 6443 >> 8, 6443 & 255]);
    proxy.write(Buffer.from([5, 0, 0, ...address, 0, 80, ...Buffer.from("hello")]));
    await pending;
    assert.equal(String(connection.read()), "hello");
    for (const event of ["data", "close", "end"]) assert.equal(connection.listenerCount(event), 0, event);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });
}

for (const { name, answers, want } of [
  { name: "wants what we do not have", answers: [[5, 255]], want: /no acceptable authentication methods/ },
  { name: "wants a password that was not offered", answers: [[5, 2]], want: /no acceptable authentication methods/ },
  {
    name: "reaches no target",
    answers: [
      [5, 0],
      [5, 5, 0, 1],
    ],
    want: /connection refused$/,
  },
  {
    name: "fails in its own way",
    answers: [
      [5, 0],
      [5, 99, 0, 1],
    ],
    want: /unknown code: 99/,
  },
  {
    name: "answers with an unknown address",
    answers: [
      [5, 0],
      [5, 0, 0, 9],
    ],
    want: /unknown address type 9/,
  },
]) {
  test(`a SOCKS proxy that ${name} is an error`, async () => {
    const { connection, proxy } = aConnection();
    const pending = connectThroughSocks5(connection, target, undefined, never);
    for (const answer of answers) proxy.write(Buffer.from(answer));
    await assert.rejects(pending, want);
  });
}

for (const { name, answers } of [
  { name: "before its first word", answers: [] },
  { name: "within an answer", answers: [[5, 0, 5, 0]] },
  { name: "within an address", answers: [[5, 0, 5, 0, 0, 1, 10]] },
]) {
  test(`a SOCKS proxy that closes the connection ${name}, or stops answering until the deadline, is an error`, async () => {
    const gone = aConnection();
    const pending = connectThroughSocks5(gone.connection, target, undefined, never);
    for (const answer of answers) gone.proxy.write(Buffer.from(answer));
    gone.proxy.end();
    await assert.rejects(pending, /unexpected EOF/);
    const slow = aConnection();
    const stop = new AbortController();
    const waiting = connectThroughSocks5(slow.connection, target, undefined, stop.signal);
    for (const answer of answers) slow.proxy.write(Buffer.from(answer));
    await settle();
    stop.abort(new Error("too late"));
    await assert.rejects(waiting, /too late/);
    const broken = aConnection();
    const failing = connectThroughSocks5(broken.connection, target, undefined, never);
    broken.connection.destroy(new Error("reset"));
    await assert.rejects(failing, /reset/);
  });
}

test("a password is sent to a SOCKS proxy that requests it; a user name that is too long is an error", async () => {
  const { connection, proxy, said } = aConnection();
  const pending = connectThroughSocks5(connection, target, { username: "u", password: "pw" }, never);
  await settle();
  assert.deepEqual([...said()], [5, 2, 0, 2]);
  proxy.write(Buffer.from([5, 2]));
  await settle();
  assert.deepEqual([...said()], [1, 1, ...Buffer.from("u"), 2, ...Buffer.from("pw")]);
  proxy.write(Buffer.from([1, 1]));
  await assert.rejects(pending, /username\/password authentication failed/);
  const long = aConnection();
  const refused = connectThroughSocks5(long.connection, { host: "x".repeat(256), port: 1 }, undefined, never);
  long.proxy.write(Buffer.from([5, 0]));
  await assert.rejects(refused, /too long/);
  const longest = aConnection();
  const accepted = connectThroughSocks5(longest.connection, { host: "x".repeat(255), port: 1 }, undefined, never);
  longest.proxy.write(Buffer.from([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 1]));
  await accepted;
});

test("a CONNECT response is returned, and early bytes of the target are not lost", async () => {
  for (const { answer, code, rest } of [
    { answer: "HTTP/1.1 200 OK\r\n\r\nhello", code: 200, rest: "hello" },
    { answer: "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", code: 407, rest: "null" },
  ]) {
    const { connection, proxy, said } = aConnection();
    const { signal } = new AbortController();
    const pending = requestTunnel(connection, "api:6443", { host: "api:6443" }, signal);
    await settle();
    assert.match(String(said()), /^CONNECT api:6443 HTTP\/1\.1\r\nhost: api:6443\r\n/i);
    proxy.write(answer);
    assert.equal((await pending).code, code);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    assert.equal(String(connection.read()), rest);
  }
});

test("an aborted tunnel, or one whose proxy closes, leaves no connection", async () => {
  const stop = new AbortController();
  const given = aConnection();
  const pending = requestTunnel(given.connection, "api:6443", {}, stop.signal);
  await settle();
  stop.abort(new Error("too late"));
  await assert.rejects(pending, /too late/);
  assert.equal(given.connection.destroyed, true);
  const gone = aConnection();
  const waiting = requestTunnel(gone.connection, "api:6443", {}, never);
  await settle();
  gone.proxy.end();
  await assert.rejects(waiting, /socket hang up/);
  assert.equal(gone.connection.destroyed, true);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { type Duplex, PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Connection } from "@coxswain/apimachinery/transport/connect";
import { newEtcdChannel } from "./channel.ts";
import { type EtcdClient, newEtcdClient } from "./client.ts";
import { type EtcdError, etcdErrorOf } from "./errors.ts";
import { decodeWatch, encodeWatchCreate, type WatchResponse } from "./wire.ts";

/** A gRPC server whose calls are handled by `onCall`. @param onHeaders called when a call begins */
async function aServer(
  t: TestContext,
  onCall: (stream: ServerHttp2Stream, body: Buffer) => void,
  onHeaders: (headers: IncomingHttpHeaders) => void = () => {},
) {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
  });
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    onHeaders(headers);
    const chunks: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => onCall(stream, Buffer.concat(chunks).subarray(5)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sessions };
}

function answer(stream: ServerHttp2Stream, body: Buffer, status: Record<string, string> = { "grpc-status": "0" }): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(status));
  const head = Buffer.from([0, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 1);
  stream.end(Buffer.concat([head, body]));
}

test("a server gets the trace context of a call, if there is one", async (t) => {
  const reported: unknown[] = [];
  const { url } = await aServer(
    t,
    (stream, body) => answer(stream, body),
    ({ traceparent }) => reported.push(traceparent),
  );
  let traceparent: string | undefined;
  const method = { started() {}, sent() {}, received() {}, handled() {} };
  const made = newEtcdChannel(url, { calls: () => ({ ...method, traceparent }) });
  t.after(() => made.close());
  await made.unary("/x", message, 5_000);
  traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await made.unary("/x", message, 5_000);
  assert.deepEqual(reported, [undefined, traceparent]);
});

test("a clock that is set back does not delay the next attempt to connect", async (t) => {
  const { url } = await aServer(t, (stream, body) => answer(stream, body));
  let isThere = false;
  const made = newEtcdChannel(url, {
    connect: async (host, port) => {
      if (!isThere) throw new Error("connection refused here");
      return connect(port, host);
    },
  });
  t.after(() => made.close());
  await assert.rejects(made.unary("/x", message, 5_000), /connection refused here/);
  isThere = true;
  const now = Date.now;
  t.mock.method(Date, "now", () => now() - 3_600_000);
  await waitFor(() => made.unary("/x", message, 5_000).then(Boolean, () => false), { what: "the next try" });
});

function refuse(stream: ServerHttp2Stream, code: string, message: string): void {
  stream.respond(
    { ":status": 200, "content-type": "application/grpc", "grpc-status": code, "grpc-message": message },
    { endStream: true },
  );
}

const message = Buffer.from("hello");
const reason = (wanted: string) => (err: unknown) => etcdErrorOf(err).reason === wanted;

function connection(t: TestContext, url: string) {
  const made = newEtcdChannel(url, {});
  t.after(() => made.close());
  return made;
}

test("a call brings its answer, whatever its size", async (t) => {
  const { url } = await aServer(t, (stream, body) => answer(stream, Buffer.concat([body, Buffer.alloc(9_000_000, 1)])));
  const got = await connection(t, url).unary("/x", message, 5_000);
  assert.equal(got.length, message.length + 9_000_000);
  assert.deepEqual(got.subarray(0, 5), message);
});

for (const { name, code, text, want } of [
  { name: "compaction", code: "11", text: "etcdserver: mvcc: required revision has been compacted", want: "compacted" },
  { name: "a full disk", code: "8", text: "etcdserver: mvcc: database space exceeded", want: "no-space" },
  { name: "a large request", code: "3", text: "etcdserver: request is too large", want: "too-large" },
  { name: "a member without leader", code: "14", text: "etcdserver: no leader", want: "unsent" },
  { name: "a leader that is lost", code: "14", text: "etcdserver: leader changed", want: "unavailable" },
  { name: "an escaped text", code: "8", text: "etcdserver: mvcc: database%20space%20exceeded", want: "no-space" },
]) {
  test(`etcd's ${name} is ${want}`, async (t) => {
    const { url } = await aServer(t, (stream) => refuse(stream, code, text));
    await assert.rejects(connection(t, url).unary("/x", message, 5_000), reason(want));
  });
}

test("on GOAWAY running calls finish, and new calls use a new connection", async (t) => {
  let first: ServerHttp2Stream | undefined;
  const { url, sessions } = await aServer(t, (stream, body) => {
    if (first === undefined) {
      first = stream;
      (stream.session as ServerHttp2Session).goaway(constants.NGHTTP2_NO_ERROR);
    } else answer(stream, body);
  });
  const grpc = connection(t, url);
  const slow = grpc.unary("/x", message, 5_000);
  await waitFor(() => first !== undefined, { what: "the first call" });
  await waitFor(async () => (await grpc.unary("/x", message, 5_000)).equals(message) && sessions.size === 2, {
    what: "a new connection",
  });
  answer(first as unknown as ServerHttp2Stream, message);
  assert.deepEqual(await slow, message);
});

test("a process that was suspended while connecting times out and connects again", async (t) => {
  const { url } = await aServer(t, answer);
  const first = connection(t, url);
  const refused = assert.rejects(first.unary("/a", message, 10_000), reason("unsent"));
  await new Promise(setImmediate); // the connection attempt is in progress
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_100); // block the process longer than the connect timeout
  await refused;
  await waitFor(
    () =>
      first.unary("/a", message, 1_000).then(
        (body) => body.equals(message),
        () => false,
      ),
    { what: "the next connection" },
  );
});

test("a refused stream was not seen by the server, a reset one may have been", async (t) => {
  let code: number = constants.NGHTTP2_REFUSED_STREAM;
  const { url } = await aServer(t, (stream) => stream.close(code));
  const grpc = connection(t, url);
  await assert.rejects(grpc.unary("/x", message, 5_000), reason("unsent"));
  code = constants.NGHTTP2_INTERNAL_ERROR;
  await assert.rejects(grpc.unary("/x", message, 5_000), reason("unavailable"));
});

test("a call without a response ends at its deadline, and the connection stays open", async (t) => {
  let calls = 0;
  const { url, sessions } = await aServer(t, (stream, body) => {
    if (++calls > 1) answer(stream, body);
  });
  const grpc = connection(t, url);
  await grpc.ready(60_000); // the time to connect counts
  await assert.rejects(grpc.unary("/x", message, 100), reason("deadline"));
  await grpc.unary("/x", message, 5_000);
  assert.equal(sessions.size, 1);
});

test("a stream brings messages that are cut anywhere, until it is reset", async (t) => {
  const got: string[] = [];
  let ended: Error | undefined;
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.once(
      "data",
      asyncListener(async () => {
        const frames = Buffer.from("\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three", "latin1");
        for (const byte of frames) {
          stream.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
        await waitFor(() => got.length === 3, { what: "three messages" });
        stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const grpc = connection(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = grpc.stream("/x", {
    message: (bytes) => void got.push(bytes.toString()),
    ended: (err) => {
      ended = err;
    },
  });
  stream.write(message);
  await waitFor(() => ended !== undefined, { what: "the end" });
  assert.deepEqual(got, ["one", "", "three"]);
});

test("a write that the server may have seen is not sent again, a read is", async (t) => {
  const seen: string[] = [];
  const broken = await aServer(t, (stream) => {
    seen.push("broken");
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  });
  const whole = await aServer(t, (stream) => {
    seen.push("whole");
    answer(stream, Buffer.alloc(0));
  });
  const writes: readonly ((client: EtcdClient) => Promise<unknown>)[] = [
    (client) => client.put("/a", message),
    (client) => client.txn({ compare: [], success: [{ type: "delete", key: "/a" }], failure: [] }),
    (client) => client.grantLease(60),
  ];
  for (const write of [...writes, ...writes, ...writes, ...writes]) {
    const client = newEtcdClient({ servers: [broken.url, whole.url] });
    t.after(() => client.close());
    seen.length = 0;
    const wrote = await write(client).then(
      () => true,
      (err: unknown) => !reason("unavailable")(err),
    );
    assert.deepEqual(seen, [wrote ? "whole" : "broken"]);
    await client.range({ key: "/a" });
    assert.equal(seen.at(-1), "whole");
  }
});

test("a call that is repeated tells the server the time that is left", async (t) => {
  const left: number[] = [];
  const onCall = (stream: ServerHttp2Stream): void => {
    if (left.length === 1) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else answer(stream, Buffer.alloc(0));
  };
  const { url } = await aServer(t, onCall, (headers) => left.push(Number.parseInt(String(headers["grpc-timeout"]), 10)));
  const client = newEtcdClient({ servers: [url], deadlineMs: 60_000 });
  t.after(() => client.close());
  await client.range({ key: "/a" });
  assert.ok(left.length === 2 && left[0]! <= 60_000 && left[1]! < left[0]!, String(left));
});

test("a call that fails late does not lead the others back to a member that they have left", async (t) => {
  const asked: number[] = [];
  let first: { readonly member: number; readonly stream: ServerHttp2Stream } | undefined;
  const onCall = (member: number) => (stream: ServerHttp2Stream) => {
    asked.push(member);
    if (first === undefined) first = { member, stream };
    else if (member === (first.member + 2) % 3) answer(stream, Buffer.alloc(0));
    else stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  };
  const servers = (await Promise.all([0, 1, 2].map((member) => aServer(t, onCall(member))))).map(({ url }) => url);
  const client = newEtcdClient({ servers, deadlineMs: 60_000 });
  t.after(() => client.close());
  const slow = client.range({ key: "/a" });
  await waitFor(() => first !== undefined, { what: "the first call" });
  await client.range({ key: "/b" });
  first?.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  await slow;
  const begin = first?.member ?? 0;
  assert.deepEqual(
    asked.map((member) => (member - begin + 3) % 3),
    [0, 0, 1, 2, 2],
  );
});

test("a member that does not answer in time is left for the next one", async (t) => {
  const asked: string[] = [];
  const silent = await aServer(t, () => void asked.push("silent"));
  const other = await aServer(t, (stream) => {
    asked.push("other");
    answer(stream, Buffer.alloc(0));
  });
  // A client begins with a random member.
  for (let isLate = false; !isLate; ) {
    const client = newEtcdClient({ servers: [silent.url, other.url], deadlineMs: 1_000 });
    t.after(() => client.close());
    asked.length = 0;
    isLate = await client.range({ key: "/a" }).then(() => false, reason("deadline"));
    if (isLate) await client.put("/a", message);
  }
  assert.deepEqual(asked, ["silent", "other"]);
});

test("the connection of a single status call is closed with it", async (t) => {
  const { url, sessions } = await aServer(t, (stream) => answer(stream, Buffer.alloc(0)));
  const client = newEtcdClient({ servers: [url] });
  t.after(() => client.close());
  await client.statusAt(url);
  await waitFor(() => [...sessions].every((session) => session.closed || session.destroyed), {
    what: "the end of the connection",
  });
  assert.equal(sessions.size, 1);
});

test("a watch asks its member to end it when the member has no leader", async (t) => {
  const heard: unknown[] = [];
  const { url } = await aServer(
    t,
    () => {},
    (headers) => heard.push(headers["hasleader"]),
  );
  const client = newEtcdClient({ servers: [url] });
  t.after(() => client.close());
  watched(t, client);
  await waitFor(() => heard.length > 0, { what: "the watch" });
  assert.deepEqual(heard, ["true"]);
});

/** A watch on `/a`. @param failed index of the member whose stream failed */
function watched(t: TestContext, client: EtcdClient, failed?: number) {
  const heard: WatchResponse[] = [];
  const failures: EtcdError[] = [];
  const stream = client.openWatch(failed, {
    message: (bytes) => void heard.push(decodeWatch(bytes)),
    ended: (err) => void failures.push(err),
  });
  t.after(() => stream.cancel());
  stream.write(encodeWatchCreate({ key: "/a", startRevision: 1, prevKv: false }));
  return { heard, failures, server: stream.server };
}

test("a member that is paused is left for the next one before the deadline, and its watches end", async (t) => {
  const [one, other] = await Promise.all([startOwnEtcd(t), startOwnEtcd(t)]);
  const client = newEtcdClient({ servers: [one.endpoint, other.endpoint] });
  t.after(() => client.close());
  const watch = watched(t, client);
  await waitFor(() => watch.heard.some(({ created }) => created), { what: "the watch" });
  // One of the two is the current member; stopping the other one has no effect.
  for (const { pid } of [one, other]) {
    await pauseProcess(pid);
    await client.range({ key: "/a" }); // would be late
    if (watch.failures.length > 0) break;
    process.kill(pid, "SIGCONT");
  }
  assert.deepEqual(
    watch.failures.map((err) => err.reason),
    ["unavailable"],
  );
  // Calls have left the failed member already: the watch is not opened to it again.
  const next = watched(t, client, watch.server);
  await client.put("/a", message);
  await waitFor(() => next.heard.some(({ events }) => events.length > 0), { what: "the event at the next member" });
});

test("a connection that is established too late is closed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let arrive = (_way: Duplex): void => {};
  const connect = () => new Promise<Connection>((resolve) => (arrive = (connection) => resolve(connection as Connection)));
  const made = newEtcdChannel("http://192.0.2.9:1", { connect });
  t.after(() => made.close());
  const failed = assert.rejects(made.unary("/x", message, 60_000), /cannot connect to http:\/\/192.0.2.9:1: timed out/);
  t.mock.timers.tick(5_000);
  await failed;
  const late = new PassThrough();
  arrive(late);
  await once(late, "close");
});

test("a connection whose TLS handshake fails is closed, and its calls fail", async (t) => {
  const connection = new PassThrough();
  const connect = async () => connection as Duplex as Connection;
  const made = newEtcdChannel("https://192.0.2.9:1", { connect, cert: Buffer.from("x"), key: Buffer.from("y") });
  t.after(() => made.close());
  await assert.rejects(made.unary("/x", message, 60_000), /cannot connect to https:\/\/192.0.2.9:1: .*no start line/);
  assert.ok(connection.destroyed);
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { freePort } from "../../testing/etcd.ts";
import { settle, waitFor } from "../../testing/wait-for.ts";
import { framedMessage } from "./call.ts";
import { GrpcChannel, type GrpcChannelOptions } from "./channel.ts";
import { GrpcError } from "./grpc-error.ts";
import { answer, answerRaw, startGrpcServer } from "./testing/grpc-server.ts";

function channelTo(t: TestContext, target: string, options: GrpcChannelOptions = {}): GrpcChannel {
  const channel = new GrpcChannel(target, options);
  t.after(() => channel.close());
  return channel;
}

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-grpc-"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

const message = Buffer.from("hello");
const failureOf = (call: Promise<unknown>): Promise<GrpcError> =>
  call.then(
    () => assert.fail("it did not fail"),
    (err: unknown) => (err instanceof GrpcError ? err : assert.fail(String(err))),
  );

test("a call over a unix socket sends the required gRPC headers", async (t) => {
  const path = join(directoryOf(t), "a.sock");
  let reported: IncomingHttpHeaders = {};
  const onCall = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, request: Buffer): void => {
    reported = headers;
    answer(stream, request);
  };
  await startGrpcServer(t, onCall, { path });
  const channel = channelTo(t, `unix://${path}`, { userAgent: "kube-probe/1.23" });
  await channel.ready(5_000);
  assert.deepEqual(await channel.unary("/x.Y/Z", message, 1_500), message);
  const {
    ":path": called,
    ":authority": authority,
    te,
    "grpc-timeout": timeout,
    "user-agent": agent,
    "content-type": type,
  } = reported;
  assert.deepEqual(
    [called, authority, te, timeout, agent, type],
    ["/x.Y/Z", "localhost", "trailers", "1500m", "kube-probe/1.23", "application/grpc"],
  );
});

for (const { name, body, status, want } of [
  { name: "no message", body: "", want: /code = Internal desc = received a response without a message/ },
  {
    name: "a compressed message",
    body: "\x01\0\0\0\x01x",
    want: /code = Internal desc = received a response that is compressed/,
  },
  { name: "a message that is cut off", body: "\0\0\0\0\x02x", want: /Internal desc = received a response whose length is wrong/ },
  { name: "two messages", body: "\0\0\0\0\0\0\0\0\0\0", want: /Internal desc = received a response whose length is wrong/ },
  {
    name: "no status",
    body: "\0\0\0\0\0",
    status: {},
    want: /Unavailable desc = server closed the stream without sending trailers/,
  },
  {
    name: "an error",
    body: "",
    status: { "grpc-status": "7", "grpc-message": "not%20you" },
    want: /PermissionDenied desc = not you/,
  },
  { name: "an unknown error", body: "", status: { "grpc-status": "99" }, want: /^rpc error: code = Code\(99\) desc = $/ },
] as { name: string; body: string; status?: Record<string, string>; want: RegExp }[]) {
  test(`a response with ${name} is an error`, async (t) => {
    const { port } = await startGrpcServer(t, (stream) => answerRaw(stream, Buffer.from(body, "latin1"), status));
    const err = await failureOf(channelTo(t, `127.0.0.1:${port}`).unary("/x", message, 5_000));
    assert.match(err.message, want);
    assert.equal(err.unprocessed, false);
  });
}

for (const { http, want } of [
  { http: 404, want: "Unimplemented" },
  { http: 503, want: "Unavailable" },
  { http: 418, want: "Unknown" },
]) {
  test(`HTTP status ${http} is ${want}`, async (t) => {
    const { port } = await startGrpcServer(t, (stream) => {
      stream.respond({ ":status": http });
      stream.end("a page");
    });
    const { message: text } = await failureOf(channelTo(t, `127.0.0.1:${port}`).unary("/x", message, 5_000));
    assert.equal(text, `rpc error: code = ${want} desc = unexpected HTTP status code received from server: ${http}`);
  });
}

test("a response may have the size of the limit, and not a byte more; the connection stays open", async (t) => {
  const { port, sessions } = await startGrpcServer(t, (stream, _, request) => answer(stream, Buffer.alloc(Number(request))));
  const channel = channelTo(t, `127.0.0.1:${port}`, { mostMessageBytes: 100_000 });
  assert.equal((await channel.unary("/x", Buffer.from("100000"), 5_000)).length, 100_000);
  const { message: text } = await failureOf(channel.unary("/x", Buffer.from("100001"), 5_000));
  assert.match(text, /^rpc error: code = ResourceExhausted desc = grpc: received message larger than max \(\d+ vs\. 100000\)$/);
  await channel.unary("/x", Buffer.from("1"), 5_000);
  assert.equal(sessions.size, 1);
});

test("a call that is not answered ends at its deadline, and its server gets a reset", async (t) => {
  let code: number | undefined;
  const { port } = await startGrpcServer(t, (stream) => {
    stream.once("close", () => (code = stream.rstCode));
  });
  const channel = channelTo(t, `127.0.0.1:${port}`);
  await channel.ready(60_000); // the time to connect counts
  const err = await failureOf(channel.unary("/stream", message, 50));
  assert.equal(err.message, "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  await waitFor(() => code === constants.NGHTTP2_CANCEL, { what: "the reset" });
});

test("a server that cannot be reached has not processed the call; until the next attempt calls fail at once", async (t) => {
  const channel = channelTo(t, `127.0.0.1:${await freePort()}`, { firstBackoffMs: 60_000, longestBackoffMs: 60_000 });
  const first = await failureOf(channel.unary("/x", message, 5_000));
  assert.match(first.message, /code = Unavailable desc = cannot connect to http:\/\/127.0.0.1:\d+: connect ECONNREFUSED/);
  const second = await failureOf(channel.unary("/x", message, 5_000));
  assert.match(second.message, /code = Unavailable desc = no connection to http:\/\/127.0.0.1:\d+: connect ECONNREFUSED/);
  assert.deepEqual([first.unprocessed, second.unprocessed], [true, true]);
  channel.close();
  assert.match((await failureOf(channel.unary("/x", message, 5_000))).message, /code = Canceled/);
});

test("a call ends at its deadline while its connection is made, and was not processed", async (t) => {
  const connect = (): Promise<never> => new Promise(() => {});
  const channel = channelTo(t, "192.0.2.9:1", { connect });
  const err = await failureOf(channel.unary("/x", message, 30));
  assert.deepEqual([err.details, err.unprocessed], ["context deadline exceeded", true]);
  const waiting = failureOf(channel.unary("/x", message, 60_000));
  await assert.rejects(channel.ready(10), /DeadlineExceeded/);
  channel.close();
  assert.match((await waiting).message, /cannot connect to .*: the client is closed/);
});

test("a call that waits for its server gets it, or its deadline", async (t) => {
  const path = join(directoryOf(t), "a.sock");
  const channel = channelTo(t, `unix://${path}`, { firstBackoffMs: 10, longestBackoffMs: 20 });
  const err = await failureOf(channel.unaryWhenReady("/x", message, 60));
  assert.match(err.message, /DeadlineExceeded desc = context deadline exceeded/);
  assert.match(String(err.cause ?? "ENOENT"), /ENOENT/);
  const waiting = channel.unaryWhenReady("/x", message, 30_000);
  const server = await startGrpcServer(t, (stream, _, request) => answer(stream, request), { path });
  assert.deepEqual(await waiting, message);
  await server.stop();
});

test("closing a channel cancels calls that wait for a connection", async (t) => {
  const channel = channelTo(t, `127.0.0.1:${await freePort()}`);
  const waiting = failureOf(channel.unaryWhenReady("/x", message, 60_000));
  await failureOf(channel.unary("/x", message, 5_000));
  channel.close();
  assert.match((await waiting).message, /code = Canceled/);
});

test("a server that closes during a call may have processed it, and waiting does not repeat it", async (t) => {
  let calls = 0;
  const { port } = await startGrpcServer(t, (stream) => {
    calls++;
    stream.session?.destroy();
  });
  const channel = channelTo(t, `127.0.0.1:${port}`);
  const err = await failureOf(channel.unaryWhenReady("/x", message, 5_000));
  assert.deepEqual([err.code, err.unprocessed, calls], [14, false, 1]);
});

test("a call that the server refused is repeated when it waits", async (t) => {
  let calls = 0;
  const { port } = await startGrpcServer(t, (stream, _, request) => {
    if (++calls === 1) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else answer(stream, request);
  });
  assert.deepEqual(await channelTo(t, `127.0.0.1:${port}`).unaryWhenReady("/x", message, 5_000), message);
  assert.equal(calls, 2);
});

/** Collects the events of a stream. */
function aStream(channel: GrpcChannel, path = "/stream") {
  const got: string[] = [];
  const ended = Promise.withResolvers<GrpcError | undefined>();
  const stream = channel.stream(path, {
    message: (bytes) => void got.push(bytes.toString()),
    ended: (err) => ended.resolve(err),
  });
  return { stream, got, ended: ended.promise };
}

test("a stream brings the messages of a request that has ended, then the status", async (t) => {
  let fields: string[] = [];
  const { port } = await startGrpcServer(t, (stream, headers) => {
    fields = Object.keys(headers);
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => answerRaw(stream, Buffer.concat([...chunks, framedMessage(Buffer.from("end"))])));
  });
  const { stream, got, ended } = aStream(channelTo(t, `127.0.0.1:${port}`));
  stream.write(Buffer.from("a"));
  let sent = false;
  stream.write(Buffer.from("b"), () => (sent = true));
  stream.end();
  assert.equal(await ended, undefined);
  assert.deepEqual([got, sent], [["a", "b", "end"], true]);
  assert.deepEqual(fields, [":method", ":scheme", ":path", ":authority", "content-type", "te"]);
});

test("a stream ends with the server's error, or with that of a connection that was not made", async (t) => {
  const { port } = await startGrpcServer(t, (stream) =>
    answerRaw(stream, Buffer.alloc(0), { "grpc-status": "5", "grpc-message": "no" }),
  );
  const { ended } = aStream(channelTo(t, `127.0.0.1:${port}`));
  assert.equal((await ended)?.message, "rpc error: code = NotFound desc = no");
  const nobody = aStream(channelTo(t, `127.0.0.1:${await freePort()}`));
  assert.match((await nobody.ended)?.message ?? "", /Unavailable desc = cannot connect/);
});

test("a message beyond the limit ends its stream", async (t) => {
  const { port } = await startGrpcServer(t, (stream) => answerRaw(stream, framedMessage(Buffer.alloc(101))));
  const { ended, got } = aStream(channelTo(t, `127.0.0.1:${port}`, { mostMessageBytes: 100 }));
  assert.match((await ended)?.message ?? "", /^rpc error: code = ResourceExhausted desc = .*larger than max \(101 vs\. 100\)$/);
  assert.deepEqual(got, []);
});

test("a stream whose message the reader cannot decode ends", async (t) => {
  const { port } = await startGrpcServer(t, (stream) => answerRaw(stream, framedMessage(message)));
  const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
  const onMessage = (): never => assert.fail("index out of range");
  channelTo(t, `127.0.0.1:${port}`).stream("/stream", { message: onMessage, ended: resolve });
  assert.equal((await promise)?.message, "rpc error: code = Internal desc = index out of range");
});

test("a cancelled stream delivers nothing more, before its start and after", async (t) => {
  let opened = 0;
  let closed = 0;
  const { port } = await startGrpcServer(t, (stream) => {
    opened++;
    stream.once("close", () => closed++);
    stream.respond({ ":status": 200 });
    stream.write(framedMessage(message));
  });
  const channel = channelTo(t, `127.0.0.1:${port}`);
  const early = aStream(channel);
  early.stream.cancel();
  const { stream, got } = aStream(channel);
  await waitFor(() => got.length === 1, { what: "a message" });
  stream.cancel();
  await waitFor(() => closed === 1, { what: "the reset" });
  assert.deepEqual([opened, early.got], [1, []]);
});

test("a paused reader applies backpressure only to its own stream", async (t) => {
  let written = 0;
  const { port } = await startGrpcServer(t, (stream, headers) => {
    if (headers[":path"] === "/x") return answer(stream, message);
    stream.respond({ ":status": 200 });
    const chunk = framedMessage(Buffer.alloc(1024 * 1024));
    const write = (): void => {
      while (written < 40 && stream.write(chunk)) written++;
      if (written < 40) stream.once("drain", write);
    };
    write();
  });
  const channel = channelTo(t, `127.0.0.1:${port}`);
  const { stream, got } = aStream(channel);
  stream.pause();
  await waitFor(() => got.length >= 15, { what: "a full window" });
  assert.deepEqual(await channel.unary("/x", message, 5_000), message);
  assert.ok(got.length <= 17, `${got.length} MiB passed a window of 16`);
  stream.resume();
  await waitFor(() => got.length >= 39, { what: "the rest" });
});

test("the delay between connection attempts restarts after a connection", async (t) => {
  const { port, sessions } = await startGrpcServer(t, (stream, _, request) => answer(stream, request));
  let now = 0;
  t.mock.method(performance, "now", () => now);
  let dials = 0;
  let fails = true;
  const connect = async () => {
    dials++;
    if (fails) throw new Error("not now");
    return connectTcp(port, "127.0.0.1");
  };
  const channel = channelTo(t, "192.0.2.9:1", { connect, firstBackoffMs: 100, longestBackoffMs: 150 });
  const call = () => channel.unary("/x", message, 60_000);
  const failsAt = async (ms: number): Promise<number> => {
    now = ms;
    await failureOf(call());
    return dials;
  };
  assert.deepEqual([await failsAt(0), await failsAt(99), await failsAt(100), await failsAt(249)], [1, 1, 2, 2]);
  now = 250;
  fails = false;
  await call();
  for (const session of sessions) session.destroy();
  fails = true;
  await waitFor(() =>
    call().then(
      () => false,
      () => dials === 4,
    ),
  );
  assert.deepEqual([await failsAt(349), await failsAt(350)], [4, 5]);
});

test("a socket that connects after its attempt timed out is closed", async (t) => {
  const dialled = Promise.withResolvers<PassThrough>();
  const channel = channelTo(t, "192.0.2.9:1", { connect: () => dialled.promise as never, connectTimeoutMs: 10 });
  assert.match((await failureOf(channel.unary("/x", message, 60_000))).message, /timed out/);
  const socket = new PassThrough();
  dialled.resolve(socket);
  await settle();
  assert.equal(socket.destroyed, true);
});

test("no ping is sent after all calls and streams have ended, in whatever way", async (t) => {
  const { port, sessions } = await startGrpcServer(t, (stream, headers, request) => {
    if (headers[":path"] === "/x") answer(stream, request);
    if (headers[":path"] === "/stream/ends") answerRaw(stream, Buffer.alloc(0));
  });
  const clock = newFakeClock();
  const times = { checkMs: 500, silenceMs: 1_000, streamSilenceMs: 1_000, pingTimeoutMs: 3_600_000, leastPingMs: 1_000 };
  const channel = channelTo(t, `127.0.0.1:${port}`, { keepalive: { clock, ...times } });
  await channel.ready(60_000);
  let pings = 0;
  for (const session of sessions) session.on("ping", () => pings++);
  await channel.unary("/x", message, 60_000);
  await failureOf(channel.unary("/never", message, 20));
  await aStream(channel, "/stream/ends").ended;
  aStream(channel).stream.cancel(); // before it is opened
  const { stream } = aStream(channel);
  await settle();
  await clock.advance(5_000);
  await waitFor(() => pings > 0, { what: "a ping for the stream that is open" });
  stream.cancel();
  await channel.unary("/x", message, 60_000); // the ping has been answered before this
  const before = pings;
  await clock.advance(60_000);
  await channel.unary("/x", message, 60_000);
  assert.equal(pings, before);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientStream, StreamEnd, StreamHandlers } from "../http2/client/stream.ts";
import { newFieldsDecoder } from "../http2/wire/hpack.ts";
import { framedMessage, type GrpcSession, MessageStream, RequestBlocks, UnaryCall } from "./call.ts";
import type { GrpcError } from "./grpc-error.ts";

/** A stream of messages over a fake HTTP/2 stream, which records the calls of its methods in `told`. */
function aStream() {
  const told: string[] = [];
  const ends: unknown[] = [];
  const messages: string[] = [];
  let over = 0;
  const stream = new MessageStream(
    { message: (message) => void messages.push(String(message)), ended: (err) => void ends.push(err?.message) },
    { mostMessageBytes: 100, onOver: () => over++ },
  );
  const under = {
    write: (bytes: Buffer, sent?: () => void) => {
      told.push(`write ${bytes.subarray(5)}`);
      sent?.();
    },
    end: () => void told.push("end"),
    cancel: () => void told.push("cancel"),
    consumed: (bytes: number) => void told.push(`consumed ${bytes}`),
  } as unknown as ClientStream;
  let handlers: StreamHandlers | undefined;
  const start = (): void =>
    stream.start((given) => {
      handlers = given;
      return under;
    });
  const receive = (...texts: string[]): void => {
    for (const text of texts) handlers?.data(framedMessage(Buffer.from(text)));
  };
  return { stream, told, ends, messages, start, receive, over: () => over };
}

test("messages written before the call starts are sent in order, then its end; each callback runs once", () => {
  const { stream, told, start } = aStream();
  const sent: string[] = [];
  for (const text of ["a", "b"]) stream.write(Buffer.from(text), () => void sent.push(text));
  stream.end();
  assert.deepEqual([told, sent], [[], []]);
  start();
  assert.deepEqual(
    [told, sent],
    [
      ["write a", "write b", "end"],
      ["a", "b"],
    ],
  );
  stream.cancel();
  assert.deepEqual(sent, ["a", "b"]);
});

test("write callbacks run for a call that never starts, also for later writes", () => {
  for (const finish of ["cancel", "fail"] as const) {
    const { stream, told, start, ends, over } = aStream();
    const sent: string[] = [];
    stream.write(Buffer.from("a"), () => void sent.push("a"));
    if (finish === "cancel") stream.cancel();
    else stream.fail(new Error("no server") as never);
    stream.cancel();
    stream.write(Buffer.from("b"), () => void sent.push("b"));
    start();
    assert.deepEqual([sent, told, ends, over()], [["a", "b"], [], finish === "fail" ? ["no server"] : [], 1]);
  }
});

test("bytes received during a pause are returned to the window once, on resume", () => {
  const { stream, told, messages, start, receive } = aStream();
  start();
  stream.pause();
  receive("one", "two");
  assert.deepEqual([told, messages], [[], ["one", "two"]]);
  stream.resume();
  stream.resume();
  receive("three");
  assert.deepEqual(told, ["consumed 16", "consumed 10"]);
  stream.pause();
  receive("4");
  stream.resume();
  assert.deepEqual(told.slice(2), ["consumed 6"]);
});

/** A call over a fake connection. */
function aCall({ timeoutMs = 60_000, mostResponseBytes = 100 } = {}) {
  const told: string[] = [];
  let handlers: StreamHandlers | undefined;
  const request = (_block: Buffer, _body: Buffer, _ends: boolean, given: StreamHandlers) => {
    handlers = given;
    return { cancel: () => void told.push("cancel") };
  };
  const keepalive = { callBegan: () => void told.push("began"), callEnded: () => void told.push("over") };
  const session = { connection: { request }, keepalive } as unknown as GrpcSession;
  const observer = {
    started: () => void told.push("started"),
    sent: () => void told.push("sent"),
    received: () => void told.push("received"),
    handled: (code: number) => void told.push(`handled ${code}`),
  };
  const sent = { block: Buffer.alloc(0), message: Buffer.alloc(0), timeoutMs, mostResponseBytes, observer };
  const answer = new Promise<Buffer>((resolve, reject) => new UnaryCall(session, sent, resolve, reject));
  /** What the server answers. @returns the message, or the code and whether the call was processed */
  const answered = (fields: Record<string, string>, end: StreamEnd, body = ""): Promise<string> => {
    if (body !== "") handlers?.data(framedMessage(Buffer.from(body)));
    handlers?.fields(new Map(Object.entries(fields)));
    handlers?.closed(end);
    return answer.then(String, ({ code, unprocessed, details }: GrpcError) => `${code} ${unprocessed} ${details}`);
  };
  return { told, answer, answered, data: (bytes: Buffer) => handlers?.data(bytes) };
}

const ended: StreamEnd = { type: "ended" };
const lost: StreamEnd = { type: "lost", reason: "the connection was lost" };
for (const { name, fields, end = ended, want } of [
  { name: "status OK", fields: { "grpc-status": "0" }, want: "x" },
  { name: "status OK and then a reset", fields: { "grpc-status": "0" }, end: lost, want: "14 false the connection was lost" },
  { name: "an error and then a reset", fields: { "grpc-status": "5", "grpc-message": "no" }, end: lost, want: "5 false no" },
  { name: "a lost connection", fields: { ":status": "200" }, end: lost, want: "14 false the connection was lost" },
  {
    name: "a refusal",
    fields: { ":status": "200" },
    end: { type: "refused", reason: "going away" } as StreamEnd,
    want: "14 true going away",
  },
  ...Object.entries({ 400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14, 500: 2 }).map(([http, code]) => ({
    name: `HTTP status ${http}`,
    fields: { ":status": http },
    want: `${code} false unexpected HTTP status code received from server: ${http}`,
  })),
] as { name: string; fields: Record<string, string>; end?: StreamEnd; want: string }[]) {
  test(`a call that is answered by ${name} ends with ${want}`, async () => {
    assert.equal(await aCall().answered(fields, end, "x"), want);
  });
}

test("a call's events are told once each, in order", async () => {
  const { told, answered } = aCall();
  await answered({ "grpc-status": "0" }, { type: "ended" }, "x");
  assert.deepEqual(told, ["began", "started", "sent", "over", "received", "handled 0"]);
  const failing = aCall();
  await failing.answered({ "grpc-status": "7" }, { type: "ended" });
  assert.deepEqual(failing.told.slice(3), ["over", "handled 7"], "no message");
});

test("a response that is too large, and a deadline, end the call and its stream", async () => {
  const large = aCall({ mostResponseBytes: 3 });
  large.data(framedMessage(Buffer.from("1234")));
  await assert.rejects(large.answer, /ResourceExhausted desc = grpc: received message larger than max \(4 vs\. 3\)$/);
  const late = aCall({ timeoutMs: 1 });
  await assert.rejects(late.answer, (err: GrpcError) => err.code === 4 && /no answer in 1 ms/.test(String(err.cause)));
  for (const [call, code] of [
    [large, 8],
    [late, 4],
  ] as const)
    assert.deepEqual(call.told.slice(3), ["over", "cancel", `handled ${code}`]);
});

test("a response that comes in pieces is put together", async () => {
  const { answered, data } = aCall();
  const whole = framedMessage(Buffer.from("abcdef"));
  for (const [from, to] of [
    [0, 3],
    [3, 7],
    [7, 11],
  ] as const)
    data(whole.subarray(from, to));
  assert.equal(await answered({ "grpc-status": "0" }, { type: "ended" }), "abcdef");
});

test("no message follows the end, also of those that came at once", () => {
  const { stream, messages, ends, told, start } = aStream();
  let given: StreamHandlers | undefined;
  start();
  const cut = new MessageStream(
    {
      message(message) {
        messages.push(String(message));
        cut.cancel();
      },
      ended: (err) => void ends.push(err),
    },
    { mostMessageBytes: 100 },
  );
  cut.start((handlers) => {
    given = handlers;
    return { cancel: () => void told.push("cancel"), consumed() {} } as unknown as ClientStream;
  });
  given?.data(Buffer.concat(["one", "two"].map((text) => framedMessage(Buffer.from(text)))));
  given?.closed({ type: "ended" });
  assert.deepEqual([messages, ends, told, cut.isOver, stream.isOver], [["one"], [], ["cancel"], true, false]);
});

test("header fields are those of the call and its server, in blocks that can be put together", () => {
  const blocks = new RequestBlocks({ scheme: "https", authority: "etcd:2379", userAgent: "cox" });
  const decoded = (block: Buffer): string => newFieldsDecoder().decode(block).fields.join(" ");
  const common =
    ":method POST :scheme https :path /a.B/C :authority etcd:2379 content-type application/grpc te trailers user-agent cox";
  const all = Array.from({ length: 200 }, (_, i) => `${i}m`);
  for (const timeout of [...all, ...all.slice(0, 3)])
    assert.equal(decoded(blocks.get("/a.B/C", "grpc-timeout", timeout, undefined)), `${common} grpc-timeout ${timeout}`);
  assert.equal(blocks.get("/a.B/C", "", "", undefined), blocks.get("/a.B/C", "", "", undefined), "kept");
  assert.equal(decoded(blocks.get("/a.B/C", "", "", "00-1-2-01")), `${common} traceparent 00-1-2-01`);
  const plain = new RequestBlocks({ scheme: "http", authority: "localhost" }).get("/x", "", "", undefined);
  assert.equal(
    decoded(plain),
    ":method POST :scheme http :path /x :authority localhost content-type application/grpc te trailers",
  );
});

test("a finished call leaves no timer", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  let handlers: StreamHandlers | undefined;
  const request = (_block: Buffer, _body: Buffer, _ends: boolean, given: StreamHandlers) => {
    handlers = given;
    return {};
  };
  const session = { connection: { request }, keepalive: { callBegan() {}, callEnded() {} } } as unknown as GrpcSession;
  const sent = {
    block: Buffer.alloc(0),
    message: Buffer.alloc(0),
    timeoutMs: 60_000,
    mostResponseBytes: 100,
    observer: undefined,
  };
  const answer = new Promise<Buffer>((resolve, reject) => new UnaryCall(session, sent, resolve, reject));
  assert.equal(timers(), before + 1);
  handlers?.data(framedMessage(Buffer.from("x")));
  handlers?.fields(new Map([["grpc-status", "0"]]));
  handlers?.closed({ type: "ended" });
  assert.equal(String(await answer), "x");
  assert.equal(timers(), before);
});

test("the header blocks of 64 calls are kept, not of any number", () => {
  const blocks = new RequestBlocks({ scheme: "http", authority: "localhost" });
  const get = (seconds: number): Buffer => blocks.get("/x", "grpc-timeout", `${seconds}S`, undefined);
  const first = get(0);
  for (let i = 1; i < 64; i++) get(i);
  assert.equal(get(0), first);
  get(64);
  assert.notEqual(get(0), first);
  assert.deepEqual(get(0), first);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientStream, StreamHandlers } from "../http2/client/stream.ts";
import { framedMessage, type GrpcSession, MessageStream, UnaryCall } from "./call.ts";

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

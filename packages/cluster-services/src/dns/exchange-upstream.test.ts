/** One query to one server: over TCP when the answer is cut, and what is given back however it ends. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { getEventListeners, once } from "node:events";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { decode, encode } from "dns-packet";
import { queryUpstream } from "./exchange-upstream.ts";
import { newFrameReader, withLength } from "./stream-frames.ts";
import { bindBoth, upstreamReply } from "./testing.ts";

const id = 7;
const request = encode({ id, type: "query", questions: [{ name: "a.example", type: "A" }] });
const truncated = 0x200;
const answerOf = (data: string, ofId = id): Buffer =>
  upstreamReply({ ...decode(request), id: ofId }, [{ name: "a.example", type: "A", ttl: 60, data }]);

/** A query to a server whose answer over UDP is cut; undefined: there is none. What it does over TCP is up to the test. */
async function querying(
  t: TestContext,
  overUdp: Buffer | undefined,
  overTcp: (socket: Socket) => void = () => {},
  answered: () => void = () => {},
  sent = request,
) {
  const [tcp, udp] = await bindBoth("127.0.0.1");
  const seen = { queries: 0, connections: new Set<Socket>(), overTcp: 0 };
  udp.on("message", (_message, from) => {
    seen.queries++;
    if (overUdp !== undefined) udp.send(overUdp, from.port, from.address);
  });
  tcp.on("connection", (socket) => {
    seen.connections.add(socket.on("error", () => {}));
    socket.once("close", () => seen.connections.delete(socket));
    const read = newFrameReader(65_535, (message) => {
      assert.deepEqual(message, request);
      seen.overTcp++;
      overTcp(socket);
    });
    socket.on("data", read);
  });
  const stop = (): void => {
    udp.close();
    tcp.close();
  };
  t.after(stop);
  const clock = newFakeClock();
  const ending = new AbortController();
  const upstream = { address: "127.0.0.1", port: udp.address().port };
  const isAnswer = (message: Buffer): boolean => {
    answered();
    return message.readUInt16BE(0) === id;
  };
  /** @returns the address that was answered, or the error's message */
  const query = (): Promise<string> =>
    queryUpstream({ upstream, request: sent, isAnswer, timeoutMs: 1_500, clock, signal: ending.signal }).then(
      (message) =>
        decode(message)
          .answers?.map((answer) => ("data" in answer ? String(answer.data) : ""))
          .join() ?? "",
      (err: Error) => err.message,
    );
  const assertGivenBack = async (): Promise<void> => {
    assert.deepEqual([clock.waiting, getEventListeners(ending.signal, "abort").length], [0, 0]);
    await waitFor(() => seen.connections.size === 0, { what: "the connection to be closed" });
  };
  return { seen, clock, ending, query, assertGivenBack };
}

const cut = upstreamReply(decode(request), [], truncated);
const inPieces = (socket: Socket): void => {
  for (const byte of Buffer.concat([answerOf("203.0.113.1", 8), answerOf("192.0.2.1")].map(withLength)))
    socket.write(Buffer.of(byte));
};

for (const { name, overTcp, want } of [
  { name: "in pieces, behind another's answer", overTcp: inPieces, want: /^192\.0\.2\.1$/ },
  { name: "not at all: it closes", overTcp: (socket: Socket) => socket.end(), want: /^127\.0\.0\.1 closed the connection$/ },
  { name: "not at all: it breaks off", overTcp: (socket: Socket) => socket.resetAndDestroy(), want: /ECONNRESET/ },
]) {
  test(`when the answer over UDP is cut, the server is queried over TCP, and answers ${name}`, async (t) => {
    const { seen, query, assertGivenBack } = await querying(t, cut, overTcp);
    assert.match(await query(), want);
    assert.deepEqual([seen.queries, seen.overTcp], [1, 1]);
    await assertGivenBack();
  });
}

test("an answer over TCP may have the most bytes that its length can tell", async (t) => {
  const padded = Buffer.concat([answerOf("192.0.2.1"), Buffer.alloc(65_535)]).subarray(0, 65_535);
  const { query } = await querying(t, cut, (socket) => void socket.write(withLength(padded)));
  assert.equal(await query(), "192.0.2.1");
});

for (const { transport, overUdp, late } of [
  { transport: "UDP", overUdp: undefined, late: "no answer from 127.0.0.1 in 1500 ms" },
  { transport: "TCP", overUdp: cut, late: "no answer from 127.0.0.1 over TCP in 1500 ms" },
]) {
  const isQueried = ({ queries, overTcp }: { queries: number; overTcp: number }): boolean =>
    transport === "UDP" ? queries === 1 : overTcp === 1;

  test(`a server that is silent over ${transport} is given up in time`, async (t) => {
    const { seen, clock, query, assertGivenBack } = await querying(t, overUdp);
    const answer = query();
    await waitFor(() => isQueried(seen), { what: "the query" });
    await clock.advance(1_500);
    assert.equal(await answer, late);
    await assertGivenBack();
  });

  test(`a query that is under way over ${transport} ends with its signal`, async (t) => {
    const { seen, ending, query, assertGivenBack } = await querying(t, overUdp);
    const answer = query();
    await waitFor(() => isQueried(seen), { what: "the query" });
    ending.abort(new Error("the part ends"));
    assert.equal(await answer, "the part ends");
    await assertGivenBack();
  });
}

test("nothing is sent once the signal is aborted", async (t) => {
  const { clock, ending, query } = await querying(t, cut);
  ending.abort(new Error("the part ends"));
  assert.deepEqual([await query(), clock.waiting], ["the part ends", 0]);
});

test("no connection is waited for when the signal is aborted as a cut answer arrives", async (t) => {
  const { seen, clock, ending, query, assertGivenBack } = await querying(t, cut, undefined, () =>
    queueMicrotask(() => ending.abort(new Error("the part ends"))),
  );
  assert.equal(await query(), "the part ends");
  await assertGivenBack();
  assert.deepEqual([seen.queries, seen.overTcp, clock.waiting], [1, 0, 0]);
});

test("a server is queried at its IPv6 address", async (t) => {
  const server = createSocket("udp6");
  t.after(() => void server.close());
  server.bind(0, "::1");
  await once(server, "listening");
  server.on("message", (_, from) => server.send(answerOf("192.0.2.6"), from.port, from.address));
  const upstream = { address: "::1", port: server.address().port };
  const options = {
    request,
    isAnswer: () => true,
    timeoutMs: 1_500,
    clock: newFakeClock(),
    signal: new AbortController().signal,
  };
  assert.deepEqual(await queryUpstream({ ...options, upstream }), answerOf("192.0.2.6"));
});

test("a query that cannot be sent is an error at once", async (t) => {
  const { clock, query, assertGivenBack } = await querying(t, undefined, undefined, undefined, Buffer.alloc(65_508));
  assert.match(await query(), /EMSGSIZE/);
  await assertGivenBack();
  assert.equal(clock.waiting, 0);
});

test("a server that is not there is an error at once", async () => {
  const clock = newFakeClock();
  const { signal } = new AbortController();
  const options = { request, isAnswer: () => true, timeoutMs: 1_500, clock, signal };
  await assert.rejects(queryUpstream({ ...options, upstream: { address: "127.0.0.1", port: 1 } }), /ECONNREFUSED/);
  assert.deepEqual([clock.waiting, getEventListeners(signal, "abort").length], [0, 0]);
});

test("messages are cut from a stream however it comes, up to the longest; behind a longer one nothing is read", () => {
  const messages: string[] = [];
  const read = newFrameReader(5, (message) => messages.push(message.toString()));
  const frames = Buffer.concat(["one", "", "three"].map((text) => withLength(Buffer.from(text))));
  assert.deepEqual([read(frames.subarray(0, 1)), read(frames.subarray(1, 8)), read(frames.subarray(8))], [true, true, true]);
  assert.deepEqual(messages.splice(0), ["one", "", "three"]);
  assert.deepEqual([read(withLength(Buffer.from("longer"))), read(withLength(Buffer.from("one")))], [false, false]);
  assert.deepEqual(messages, []);
});

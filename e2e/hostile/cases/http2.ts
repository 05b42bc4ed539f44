/** Invalid, excessive and incomplete frames. */

import { floods, onStreams } from "@coxswain/apimachinery/transport/http2/testing/floods";
import {
  continuationFrame,
  dataFrame,
  type Field,
  getFrame,
  goAwayFrame,
  headersFrame,
  indexedBlock,
  literalBlock,
  pingFrame,
  postFrame,
  priorityFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "@coxswain/apimachinery/transport/http2/testing/raw-frames";
import { flags, frame, frameTypes, preface, settings, settingsFrame } from "@coxswain/apimachinery/transport/http2/wire/frames";
import { type Attack, attacked, type Case } from "../case.ts";

const list = `${attacked}/configmaps`;
const stream = (at: number): number => 1 + 2 * at;
const none = Buffer.alloc(0);

/** On one connection at a time: sends the output of `make` repeatedly until the server closes the connection. */
function onConnections(
  name: string,
  make: (round: number, auth: readonly Field[]) => Buffer,
  first: readonly Buffer[] = [],
): Case {
  return {
    name,
    user: "anonymous",
    run: (attack) =>
      attack.repeat(2, async () => {
        const client = await attack.http2();
        client.send(...first);
        let round = 0;
        while (!client.isClosed && !attack.signal.aborted) await client.flood(make(round++, attack.auth), 1);
        attack.count(client.isClosed ? "ended" : "suffered");
        client.socket.destroy();
      }),
  };
}

/** About 64 kB of the same frames. */
const repeated = (chunk: Buffer): (() => Buffer) => {
  const all = Buffer.concat(Array<Buffer>(Math.max(1, Math.floor(65_536 / chunk.length))).fill(chunk));
  return () => all;
};
const pairs = (round: number, each: (stream: number) => Buffer[], count = 50): Buffer => onStreams(round * count, count, each);

/** Each violates one MUST of RFC 9113, which is a stream or connection error. */
const wrong: readonly (readonly Buffer[])[] = [
  [dataFrame(0, "x")],
  [dataFrame(1, "x")],
  [headersFrame(0, requestFields("GET", "/"))],
  [headersFrame(2, requestFields("GET", "/"))],
  [getFrame(5), getFrame(3)],
  [frame(frameTypes.headers, flags.endHeaders | flags.padded, 1, Buffer.of(200, 0))],
  [frame(frameTypes.data, flags.padded, 1, Buffer.of(9, 0))],
  [frame(frameTypes.priority, 0, 1, Buffer.alloc(4))],
  [frame(frameTypes.priority, 0, 0, Buffer.alloc(5))],
  [priorityFrame(1, 1)],
  [resetFrame(0)],
  [resetFrame(1)],
  [frame(frameTypes.resetStream, 0, 1, Buffer.alloc(3))],
  [frame(frameTypes.settings, 0, 1, none)],
  [frame(frameTypes.settings, 0, 0, Buffer.alloc(5))],
  [frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(6))],
  [settingsFrame([[settings.initialWindowSize, 2 ** 31]])],
  [settingsFrame([[5, 1]])],
  [settingsFrame([[2, 7]])],
  [frame(5, 0, 1, Buffer.alloc(8))],
  [frame(6, 0, 1, Buffer.alloc(8))],
  [frame(6, 0, 0, Buffer.alloc(7))],
  [frame(7, 0, 1, Buffer.alloc(8))],
  [frame(7, 0, 0, Buffer.alloc(4))],
  [goAwayFrame(0, 2), getFrame(1)],
  [windowFrame(0, 0)],
  [windowFrame(1, 1)],
  [getFrame(1), windowFrame(1, 0)],
  [windowFrame(0, 2 ** 31 - 1)],
  [frame(frameTypes.windowUpdate, 0, 0, Buffer.alloc(3))],
  [continuationFrame(1, none)],
  [headersFrame(1, literalBlock([["a", "b"]]), 0), pingFrame("12345678")],
  [headersFrame(1, literalBlock([["a", "b"]]), 0), continuationFrame(3, none)],
  [frame(frameTypes.data, 0, 1, Buffer.alloc(16_385))],
  [headersFrame(1, Buffer.alloc(10, 0xff))],
  [headersFrame(1, Buffer.of(0x80))],
  [headersFrame(1, [[":method", "GET"]])],
  [headersFrame(1, requestFields("GET", "/", [["Upper", "x"]]))],
  [headersFrame(1, requestFields("GET", "/", [["connection", "close"]]))],
  [headersFrame(1, requestFields("GET", "/", [["te", "gzip"]]))],
  [headersFrame(1, requestFields("GET", "/", [[":late", "x"]]))],
  [headersFrame(1, [["a", "b"], ...requestFields("GET", "/")])],
  [headersFrame(1, requestFields("GET", ""))],
  [headersFrame(1, requestFields("GET", "/", [["a", "b\r\nc: d"]]))],
  [headersFrame(1, requestFields("GET", "/", [["content-length", "5"]]))],
  [postFrame(1, "/", [["content-length", "1"]]), dataFrame(1, "xx", flags.endStream)],
  [getFrame(1), dataFrame(1, "x")],
  [getFrame(1), getFrame(1)],
  [headersFrame(1, requestFields("CONNECT", "/"))],
];

const heldUp = (name: string, connections: number, ...chunks: readonly Buffer[]): Case => ({
  name,
  user: "anonymous",
  async run(attack) {
    await Promise.all(
      Array.from({ length: connections }, async () => {
        const socket = await attack.tls("h2");
        socket.resume();
        socket.write(Buffer.concat(chunks));
      }),
    );
    attack.count("open");
    await attack.over;
  },
});

/** Streams with a window of 0 on several connections, as many as the server accepts. */
async function unread(attack: Attack, path: string, connections: number, each: number): Promise<void> {
  const open = async (): Promise<void> => {
    const client = await attack.http2({ settings: [[settings.initialWindowSize, 0]] });
    client.send(...Array.from({ length: each }, (_, i) => getFrame(stream(i), path, attack.auth)));
    attack.count("connections");
  };
  await Promise.all(Array.from({ length: connections }, open));
  await attack.over;
}

const firstFields = literalBlock(requestFields("GET", "/version"));
export const http2Cases: readonly Case[] = [
  {
    name: "each wrong frame that ends a stream or the connection",
    user: "anonymous",
    run: (attack) =>
      attack.repeat(4, async (lane, round) => {
        const client = await attack.http2();
        client.send(...(wrong[(4 * round + lane) % wrong.length] as Buffer[]), pingFrame("12345678"));
        await client.until(() => client.isClosed || client.frames.some(({ type, flag }) => type === 6 && flag === 1), "an end");
        attack.count(client.isClosed ? "connection" : "stream");
        client.socket.destroy();
      }),
  },
  onConnections("rapid reset", (round) => pairs(round, (id) => [getFrame(id, "/api"), resetFrame(id)])),
  {
    name: "rapid reset of lists by a user who may",
    user: "ordinary",
    run: (attack) =>
      attack.repeat(2, async () => {
        const client = await attack.http2();
        for (let round = 0; !client.isClosed && !attack.signal.aborted; round++)
          await client.flood(
            pairs(round, (id) => [getFrame(id, list, attack.auth), resetFrame(id)]),
            1,
          );
        attack.count("ended");
      }),
  },
  onConnections("streams that the server is made to reset", (round) =>
    pairs(round, (id) => [getFrame(id, "/api"), windowFrame(id, 2 ** 31 - 1)]),
  ),
  ...Object.entries(floods).map(([name, { first, again }]) => onConnections(name, repeated(again), first)),
  onConnections("SETTINGS of the table's size", (round) => repeated(settingsFrame([[1, round % 2 === 0 ? 0 : 65_536]]))()),
  onConnections("HPACK: a large field that thousands refer to", (round) => {
    const fields = Buffer.concat([firstFields, Buffer.alloc(16_000, 0xbe)]);
    const begin = headersFrame(
      stream(round * 10),
      round === 0 ? Buffer.concat([firstFields, indexedBlock([["a", "b".repeat(4000)]])]) : fields,
    );
    return Buffer.concat([begin, ...Array.from({ length: 9 }, (_, i) => headersFrame(stream(round * 10 + i + 1), fields))]);
  }),
  onConnections("HPACK: the table filled anew by each request", (round) =>
    pairs(round, (id) => [
      headersFrame(id, Buffer.concat([firstFields, indexedBlock(Array.from({ length: 100 }, (_, i) => [`n${id}-${i}`, "v"]))])),
    ]),
  ),
  onConnections("header lists at the limit", (round) =>
    pairs(round, (id) => [getFrame(id, "/api", [["a", "b".repeat(15_000)]])], 5),
  ),
  onConnections("many header fields", (round) =>
    pairs(
      round,
      (id) => [
        getFrame(
          id,
          "/api",
          Array.from({ length: 900 }, (_, i) => [`x${i}`, "y"]),
        ),
      ],
      5,
    ),
  ),
  onConnections("malformed requests", (round) => pairs(round, (id) => [headersFrame(id, literalBlock([["connection", "x"]]))])),
  heldUp("half a preface on 300 connections", 300, preface.subarray(0, 10)),
  heldUp("half a frame on 300 connections", 300, preface, settingsFrame([]), getFrame(1).subarray(0, 20)),
  heldUp("nothing after the preface on 300 connections", 300, preface),
  heldUp(
    "100 bodies that do not come on each of 20 connections",
    20,
    preface,
    settingsFrame([]),
    ...Array.from({ length: 100 }, (_, i) => postFrame(stream(i), list)),
  ),
  {
    name: "DATA in frames of one byte",
    user: "ordinary",
    run: (attack) =>
      attack.repeat(2, async () => {
        const client = await attack.http2();
        client.send(postFrame(1, list, [...attack.auth, ["content-type", "application/json"]]));
        const bytes = Buffer.concat(Array<Buffer>(1000).fill(dataFrame(1, " ")));
        while (!client.isClosed && !attack.signal.aborted && client.resetCode(1) === undefined && !client.isWhole(1)) {
          await client.until(() => client.streamCredit(1) >= 1000 || client.isClosed || client.isWhole(1), "room");
          client.sendData(1, bytes, 1000);
        }
        attack.count("ended");
        client.socket.destroy();
      }),
  },
  { name: "100 watches without a window", user: "ordinary", run: (attack) => unread(attack, `${list}?watch=true`, 4, 25) },
  {
    name: "100 lists of 5 MB without a window",
    user: "ordinary",
    async setup(attack) {
      const data = { text: "x".repeat(500_000) };
      for (let at = 0; at < 10; at++) await attack.prepare("POST", list, { body: { metadata: { name: `large-${at}` }, data } });
    },
    run: (attack) => unread(attack, list, 4, 25),
    cleanup: (attack) => attack.removeAll(list),
  },
  {
    name: "connections without end",
    user: "anonymous",
    run: (attack) =>
      attack.repeat(20, async () => {
        const client = await attack.http2();
        client.send(getFrame(1, "/version"));
        await client.answer(1);
        attack.count("answered");
        client.socket.destroy();
      }),
  },
];

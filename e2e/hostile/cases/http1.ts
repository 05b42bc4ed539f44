/** Truncated, slow and ambiguous TLS and HTTP/1.1 input. */
import { once } from "node:events";
import { type Attack, attacked, type Case } from "../case.ts";

const maps = `${attacked}/configmaps`;
const body = '{"metadata":{"generateName":"a-"}}';

function headOf(attack: Attack, method: string, path: string, ...more: readonly string[]): string {
  const auth = attack.auth.map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, "host: localhost", ...auth, ...more, "", ""].join("\r\n");
}

/** Connections that send these bytes and then stay idle. */
const standing = (name: string, connections: number, text: (attack: Attack, at: number) => string): Case => ({
  name,
  user: "ordinary",
  async run(attack) {
    await Promise.all(
      Array.from({ length: connections }, async (_, at) => {
        const socket = await attack.tls();
        socket.resume();
        socket.write(text(attack, at));
        attack.count("open");
      }),
    );
    await attack.over;
  },
});

/** Complete requests, each on a separate connection; counts the status lines. */
const said = (name: string, texts: (attack: Attack) => readonly string[]): Case => ({
  name,
  user: "ordinary",
  async run(attack) {
    const all = texts(attack);
    await attack.repeat(4, async (lane, round) => {
      const socket = await attack.tls();
      const answer = once(socket, "data") as Promise<[Buffer]>;
      socket.end(all[(4 * round + lane) % all.length] ?? "");
      const [bytes] = await Promise.race([answer, once(socket, "close").then(() => [Buffer.from("HTTP/1.1 closed")])]);
      attack.count(/^HTTP\/1\.1 (\w+)/.exec(bytes.toString("latin1"))?.[1] ?? "else");
      socket.destroy();
    });
  },
});

/** Sends a byte every few ms on many connections. */
const drip = (name: string, first: (attack: Attack) => string, piece: string): Case => ({
  name,
  user: "ordinary",
  async run(attack) {
    await attack.repeat(50, async () => {
      const socket = await attack.tls();
      socket.resume();
      socket.write(first(attack));
      while (!attack.signal.aborted && socket.writable) {
        socket.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      attack.count("ended");
    });
  },
});

const chunked = ["content-type: application/json", "transfer-encoding: chunked"] as const;

export const http1Cases: readonly Case[] = [
  {
    name: "300 connections without a TLS handshake",
    user: "anonymous",
    async run(attack) {
      await Promise.all(Array.from({ length: 300 }, () => attack.tcp()));
      await attack.over;
    },
  },
  {
    name: "TLS handshakes that stop halfway",
    user: "anonymous",
    run: (attack) =>
      attack.repeat(50, async (_lane, round) => {
        const socket = await attack.tcp();
        // The start of a ClientHello that is never completed, or bytes that are not TLS.
        socket.write(round % 2 === 0 ? Buffer.from("16030100c8010000c40303", "hex") : Buffer.alloc(100, 0x16));
        attack.count("open");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }),
  },
  {
    name: "TLS handshakes without end",
    user: "anonymous",
    run: (attack) =>
      attack.repeat(20, async () => {
        const socket = await attack.tls();
        socket.destroy();
        attack.count("handshakes");
      }),
  },
  standing("heads cut at any byte", 200, (attack, at) => {
    const whole = headOf(attack, "POST", maps, "content-type: application/json", `content-length: ${body.length}`);
    return whole.slice(0, 1 + ((at * 7) % whole.length));
  }),
  standing("bodies cut at any byte", 200, (attack, at) => {
    const head = headOf(attack, "POST", maps, "content-type: application/json", `content-length: ${body.length}`);
    return head + body.slice(0, at % body.length);
  }),
  standing("chunks cut at any byte", 200, (attack, at) => {
    const text = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r`;
    return headOf(attack, "POST", maps, ...chunked) + text.slice(0, at % text.length);
  }),
  said("heads that say two things", (attack) => [
    headOf(attack, "POST", maps, "content-length: 3", "content-length: 4") + body,
    headOf(attack, "POST", maps, "content-length: 3", "transfer-encoding: chunked") + body,
    headOf(attack, "POST", maps, "transfer-encoding: chunked, identity") + body,
    headOf(attack, "POST", maps, "transfer-encoding: xchunked") + body,
    headOf(attack, "GET", maps, "host: other"),
    headOf(attack, "GET", maps, " folded: a", "\tb"),
    headOf(attack, "GET", maps, "a b: c"),
    headOf(attack, "GET", maps, "a: \0"),
    headOf(attack, "GET", `${maps}?a b`),
    "GET / HTTP/9.9\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\r\n".repeat(1000),
    "\0".repeat(1000),
  ]),
  said("chunks that lie", (attack) => [
    `${headOf(attack, "POST", maps, ...chunked)}fffffffffffffffff\r\n`,
    `${headOf(attack, "POST", maps, ...chunked)}-1\r\nx`,
    `${headOf(attack, "POST", maps, ...chunked)}0x5\r\nhello`,
    `${headOf(attack, "POST", maps, ...chunked)}5;${"a".repeat(20_000)}\r\nhello`,
    `${headOf(attack, "POST", maps, ...chunked)}2\r\nhello\r\n0\r\n\r\n`,
    `${headOf(attack, "POST", maps, ...chunked)}0\r\n${"a: b\r\n".repeat(3000)}\r\n`,
  ]),
  said("heads of 100 kB", (attack) => [
    headOf(attack, "GET", `/${"a".repeat(100_000)}`),
    headOf(attack, "GET", maps, `a: ${"b".repeat(100_000)}`),
    headOf(attack, "GET", maps, ...Array.from({ length: 10_000 }, (_, i) => `a${i}: b`)),
  ]),
  drip("heads a byte at a time", (attack) => headOf(attack, "GET", maps).slice(0, -2), "a"),
  drip(
    "bodies a byte at a time",
    (attack) => headOf(attack, "POST", maps, "content-type: application/json", "content-length: 100000"),
    " ",
  ),
  drip("chunks a byte at a time", (attack) => headOf(attack, "POST", maps, ...chunked), "1\r\n \r\n"),
  {
    name: "pipelined requests without end",
    user: "ordinary",
    run: (attack) =>
      attack.repeat(4, async () => {
        const socket = await attack.tls();
        socket.resume();
        const many = headOf(attack, "GET", maps).repeat(100);
        while (!attack.signal.aborted && socket.writable) {
          if (!socket.write(many)) await Promise.race([once(socket, "drain"), once(socket, "close"), attack.over]);
          attack.count("hundreds");
        }
      }),
  },
  {
    name: "pipelined requests whose answers are not read",
    user: "ordinary",
    run: (attack) =>
      attack.repeat(4, async () => {
        const socket = await attack.tls();
        socket.pause();
        const many = headOf(attack, "GET", "/openapi/v2").repeat(100);
        if (!socket.write(many)) await Promise.race([once(socket, "drain"), once(socket, "close")]);
        attack.count("hundreds");
        await Promise.race([once(socket, "close"), attack.over]);
      }),
  },
  standing("100 watches over HTTP/1.1", 100, (attack) => headOf(attack, "GET", `${maps}?watch=true`)),
];

import assert from "node:assert/strict";
import { test } from "node:test";
import { SimpleHeadReader } from "./simple-head.ts";

const read = (text: string) => new SimpleHeadReader().read(Buffer.from(text, "latin1"));
const lines = (...all: string[]): string => [...all, "", ""].join("\r\n");

test("a simple request is read as it was sent", () => {
  assert.deepEqual(read(lines("GET /api/v1/pods?limit=5&a=%20#x HTTP/1.1", "Host: x:1", "X-Empty:", "accept: \t a b \t")), {
    url: "/api/v1/pods?limit=5&a=%20#x",
    fields: ["Host", "x:1", "X-Empty", "", "accept", "a b"],
    names: ["host", "x-empty", "accept"],
  });
});

for (const word of ["keep-alive", "Keep-Alive"]) {
  test(`a request with Connection: ${word} is simple`, () => {
    assert.deepEqual(read(lines("GET / HTTP/1.1", "Host: x", `Connection: ${word}`))?.names, ["host", "connection"]);
  });
}

test("repeated header blocks are not parsed again, others are", () => {
  const reader = new SimpleHeadReader();
  const readHead = (...all: string[]) => reader.read(Buffer.from(lines(...all)));
  const first = readHead("GET /a HTTP/1.1", "Host: x");
  const second = readHead("GET /b HTTP/1.1", "Host: x");
  assert.deepEqual([second?.url, second?.fields === first?.fields], ["/b", true]);
  assert.deepEqual(readHead("GET /b HTTP/1.1", "Host: y")?.fields, ["Host", "y"]);
  assert.equal(readHead("GET /b HTTP/1.1", "Host: y", "Upgrade: x"), undefined);
  assert.equal(readHead("GET /b HTTP/1.1", "Host: y", "Upgrade: x"), undefined);
  assert.deepEqual(readHead("GET /b HTTP/1.1", "Host: y")?.fields, ["Host", "y"]);
});

const host = "Host: x";
const others: Readonly<Record<string, string>> = {
  "nothing but the line": "GET / HTTP/1.1\r\n",
  "no end": `GET / HTTP/1.1\r\n${host}\r\n`,
  "the end of another": "\r\n\r\n",
  "two of them": lines("GET /a HTTP/1.1", host) + lines("GET /b HTTP/1.1", host),
  "one and a half": `${lines("GET /a HTTP/1.1", host)}GET`,
  "a body": `${lines("GET / HTTP/1.1", host)}x\r\n\r\n`,
  "another method": lines("POST / HTTP/1.1", host),
  "a method in small letters": lines("get / HTTP/1.1", host),
  "HEAD, whose answer has no body": lines("HEAD / HTTP/1.1", host),
  "an empty line first": `\r\n${lines("GET / HTTP/1.1", host)}`,
  "an older version": lines("GET / HTTP/1.0", host),
  "no version": lines("GET /", host),
  "a whole address": lines("GET http://x/ HTTP/1.1", host),
  "a space in the path": lines("GET /a b HTTP/1.1", host),
  "a tab in the path": lines("GET /a\tb HTTP/1.1", host),
  "a path that is not ASCII": lines("GET /\xe4 HTTP/1.1", host),
  "two spaces": lines("GET  / HTTP/1.1", host),
  "no host": lines("GET / HTTP/1.1", "A: b"),
  "two hosts": lines("GET / HTTP/1.1", host, host),
  "a field twice": lines("GET / HTTP/1.1", host, "A: b", "a: c"),
  "a length": lines("GET / HTTP/1.1", host, "Content-Length: 0"),
  chunks: lines("GET / HTTP/1.1", host, "Transfer-Encoding: chunked"),
  "an upgrade": lines("GET / HTTP/1.1", host, "Connection: Upgrade", "Upgrade: websocket"),
  "the end of the connection": lines("GET / HTTP/1.1", host, "Connection: close"),
  "more of the connection": lines("GET / HTTP/1.1", host, "Connection: keep-alive, x"),
  "what is expected": lines("GET / HTTP/1.1", host, "Expect: 100-continue"),
  "a name with a space": lines("GET / HTTP/1.1", host, "A : b"),
  "a field over two lines": lines("GET / HTTP/1.1", host, "A: b", " c"),
  "no name": lines("GET / HTTP/1.1", host, ": b"),
  "no colon": lines("GET / HTTP/1.1", host, "A"),
  "a bare line feed": lines("GET / HTTP/1.1", host, "A: b\nC: d"),
  "a bare carriage return": lines("GET / HTTP/1.1", host, "A: b\rc"),
  "a zero": lines("GET / HTTP/1.1", host, "A: \0"),
  "a value that is not ASCII": lines("GET / HTTP/1.1", host, "A: \xe4"),
  "other spaces around a value": lines("GET / HTTP/1.1", host, "A: \xa0b"),
  "very many fields": lines("GET / HTTP/1.1", host, ...Array.from({ length: 64 }, (_, n) => `A${n}: b`)),
  "very long fields": lines("GET / HTTP/1.1", host, `A: ${"b".repeat(10_000)}`),
};
const notSimple = [
  "Content-Length",
  "Expect",
  "HTTP2-Settings",
  "Keep-Alive",
  "Proxy-Connection",
  "TE",
  "Trailer",
  "Transfer-Encoding",
];
for (const field of [...notSimple, "Upgrade"]) {
  test(`a request with ${field} is not simple`, () => {
    for (const name of [field, field.toLowerCase()]) assert.equal(read(lines("GET / HTTP/1.1", host, `${name}: 1`)), undefined);
  });
}
for (const [name, text] of Object.entries(others)) test(`${name} is not simple`, () => assert.equal(read(text), undefined));

test("64 fields, and 8 KiB in all, are simple", () => {
  const many = lines("GET / HTTP/1.1", host, ...Array.from({ length: 63 }, (_, n) => `A${n}: b`));
  assert.equal(read(many)?.names.length, 64);
  const long = (bytes: number): string => {
    const short = lines("GET / HTTP/1.1", host, "A: ").length;
    return lines("GET / HTTP/1.1", host, `A: ${"b".repeat(bytes - short)}`);
  };
  assert.deepEqual(read(long(8_192))?.names, ["host", "a"]);
  assert.equal(read(long(8_193)), undefined);
});

test("adversarial header fields are parsed in linear time", () => {
  const spaces = lines("GET / HTTP/1.1", host, `A: b${" \t".repeat(3900)}b`);
  const names = lines("GET / HTTP/1.1", host, ...Array.from({ length: 1500 }, (_, n) => `${n}:`));
  const before = process.cpuUsage().user;
  for (let i = 0; i < 200; i++) {
    read(spaces);
    read(names);
  }
  assert.ok(process.cpuUsage().user - before < 300_000);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { areTrailers, connectionFields, requestHeadOf } from "./input.ts";

const start = [":method", "POST", ":path", "/api", ":scheme", "https", ":authority", "api:6443"];
const withStart = (...fields: string[]): string[] => [...start, ...fields];
const without = (name: string): string[] => start.filter((_, at) => start[at - (at % 2)] !== name);
const instead = (name: string, value: string): string[] => [...without(name), name, value];

test("a request's head is read from its pseudo-header fields, in any order", () => {
  const head = { method: "POST", path: "/api", authority: "api:6443", contentLength: undefined };
  assert.deepEqual(requestHeadOf(start), head);
  assert.deepEqual(requestHeadOf(instead(":method", "POST")), head);
  assert.deepEqual(requestHeadOf([...without(":authority"), "host", "other"]), { ...head, authority: undefined });
  assert.deepEqual(requestHeadOf(withStart("a", "1", "content-length", "7", "content-length", "7")), {
    ...head,
    contentLength: 7,
  });
});

for (const { name, fields } of [
  ...[":method", ":path", ":scheme"].map((name) => ({ name: `without ${name}`, fields: without(name) })),
  ...start.filter((_, at) => at % 2 === 0).map((name) => ({ name: `with ${name} twice`, fields: [...start, name, "/x"] })),
  { name: "with a pseudo field of no request", fields: withStart(":status", "200") },
  { name: "with a pseudo field behind others", fields: [...without(":authority"), "a", "1", ":authority", "api"] },
  { name: "without a path", fields: instead(":path", "") },
  { name: "with a relative path", fields: instead(":path", "api") },
  { name: "of everything that is no question for options", fields: instead(":path", "*") },
  { name: "with a method that is none", fields: instead(":method", "PO ST") },
  { name: "without a method", fields: instead(":method", "") },
  { name: "with a line break in its authority", fields: instead(":authority", "a\r\nb: c") },
  { name: "with a length that is none", fields: withStart("content-length", "-1") },
  { name: "with a length beyond all bounds", fields: withStart("content-length", "1".repeat(16)) },
  { name: "with two lengths", fields: withStart("content-length", "7", "content-length", "8") },
  { name: "with a bad second field", fields: withStart("a", "1", "Bad", "2") },
]) {
  test(`a request ${name} is malformed`, () => assert.equal(typeof requestHeadOf(fields), "string"));
}

for (const { fields, want } of [
  { fields: withStart("x-one", "a\0"), want: "invalid value of x-one" },
  { fields: instead(":scheme", "ftp"), want: "invalid value of :scheme" },
  { fields: instead(":method", "CONNECT"), want: "CONNECT with :path" },
  { fields: instead(":path", "api"), want: "invalid value of :path" },
  { fields: without(":method"), want: "missing pseudo-header field" },
]) {
  test(`a malformed request is refused for ${want}`, () => assert.equal(requestHeadOf(fields), want));
}

for (const { fields, want } of [
  { fields: ["connection", "close"], want: 'request header "Connection" is not valid in HTTP/2' },
  { fields: ["transfer-encoding", "chunked"], want: 'request header "Transfer-Encoding" is not valid in HTTP/2' },
  { fields: ["te", "trailers", "keep-alive", ""], want: 'request header "Keep-Alive" is not valid in HTTP/2' },
  { fields: ["te", "gzip"], want: 'request header "TE" may only be "trailers" in HTTP/2' },
  { fields: ["te", "trailers", "te", "trailers"], want: 'request header "TE" may only be "trailers" in HTTP/2' },
  { fields: ["te", "", "te", ""], want: 'request header "TE" may only be "trailers" in HTTP/2' },
  { fields: ["te", "trailers"], want: undefined },
  { fields: ["te", ""], want: undefined },
]) {
  test(`a request with ${JSON.stringify(fields)} is ${want === undefined ? "well-formed" : "to be answered with 400"}`, () => {
    const head = requestHeadOf(withStart(...fields));
    assert.deepEqual(head, {
      method: "POST",
      path: "/api",
      authority: "api:6443",
      contentLength: undefined,
      ...(want && { refusal: want }),
    });
  });
}

test("only OPTIONS may have the path *", () => {
  assert.partialDeepStrictEqual(requestHeadOf([":method", "OPTIONS", ":path", "*", ":scheme", "https"]), { path: "*" });
});

for (const { fields, want } of [
  { fields: [], want: true },
  { fields: ["grpc-status", "0", "x-y_z", ""], want: true },
  { fields: ["te", "trailers"], want: true },
  { fields: ["te", "gzip"], want: false },
  { fields: ["a", "1", "te", "trailers, gzip"], want: false },
  { fields: [":path", "/"], want: false },
  { fields: ["", "1"], want: false },
  { fields: ["a", " 1"], want: true },
  { fields: ["a", "1\t"], want: true },
  { fields: ["te", "trailers "], want: false },
  { fields: ["a", "1 2\t3"], want: true },
  { fields: ["a", "1\0"], want: false },
  { fields: ["a", "1\x1f2"], want: false },
  { fields: ["a", "1\x7f"], want: false },
  { fields: ["a", "1\x80\xff"], want: true },
  { fields: ["a", "1\n"], want: false },
  { fields: ["a b", "1"], want: false },
  { fields: ["aB", "1"], want: false },
  ...[...connectionFields].map((name) => ({ fields: ["a", "1", name, "x"], want: false })),
]) {
  test(`${JSON.stringify(fields)} ${want ? "may" : "may not"} be fields`, () => assert.equal(areTrailers(fields), want));
}

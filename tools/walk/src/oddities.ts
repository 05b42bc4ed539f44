import type { Random } from "./random.ts";

const pathChanges: readonly ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => `/${path}`,
  (path) => path.replace("/namespaces/", "//namespaces/"),
  (path) => path.replace("/namespaces/", "/namespaces/./"),
  (path) => path.replace("/namespaces/", "/namespaces/../namespaces/"),
  (path) => path.replace(/\/(\w+)$/, "%2f$1"),
  (path) => path.replace("api", "%61pi"),
  (path) => `${path}%00`,
  (path) => `${path}/..`,
  (path) => `${path}/..%2f..`,
  (path) => `${path}/status/status`,
  (path) => `${path}/__proto__`,
  (path) => `${path}/constructor`,
  (path) => `${path};a=b`,
  (path) => `${path}%zz`,
  (path) => `${path}%c0%af`,
  (path) => path.replace(/\/v\d\w*\//, "/v99/"),
  (path) => path.replace(/^\/apis?\//, "/apis/"),
  (path) => path.replace(/^\/(apis?)\/(.*)$/, "/$1/watch/$2"),
];

/** The same path, written otherwise, or one beside it. Every one of them is answered, none is served as another's. */
export function oddPath(path: string, random: Random): string {
  return random.pick(pathChanges)(path);
}

const key = "dGhlIHNhbXBsZSBub25jZQ==";
const socket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": key };

const upgrades: readonly Readonly<Record<string, string>>[] = [
  socket,
  { ...socket, origin: "https://evil.example" },
  { ...socket, origin: "https://evil.example", "sec-websocket-protocol": "v4.channel.k8s.io" },
  { ...socket, "sec-websocket-protocol": "nobody.knows.this, channel.k8s.io" },
  { ...socket, "sec-websocket-version": "99", origin: "http://localhost" },
  { ...socket, "sec-websocket-key": "short", origin: "http://localhost" },
  { ...socket, "sec-websocket-extensions": "permessage-deflate; server_max_window_bits=99", origin: "http://localhost" },
  { connection: "Upgrade", upgrade: "SPDY/3.1" },
  { connection: "Upgrade", upgrade: "SPDY/3.1", "x-stream-protocol-version": "v99.channel.k8s.io" },
  { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA" },
  { connection: "Upgrade", upgrade: "TLS/1.0" },
  { connection: "Upgrade", upgrade: "\u00ff" },
];

/** Asks for another protocol, whether the path has one or not. */
export function oddUpgrade(random: Random): Record<string, string> {
  return { ...random.pick(upgrades) };
}

const frames: readonly string[] = [
  "8180000000ff", // a text frame, masked, broken off
  "810548656c6c6f", // not masked
  "82ffffffffffffffffff00000000", // 2^64 - 1 bytes to come
  "827f8000000000000000", // 2^63, not masked
  "c18000000000", // a bit of an extension that was not agreed
  "8f8000000000", // an operation that is not there
  "09fe020000000000", // a ping too long, and in parts
  "888100000000ff", // a close with half a code
  "80030001000000000000", // SPDY: SYN_STREAM without its fields
  "80030001ffffffff", // SPDY: 16 MB of it
  "000000010affffff", // SPDY: data for a stream that is not there
  "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a", // the preface of HTTP/2
];

/** What is said once the other protocol was agreed to, or is hoped to be. */
export function oddFrames(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.below(3) }, () => Buffer.from(random.pick(frames), "hex")));
}

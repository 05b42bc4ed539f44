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

/** An alternative spelling of a path, or a similar path. The server must respond, and must not serve it as another path. */
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

/** Headers of a protocol upgrade, whether the path supports it or not. */
export function oddUpgrade(random: Random): Record<string, string> {
  return { ...random.pick(upgrades) };
}

const frames: readonly string[] = [
  "8180000000ff", // masked text frame, incomplete
  "810548656c6c6f", // unmasked frame
  "82ffffffffffffffffff00000000", // length 2^64 - 1
  "827f8000000000000000", // length 2^63, unmasked
  "c18000000000", // reserved bit of an extension that was not negotiated
  "8f8000000000", // unknown opcode
  "09fe020000000000", // fragmented ping longer than 125 bytes
  "888100000000ff", // close frame with half a status code
  "80030001000000000000", // SPDY: SYN_STREAM without its fields
  "80030001ffffffff", // SPDY: SYN_STREAM of 16 MB
  "000000010affffff", // SPDY: data for an unknown stream
  "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a", // HTTP/2 connection preface
];

/** Random frames sent after the upgrade request. */
export function oddFrames(random: Random): Buffer {
  return Buffer.concat(Array.from({ length: 1 + random.below(3) }, () => Buffer.from(random.pick(frames), "hex")));
}

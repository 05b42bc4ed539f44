import assert from "node:assert/strict";
import { test } from "node:test";
import { grpcTarget } from "./target.ts";

for (const { target, want } of [
  { target: "https://10.0.0.1:2379", want: { scheme: "https", authority: "10.0.0.1:2379", host: "10.0.0.1", port: 2379 } },
  { target: "http://[::1]:2379", want: { scheme: "http", authority: "[::1]:2379", host: "::1", port: 2379 } },
  { target: "https://etcd.example", want: { scheme: "https", authority: "etcd.example", host: "etcd.example", port: 443 } },
  { target: "http://otel.example", want: { scheme: "http", authority: "otel.example", host: "otel.example", port: 80 } },
  { target: "localhost:4317", want: { scheme: "http", authority: "localhost:4317", host: "localhost", port: 4317 } },
  { target: "dns:///otel:4317", want: { scheme: "http", authority: "otel:4317", host: "otel", port: 4317 } },
  { target: "dns://8.8.8.8/otel:4317", want: { scheme: "http", host: "otel", port: 4317 } },
  { target: "dns:otel:4317", want: { host: "otel", port: 4317 } },
  { target: "unix:///run/kms.sock", want: { scheme: "http", authority: "localhost", socket: "/run/kms.sock" } },
  { target: "unix:/run/kms.sock", want: { socket: "/run/kms.sock" } },
  { target: "unix-abstract:kms", want: { socket: "\0kms" } },
]) {
  test(`${target} is a target`, () => assert.partialDeepStrictEqual(grpcTarget(target), want));
}

test("a target without an address is invalid", () => {
  for (const target of ["", "http://", "dns:///"]) assert.throws(() => grpcTarget(target), /Invalid URL/);
});

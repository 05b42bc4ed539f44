import assert from "node:assert/strict";
import { test } from "node:test";
import { formatLocation } from "../aggregation/service-resolver.ts";
import { ownHost } from "./own-host.ts";

for (const [bindAddress, url] of [
  ["0.0.0.0", "https://127.0.0.1:6443"],
  ["::", "https://[::1]:6443"],
  ["::1", "https://[::1]:6443"],
  ["2001:db8::1", "https://[2001:db8::1]:6443"],
  ["192.0.2.1", "https://192.0.2.1:6443"],
] as const) {
  test(`a server that listens at ${bindAddress} reaches itself at ${url}`, () => {
    assert.equal(`https://${formatLocation({ host: ownHost(bindAddress), port: 6443 })}`, url);
  });
}

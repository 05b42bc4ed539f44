import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readServers, serversOf, writeServers } from "./server-file.ts";

test("the list is read as it was written; what is no address is left out, and a file without any is refused", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-servers-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "below", "api-servers");
  writeServers(file, ["192.0.2.11:6443", "[fd00::1]:6443"]);
  assert.deepEqual(readServers(file), ["192.0.2.11:6443", "[fd00::1]:6443"]);
  assert.deepEqual(readdirSync(join(folder, "below")), ["api-servers"]);
  writeFileSync(
    file,
    "# by hand\n\n 192.0.2.12:6443 \napi.example:6443\n192.0.2.13\n192.0.2.13:0\n192.0.2.13:65536\n192.0.2.14:65535\n",
  );
  assert.deepEqual(readServers(file), ["192.0.2.12:6443", "192.0.2.14:65535"]);
  writeFileSync(file, "\n");
  assert.throws(() => readServers(file), /must contain one address of an API server per line/);
  assert.throws(() => readServers(join(folder, "none")), /ENOENT/);
});

test("servers are those of the port https in all slices, once each", () => {
  const slice = (addressType: string, addresses: string[], port?: number) => ({
    metadata: { name: "kubernetes" },
    ...{ addressType, endpoints: [{ addresses }], ports: port === undefined ? [] : [{ name: "https", port }] },
  });
  const slices = [
    slice("IPv4", ["192.0.2.12", "192.0.2.11"], 6443),
    slice("IPv4", ["192.0.2.11"], 6443),
    slice("IPv6", ["fd00::1"], 443),
    slice("FQDN", ["api.example"], 443),
    slice("IPv4", ["192.0.2.14"]),
  ];
  assert.deepEqual(serversOf(slices), ["192.0.2.11:6443", "192.0.2.12:6443", "[fd00::1]:443"]);
  assert.deepEqual(serversOf([]), []);
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { formatFieldErrors } from "@coxswain/apimachinery/errors/field-error";
import { type EgressSelection, egressErrors, readEgressConfiguration } from "./configuration.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-egress-"));
after(() => rmSync(directory, { recursive: true }));

function fileOf(text: string): string {
  const path = join(directory, "egress.yaml");
  writeFileSync(path, text);
  return path;
}

const head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";
const cluster = (connection: NonNullable<EgressSelection["connection"]>): EgressSelection => ({ name: "cluster", connection });
const httpConnect = (transport: NonNullable<EgressSelection["connection"]>["transport"]) =>
  cluster({ proxyProtocol: "HTTPConnect", ...(transport && { transport }) });

for (const { name, selections, want } of [
  { name: "direct", selections: [cluster({ proxyProtocol: "Direct" })], want: "" },
  { name: "over a socket", selections: [httpConnect({ uds: { udsName: "/x" } })], want: "" },
  { name: "over http", selections: [httpConnect({ tcp: { url: "http://x" } })], want: "" },
  {
    name: "an unknown protocol",
    selections: [cluster({ proxyProtocol: "SOCKS" })],
    want: 'service.connection.protocol: Unsupported value: "SOCKS": supported values: "Direct", "HTTPConnect", "GRPC"',
  },
  {
    name: "no transport",
    selections: [httpConnect(undefined)],
    want: "service.connection.transport: Required value: transport must be set for HTTPConnect",
  },
  {
    name: "a transport of nothing",
    selections: [httpConnect({})],
    want: "service.connection.tcp: Required value: One of TCP or UDS must be set",
  },
  {
    name: "an unnamed socket",
    selections: [httpConnect({ uds: {} })],
    want: 'service.connection.udsName: Invalid value: "nil": must be present for UDS connections',
  },
  {
    name: "another scheme",
    selections: [httpConnect({ tcp: { url: "ftp://x" } })],
    want: 'service.connection.url: Invalid value: "ftp://x": supported connection protocols are http:// and https://',
  },
  {
    name: "https without a certificate",
    selections: [httpConnect({ tcp: { url: "https://x", tlsConfig: { clientKey: "/none" } } })],
    want: '[service.connection.tlsConfig.clientCert: Invalid value: "nil": Using TLS requires clientCert, service.connection.tlsConfig.clientKey: Invalid value: "/none": TLS client key does not exist]',
  },
  {
    name: "GRPC over TCP",
    selections: [cluster({ proxyProtocol: "GRPC", transport: { tcp: { url: "http://x" } } })],
    want: "service.connection.uds: Required value: UDS must be set with GRPC",
  },
  {
    name: "one twice",
    selections: [cluster({ proxyProtocol: "Direct" }), { name: "Cluster", connection: { proxyProtocol: "Direct" } }],
    want: 'service.connection[1]: Duplicate value: "cluster"',
  },
  {
    name: "an unknown name",
    selections: [{ name: "moon", connection: { proxyProtocol: "Direct" } }],
    want: 'service.connection: Unsupported value: "moon": supported values: "cluster", "controlplane", "etcd", "master"',
  },
]) {
  test(`egress selections: ${name}`, () => assert.equal(formatFieldErrors(egressErrors(selections)), want));
}

test("what is no configuration ends the start, and what is not built says so", () => {
  assert.throws(() => readEgressConfiguration("/nowhere"), { message: "egress-selector-config-file /nowhere does not exist" });
  assert.throws(
    () => readEgressConfiguration(fileOf("kind: Pod")),
    /^Error: failed to read egress selector config: no kind "Pod" is registered/,
  );
  assert.throws(
    () => readEgressConfiguration(fileOf(`${head}- name: cluster\n`)),
    /^Error: failed to validate egress selector configuration: /,
  );
  const etcd = `${head}- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /x}}}}\n`;
  assert.throws(() => readEgressConfiguration(fileOf(etcd)), {
    message: "egress selector: HTTPConnect for etcd is not supported by this server",
  });
  assert.equal(readEgressConfiguration(fileOf(`${head}- {name: etcd, connection: {proxyProtocol: Direct}}\n`)), undefined);
});

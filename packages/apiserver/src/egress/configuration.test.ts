import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { readEgressConfiguration } from "./configuration.ts";
import { proxyServerOf } from "./proxy-server.ts";
import type { EgressSelection } from "./selections.ts";
import { egressErrors } from "./validation.ts";

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
    want: 'service.connection.udsName: Invalid value: "nil": UDSName should be present for UDS connections',
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
    name: "https without a key, and with files that are not there",
    selections: [httpConnect({ tcp: { url: "https://x", tlsConfig: { caBundle: "/none", clientCert: "/none" } } })],
    want: '[service.connection.tlsConfig.caBundle: Invalid value: "/none": TLS config ca bundle does not exist, service.connection.tlsConfig.clientCert: Invalid value: "/none": TLS client cert does not exist, service.connection.tlsConfig.clientKey: Invalid value: "nil": Using TLS requires requires clientKey]',
  },
  {
    name: "two with a fault",
    selections: [httpConnect({}), { name: "etcd", connection: { proxyProtocol: "GRPC" } }],
    want: "[service.connection.tcp: Required value: One of TCP or UDS must be set, service.connection.transport: Required value: transport must be set for GRPC]",
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
    want: 'service.connection: Unsupported value: "moon": supported values: "cluster", "controlplane", "etcd"',
  },
  {
    name: "the name that controlplane had once",
    selections: [{ name: "master", connection: { proxyProtocol: "Direct" } }],
    want: 'service.connection: Unsupported value: "master": supported values: "cluster", "controlplane", "etcd"',
  },
  {
    name: "GRPC over a socket",
    selections: [cluster({ proxyProtocol: "GRPC", transport: { uds: { udsName: "/x" } } })],
    want: "",
  },
  {
    name: "GRPC without a transport",
    selections: [cluster({ proxyProtocol: "GRPC" })],
    want: "service.connection.transport: Required value: transport must be set for GRPC",
  },
  {
    name: "direct over a socket",
    selections: [cluster({ proxyProtocol: "Direct", transport: {} })],
    want: 'service.connection.transport: Invalid value: "direct": Transport config should be absent for direct connect',
  },
  {
    name: "over both",
    selections: [httpConnect({ tcp: { url: "http://x" }, uds: { udsName: "/x" } })],
    want: 'service.connection.tcp: Invalid value: apiserver.TCPTransport{URL:"http://x", TLSConfig:(*apiserver.TLSConfig)(nil)}: TCP and UDS cannot both be set',
  },
  {
    name: "http with certificates",
    selections: [httpConnect({ tcp: { url: "http://x", tlsConfig: {} } })],
    want: 'service.connection.tlsConfig: Invalid value: "nil": TLSConfig config should not be present when using HTTP',
  },
  {
    name: "https without TLS",
    selections: [httpConnect({ tcp: { url: "https://x" } })],
    want: "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS",
  },
]) {
  test(`egress selections: ${name}`, () => assert.equal(formatFieldErrors(egressErrors(selections)), want));
}

const selectionOf = (name: string, transport: string, protocol = "HTTPConnect"): string =>
  `- {name: ${name}, connection: {proxyProtocol: ${protocol}, transport: ${transport}}}\n`;

test("a file says for each selection which proxy, and which protocol it speaks", () => {
  const read = readEgressConfiguration(
    fileOf(
      `${head}- {name: Cluster, connection: {proxyProtocol: Direct}}\n` +
        selectionOf("etcd", '{tcp: {url: "http://proxy.example.com:80/"}}') +
        selectionOf("controlPlane", "{uds: {udsName: /run/k.sock}}", "GRPC"),
    ),
  );
  const shown = Object.entries(read).map(([name, { protocol, transport, name: proxy }]) => [name, protocol, transport, proxy]);
  assert.deepEqual(shown, [
    ["etcd", "http_connect", "tcp", "proxy.example.com:80"],
    ["controlplane", "grpc", "uds", "/run/k.sock"],
  ]);
});

test("a file is read as by Go: field names in any case, any version, unknown fields ignored", () => {
  const text = `apiVersion: v7\nkind: EgressSelectorConfiguration\nextra: 1\negressSelections:\n${selectionOf("etcd", '{TCP: {URL: "http://x:1", more: {}}}')}`;
  assert.equal(readEgressConfiguration(fileOf(text)).etcd?.name, "x:1");
  assert.deepEqual(readEgressConfiguration(fileOf("kind: EgressSelectorConfiguration\negressSelections: null\n")), {});
  assert.deepEqual(readEgressConfiguration(""), {});
});

const unreadable = "failed to read egress selector config: ";
const wrongShape = `${unreadable}error unmarshaling JSON: while decoding JSON: json: cannot unmarshal `;
for (const { name, text, message } of [
  { name: "nothing", text: "", message: `${unreadable}invalid service configuration object ""` },
  { name: "another kind", text: "kind: Pod", message: `${unreadable}invalid service configuration object "Pod"` },
  { name: "a list", text: "[]", message: `${wrongShape}array into Go value of type v1beta1.EgressSelectorConfiguration` },
  {
    name: "selections that are none",
    text: "egressSelections: {}",
    message: `${wrongShape}object into Go struct field EgressSelectorConfiguration.egressSelections of type []v1beta1.EgressSelection`,
  },
  {
    name: "a transport that is text",
    text: `${head}${selectionOf("etcd", "tcp")}`,
    message: `${wrongShape}string into Go struct field Connection.egressSelections.connection.transport of type v1beta1.Transport`,
  },
  {
    name: "a URL that is a list",
    text: `${head}${selectionOf("etcd", "{tcp: {url: []}}")}`,
    message: `${wrongShape}array into Go struct field TCPTransport.egressSelections.connection.transport.tcp.url of type string`,
  },
  {
    name: "an invalid selection",
    text: `${head}- name: cluster\n`,
    message: /^failed to validate egress selector configuration: /,
  },
  {
    name: "a URL that is none",
    text: `${head}${selectionOf("etcd", '{tcp: {url: "http://[x"}}')}`,
    message:
      /^failed to setup egress selector: failed to create dialer for egressSelection "etcd": invalid proxy server url "http:\/\/\[x": /,
  },
]) {
  test(`a file with ${name} ends the start`, () => assert.throws(() => readEgressConfiguration(fileOf(text)), { message }));
}

test("certificates that are not of their key, and authorities that are none, end the start", async () => {
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const ca = await newCa({ commonName: "ca" });
  const [one, other] = [await newCertificate({ commonName: "a", usages: ["client"], ca }), ca];
  const cert = write("one.crt", one.certPem);
  for (const { key, caBundle, message } of [
    { key: other.keyPem, caBundle: ca.certPem, message: /got tls: private key does not match public key$/ },
    { key: one.keyPem, caBundle: undefined, message: new RegExp(`: failed to read cert file ${directory}, got EISDIR`) },
    { key: one.keyPem, caBundle: "nothing", message: /: failed to append CA cert to the cert pool$/ },
  ]) {
    const tlsConfig = `{clientCert: ${cert}, clientKey: ${write("a.key", key)}, caBundle: ${caBundle === undefined ? directory : write("ca.crt", caBundle)}}`;
    const path = fileOf(head + selectionOf("etcd", `{tcp: {url: "https://x:1", tlsConfig: ${tlsConfig}}}`));
    assert.throws(() => readEgressConfiguration(path), message);
  }
});

test("files that are not there, or hold no certificates, end the start", () => {
  assert.throws(() => readEgressConfiguration("/nowhere"), { message: "egress-selector-config-file /nowhere does not exist" });
  assert.throws(() => readEgressConfiguration(directory), {
    message: new RegExp(
      `^failed to read egress selector config: unable to read egress selector configuration from "${directory}"`,
    ),
  });
  const empty = join(directory, "empty.pem");
  writeFileSync(empty, "");
  const noPair = "tls: failed to find any PEM data in certificate input";
  const tls = `{tcp: {url: "https://x", tlsConfig: {clientCert: ${empty}, clientKey: ${empty}}}}`;
  assert.throws(() => readEgressConfiguration(fileOf(head + selectionOf("etcd", tls))), {
    message: new RegExp(`egressSelection "etcd": failed to read key pair ${empty} & ${empty}, got ${noPair}$`),
  });
});

test("a proxy whose URL names no port is at that of its scheme", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const pair = await newCertificate({ commonName: "a", usages: ["client"], ca });
  const files = Object.fromEntries(
    Object.entries({ clientCert: pair.certPem, clientKey: pair.keyPem }).map(([name, text]) => {
      writeFileSync(join(directory, name), text);
      return [name, join(directory, name)];
    }),
  );
  const dialled: unknown[] = [];
  t.mock.method(Socket.prototype, "connect", function connect(this: Socket, ...given: unknown[]) {
    const [options] = given.flat() as { port?: number; host?: string }[];
    dialled.push([options?.host, options?.port]);
    return this;
  });
  for (const [url, tlsConfig] of [
    ["http://192.0.2.1", undefined],
    ["https://192.0.2.1", files],
    ["https://192.0.2.1:8131/path", files],
  ] as const) {
    void proxyServerOf({ proxyProtocol: "HTTPConnect", transport: { tcp: { url, ...(tlsConfig && { tlsConfig }) } } }).connect(
      AbortSignal.timeout(60_000),
    );
  }
  assert.deepEqual(dialled, [
    ["192.0.2.1", 80],
    ["192.0.2.1", 443],
    ["192.0.2.1", 8131],
  ]);
});

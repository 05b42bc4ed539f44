import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import WebSocket from "ws";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";
import { aConfigMap, configMaps } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

interface Options {
  readonly protocols?: string[];
  readonly headers?: Record<string, string>;
  readonly protocolVersion?: number;
}

/** Opens a WebSocket like a browser, as the administrator unless overridden. */
function open(path: string, { protocols = [], headers = {}, protocolVersion = 13 }: Options = {}, at = server) {
  const all = { origin: "https://dashboard.example.com", authorization: `Bearer ${at.adminToken}`, ...headers };
  const socket = new WebSocket(at.url.replace("https", "wss") + path, protocols, {
    ca: at.ca,
    protocolVersion,
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== "")),
  });
  const messages: { data: Buffer; binary: boolean }[] = [];
  socket.on("message", (data, binary) => void messages.push({ data: data as Buffer, binary }));
  socket.on("error", () => {});
  return {
    socket,
    messages,
    opened: new Promise<void>((resolve) => socket.once("open", resolve)),
    closed: new Promise<number>((resolve) => socket.once("close", resolve)),
    /** Code and body of a response that is not an upgrade. */
    refused: new Promise<{ code: number; text: string }>((resolve) => {
      socket.once(
        "unexpected-response",
        asyncListener(async (_request, response) => {
          const text = (await Array.fromAsync(response as AsyncIterable<Buffer>)).join("");
          socket.terminate();
          resolve({ code: response.statusCode as number, text });
        }),
      );
    }),
  };
}

test("a watch over a WebSocket sends each event as a text message", async () => {
  const watch = open(`${configMaps}?watch=1&labelSelector=ws=json`);
  await watch.opened;
  await server.request("POST", configMaps, aConfigMap("ws-json", {}, { ws: "json" }));
  await server.request("DELETE", `${configMaps}/ws-json`);
  await waitFor(() => watch.messages.length === 2);
  const events = watch.messages.map(({ data, binary }) => ({ binary, event: JSON.parse(data.toString()) }));
  hasFields(events, [
    { binary: false, event: { type: "ADDED", object: { kind: "ConfigMap", metadata: { name: "ws-json" } } } },
    { binary: false, event: { type: "DELETED", object: { kind: "ConfigMap", metadata: { name: "ws-json" } } } },
  ]);
  watch.socket.close();
  await watch.closed;
});

test("in protobuf the messages are binary WatchEvents, without a length before them", async () => {
  await server.request("POST", configMaps, aConfigMap("ws-protobuf", {}, { ws: "protobuf" }));
  const accept = "application/vnd.kubernetes.protobuf;stream=watch";
  const watch = open(`${configMaps}?watch=1&labelSelector=ws=protobuf`, { headers: { accept } });
  await waitFor(() => watch.messages.length === 1);
  const [{ data, binary }] = watch.messages as [{ data: Buffer; binary: boolean }];
  assert.equal(binary, true);
  assert.equal(data.subarray(0, 7).toString("latin1"), "\n\u0005ADDED");
  assert.ok(data.includes("k8s\0"));
  watch.socket.close();
});

test("the old watch path and its end take the WebSocket too", async () => {
  const watch = open("/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1");
  await watch.opened;
  assert.equal(await watch.closed, 1000);
});

test("a message of the client is discarded, a large one closes the connection with 1009", async () => {
  const watch = open(`${configMaps}?watch=1&labelSelector=ws=none`);
  await watch.opened;
  watch.socket.send("hello");
  await server.request("POST", configMaps, aConfigMap("ws-none", {}, { ws: "none" }));
  await waitFor(() => watch.messages.length === 1);
  watch.socket.send(Buffer.alloc(1 << 20));
  assert.equal(await watch.closed, 1009);
});

test("the one protocol that a client names is agreed to, and a browser's token is none", async () => {
  const token = Buffer.from(server.adminToken).toString("base64url");
  const protocols = ["any.example.com", `base64url.bearer.authorization.k8s.io.${token}`];
  const watch = open(`${configMaps}?watch=1`, { protocols, headers: { authorization: "" } });
  await watch.opened;
  assert.equal(watch.socket.protocol, "any.example.com");
  watch.socket.close();
});

for (const { name, options, code, text } of [
  { name: "without Origin", options: { headers: { origin: "" } }, code: 403, text: "" },
  { name: "with a null Origin", options: { headers: { origin: "null" } }, code: 403, text: "" },
  { name: "with several protocols", options: { protocols: ["one", "two"] }, code: 400, text: "" },
  {
    name: "of another version",
    options: { protocolVersion: 8 },
    code: 400,
    text: "missing or bad WebSocket Version",
  },
  { name: "with an unknown token", options: { headers: { authorization: "Bearer x" } }, code: 401, text: undefined },
  {
    name: "whose token is the only protocol",
    options: { protocols: ["base64url.bearer.authorization.k8s.io.eA"], headers: { authorization: "" } },
    code: 401,
    text: undefined,
  },
] as { name: string; options: Options; code: number; text: string | undefined }[]) {
  test(`a WebSocket ${name} is refused with ${code}`, async () => {
    const refused = await open(`${configMaps}?watch=1`, options).refused;
    assert.equal(refused.code, code);
    if (text !== undefined) assert.equal(refused.text, text);
  });
}

test("an error before the watch begins is a plain answer", async () => {
  const refused = await open(`${configMaps}?watch=1&timeoutSeconds=soon`).refused;
  assert.equal(refused.code, 400);
  assert.partialDeepStrictEqual(JSON.parse(refused.text), { kind: "Status", reason: "BadRequest" });
});

test("the audit knows when a WebSocket was accepted and when it ended", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-websocket-audit-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const [policy, log] = [join(directory, "policy.yaml"), join(directory, "audit.log")];
  const rule = '{"level":"Metadata","verbs":["watch"],"users":["admin"],"omitStages":["RequestReceived"]}';
  writeFileSync(policy, `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[${rule},{"level":"None"}]}`);
  const audited = await startTestServer(t, [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`]);
  const watch = open(`${configMaps}?watch=1&timeoutSeconds=1`, {}, audited);
  await watch.closed;
  const events = () =>
    readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  await waitFor(() => events().length === 2);
  assert.deepEqual(
    events().map(({ stage, responseStatus }) => [stage, responseStatus?.code]),
    [
      ["ResponseStarted", 101],
      ["ResponseComplete", 101],
    ],
  );
});

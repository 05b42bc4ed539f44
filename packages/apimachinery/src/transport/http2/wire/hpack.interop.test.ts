import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { flags, frame, frameTypes, newFrameReader, preface, settings, settingsFrame } from "./frames.ts";
import { encodeFields, newFieldsDecoder } from "./hpack.ts";

/**
 * Node's client, which uses nghttp2's encoder with a dynamic table of `tableBytes`; the server responds with the fields of
 * `answer`.
 */
async function aClient(t: TestContext, { tableBytes, answer }: { tableBytes: number; answer: readonly string[] }) {
  const requests: string[][] = [];
  const sizes: number[] = [];
  const server = createServer((socket: Socket) => {
    const decoder = newFieldsDecoder({ tableBytes });
    const read = newFrameReader((type, flag, stream, payload) => {
      if (type !== frameTypes.headers) return;
      sizes.push(payload.length);
      requests.push(decoder.decode((flag & flags.priority) === 0 ? payload : payload.subarray(5)).fields);
      socket.write(frame(frameTypes.headers, flags.endHeaders | flags.endStream, stream, encodeFields(answer)));
    });
    socket.once("data", (first: Buffer) => {
      socket.on("data", read);
      read(first.subarray(preface.length));
    });
    socket.on("error", () => {});
    socket.write(settingsFrame([[settings.headerTableSize, tableBytes]]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.after(() => {
    client.destroy();
    server.close();
  });
  await once(client, "remoteSettings");
  return { client, requests, sizes };
}

async function ask(client: ClientHttp2Session, headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> {
  const stream = client.request(headers, { endStream: true });
  const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders];
  stream.resume();
  await once(stream, "close");
  return answer;
}

/** All octets allowed in a value except space, which must not be first or last. */
const octets = Buffer.from(Array.from({ length: 255 - 32 }, (_, i) => 33 + i).filter((octet) => octet !== 127));
const headersOf = (i: number): Record<string, string> => ({
  ":method": i % 2 === 0 ? "GET" : "PUT",
  ":path": `/api/v1/namespaces/default/pods/web-${i}`,
  ":authority": "kubernetes.default",
  ":scheme": "https",
  accept: "application/vnd.kubernetes.protobuf, */*",
  authorization: `Bearer ${"token".repeat(40)}`,
  "user-agent": "kubectl/v1.23.0 (linux/amd64) kubernetes/ab69524",
  [`x-${i % 7}`]: "z".repeat(i * 10),
  octets: octets.toString("latin1"),
});

for (const tableBytes of [0, 100, 1_000, 4_096]) {
  test(`headers of Node's client are decoded: a table of ${tableBytes} bytes`, async (t) => {
    const { client, requests, sizes } = await aClient(t, { tableBytes, answer: [":status", "200"] });
    const sent = Array.from({ length: 40 }, (_, i) => headersOf(i));
    for (const headers of sent) await ask(client, headers);
    for (const [i, headers] of sent.entries()) {
      const fields = requests[i] as string[];
      const read = fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : []));
      assert.deepEqual(Object.fromEntries(read), headers);
    }
    // Repeated fields are shorter where the dynamic table is available.
    if (tableBytes === 4_096) assert.ok((sizes[1] as number) < (sizes[0] as number) / 2, sizes.join());
  });
}

test("encoded headers are decoded by Node's client", async (t) => {
  const answer = {
    "audit-id": "1",
    "content-type": "application/json",
    long: "x".repeat(300),
    octets: octets.toString("latin1"),
  };
  for (const status of [200, 201, 404, 503]) {
    const fields = [":status", String(status), ...Object.entries(answer).flat()];
    const { client } = await aClient(t, { tableBytes: 4_096, answer: fields });
    for (let again = 0; again < 2; again++) {
      const got = Object.entries(await ask(client, headersOf(1)));
      assert.deepEqual(Object.fromEntries(got), { ":status": status, ...answer });
    }
  }
});

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startUdpServer } from "./udp-server.ts";

test("late answers are sent; one that is ready after the end of the server is dropped, as is none", async (t) => {
  const answers: PromiseWithResolvers<Buffer | undefined>[] = [];
  const handle = (): Promise<Buffer | undefined> => {
    const answer = Promise.withResolvers<Buffer | undefined>();
    answers.push(answer);
    return answer.promise;
  };
  const server = await startUdpServer("127.0.0.1", 0, handle, discardLogger);
  const failures: unknown[] = [];
  const failed = (err: unknown): void => void failures.push(err);
  process.on("unhandledRejection", failed);
  t.after(() => void process.off("unhandledRejection", failed));
  const client = createSocket("udp4");
  t.after(() => void client.close());
  for (let i = 0; i < 3; i++) client.send("?", server.port, "127.0.0.1");
  await waitFor(() => answers.length === 3);
  const received = once(client, "message");
  answers[0]?.resolve(undefined);
  answers[1]?.resolve(Buffer.from("late"));
  assert.equal(String((await received)[0]), "late");
  await server.close();
  await server.close();
  answers[2]?.resolve(Buffer.from("too late"));
  await settle(5);
  assert.deepEqual(failures, []);
});

test("answers at an IPv6 address, and only there", async (t) => {
  const server = await startUdpServer(
    "::1",
    0,
    (message, client, transport) => Buffer.from(`${client} ${transport} ${message}`),
    discardLogger,
  );
  t.after(() => server.close());
  const client = createSocket("udp6");
  t.after(() => void client.close());
  client.send("one", server.port, "::1");
  assert.equal(String((await once(client, "message"))[0]), "::1 udp one");
  const other = createSocket("udp4");
  t.after(() => void other.close());
  other.bind({ port: server.port, address: "127.0.0.1", exclusive: true });
  await once(other, "listening");
});

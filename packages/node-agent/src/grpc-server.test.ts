import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { registerHooks } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { serveGrpc } from "./grpc-server.ts";

// grpc-js is not imported above, so that the first test sees when the server loads it.
let loads = 0;
let isFailing = false;
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "@grpc/grpc-js") loads++;
    if (specifier === "@grpc/grpc-js" && isFailing) throw new Error("cannot be read");
    return next(specifier, context);
  },
});

async function serve(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "cox-grpc-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const socket = join(folder, "s.sock");
  const errors: string[] = [];
  const server = await serveGrpc({
    socket,
    methods: {
      "/test.Echo/Echo": (request) => Buffer.concat([Buffer.from("echo "), request]),
      "/test.Echo/Fail": () => {
        throw new Error("no devices left");
      },
    },
    log: { ...discardLogger, error: (message: string) => void errors.push(message) },
  });
  t.after(() => server.close());
  return { socket, server, errors };
}

async function call(t: TestContext, socket: string, method: string, text: string): Promise<string> {
  const { Client, credentials } = await import("@grpc/grpc-js");
  const client = new Client(`unix://${socket}`, credentials.createInsecure());
  t.after(() => client.close());
  const same = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 60_000;
    client.makeUnaryRequest(`/test.Echo/${method}`, same, same, Buffer.from(text), { deadline }, (err, response) =>
      err === null ? resolve(String(response)) : reject(err),
    );
  });
}

test("the gRPC library is loaded with the first connection, whatever it sends, or with the next if that fails; later clients are served", async (t) => {
  const { socket, errors } = await serve(t);
  assert.equal(loads, 0);
  isFailing = true;
  await once(connect(socket).resume(), "close");
  assert.deepEqual([loads, errors], [1, ["A gRPC connection cannot be served"]]);
  isFailing = false;
  const garbage = connect(socket);
  await once(garbage, "connect");
  garbage.on("error", () => {});
  garbage.write("GET / HTTP/1.1\r\n\r\n");
  await once(garbage.resume(), "close");
  assert.equal(loads, 2);
  assert.equal(await call(t, socket, "Echo", "a"), "echo a");
});

test("clients that connect at the same time are all served, also when one of them disconnects", async (t) => {
  const { socket } = await serve(t);
  const gone = connect(socket);
  gone.on("connect", () => gone.destroy());
  const responses = await Promise.all(["a", "b", "c"].map((text) => call(t, socket, "Echo", text)));
  assert.deepEqual(responses, ["echo a", "echo b", "echo c"]);
});

test("an error of a handler is status Unknown with its message; the connection remains usable", async (t) => {
  const { socket } = await serve(t);
  await assert.rejects(call(t, socket, "Fail", ""), { code: 2, details: "no devices left" });
  await assert.rejects(call(t, socket, "Other", ""), { code: 12 });
  assert.equal(await call(t, socket, "Echo", ""), "echo ");
});

test("close ends open connections and removes the socket", async (t) => {
  const { socket, server } = await serve(t);
  assert.equal(await call(t, socket, "Echo", "a"), "echo a");
  const open = connect(socket);
  await once(open, "connect");
  const closed = once(open.resume(), "close");
  server.close();
  await closed;
  assert.equal(existsSync(socket), false);
});

test("listening on a path in use is an error", async (t) => {
  const { socket } = await serve(t);
  await assert.rejects(serveGrpc({ socket, methods: {}, log: discardLogger }), { code: "EADDRINUSE" });
});

import assert from "node:assert/strict";
import { connect } from "node:http2";
import { request } from "node:https";
import { test } from "node:test";
import { discardLogger } from "../process/logging/logger.ts";
import { waitFor } from "../testing/wait-for.ts";
import { newCa, newCertificate } from "./certificates.ts";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { startHttpServer } from "./https-server.ts";

const ca = await newCa({ commonName: "ca" });
const pair = await newCertificate({ commonName: "a", ips: ["127.0.0.1"], usages: ["server"], ca });

interface Received {
  text: string;
  whole: boolean;
  closed: boolean;
}

/** @returns the part of the response a client has received so far */
const clients: Readonly<Record<string, (url: string) => { received: Received; stop(): void }>> = {
  "HTTP/2"(url) {
    const received: Received = { text: "", whole: false, closed: false };
    const session = connect(url, { ca: ca.certPem });
    session.on("error", () => {});
    const stream = session.request({ ":path": "/" });
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      received.text += chunk.toString();
    });
    stream.once("close", () => {
      received.whole = stream.readableEnded && stream.rstCode === 0;
      received.closed = true;
    });
    return { received, stop: () => session.destroy() };
  },
  "HTTP/1.1"(url) {
    const received: Received = { text: "", whole: false, closed: false };
    const sent = request(url, { ca: ca.certPem, agent: false }, (answer) => {
      answer.on("error", () => {});
      answer.on("data", (chunk: Buffer) => {
        received.text += chunk.toString();
      });
      answer.once("close", () => {
        received.whole = answer.complete;
        received.closed = true;
      });
    });
    sent.on("error", () => {});
    sent.end();
    return { received, stop: () => sent.destroy() };
  },
};

for (const [protocol, connected] of Object.entries(clients)) {
  for (const written of ["", "the beginning"]) {
    test(`${protocol}: a response cut off after ${JSON.stringify(written)} is not complete for the client`, async (t) => {
      let exchange: Exchange | undefined;
      let stream: ResponseStream | undefined;
      const server = await startHttpServer({
        port: 0,
        bindAddress: "127.0.0.1",
        tls: { cert: pair.certPem, key: pair.keyPem },
        log: discardLogger,
        handler(requested) {
          exchange = requested;
          stream = requested.stream(200, {});
          if (written !== "") stream.write(written);
        },
      });
      const { received, stop } = connected(`https://127.0.0.1:${server.port}`);
      t.after(async () => {
        stop();
        await server.close(0);
      });
      await waitFor(() => (written === "" ? exchange?.headersSent : received.text === written), { what: "the beginning" });
      exchange?.destroy();
      await waitFor(() => received.closed, { what: "the end" });
      assert.deepEqual(received, { text: written, whole: false, closed: true });
    });
  }
}

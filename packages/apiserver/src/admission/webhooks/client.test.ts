import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { startTlsPeer } from "../../testing/tls-peer.ts";
import { newWebhookClient } from "./client.ts";

const review = { version: "v1", uid: "1", body: "{}" } as const;
const { signal } = new AbortController();
const reviewWith = (clientConfig: object) =>
  newWebhookClient(
    () => ({ host: "127.0.0.1", port: 1 }),
    () => ({ headers: {} }),
    new Turns(),
  ).review({ clientConfig }, review, false, signal);

test("a webhook without an endpoint is not called, which is an error of this server", async () => {
  await assert.rejects(reviewWith({}), {
    code: 500,
    message: "could not get REST client: webhook configuration must have either service or URL",
  });
});

test("a webhook that cannot be reached, or does not answer with a review, is a failure with 503", async (t) => {
  await assert.rejects(reviewWith({ url: "https://127.0.0.1:1/" }), {
    code: 503,
    message: /^failed to call webhook: Post "https:/,
  });
  const peer = await startTlsPeer(t, () => ({ body: {} }));
  const clientConfig = { url: peer.url, caBundle: Buffer.from(peer.ca).toString("base64") };
  await assert.rejects(reviewWith(clientConfig), {
    code: 503,
    message: "received invalid webhook response: webhook response was absent",
  });
});

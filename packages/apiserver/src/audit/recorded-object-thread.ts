/** The worker thread of `recorded-object.ts`. */

import { parentPort } from "node:worker_threads";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { recordedObject, type SentObject } from "./recorded-object.ts";

parentPort?.on("message", (sent: SentObject & { readonly maxBytes: number }) => {
  try {
    const recorded = recordedObject(sent, sent.maxBytes);
    // A copy with its own ArrayBuffer, which can be transferred: small Buffers are slices of a shared pool.
    const json = recorded.json && new Uint8Array(recorded.json);
    parentPort?.postMessage({ ...recorded, ...(json && { json }) }, json ? [json.buffer] : []);
  } catch (err) {
    parentPort?.postMessage({ failure: messageOf(err) });
  }
});

import type http from "node:http";
import type https from "node:https";
import { stripBrackets } from "./dial.ts";
import { asError } from "./transport-errors.ts";
import type { TransportRequest, TransportResponse } from "./transport-messages.ts";
import { onUnsolicitedUpgrade } from "./unsolicited-upgrade.ts";

/** Sends a request over HTTP/1.1. Resolves with the head of the response; rejects with Node's error or the signal's reason. */
export function requestOverHttp1(
  send: typeof http.request | typeof https.request,
  url: URL,
  options: http.RequestOptions,
  request: TransportRequest,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const { method, path, headers, body, signal } = request;
    if (signal?.aborted) return reject(signal.reason);
    const outgoing = send({
      ...options,
      host: stripBrackets(url.hostname),
      port: url.port || undefined,
      method,
      path,
      headers: {
        ...(headers as http.OutgoingHttpHeaders), // cast: the lists of values are readonly here; Node does not change them
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
    });
    let response: http.IncomingMessage | undefined;
    const onAbort = (): void => {
      reject(signal?.reason);
      outgoing.destroy();
      response?.destroy(asError(signal?.reason));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    outgoing.once("response", (incoming) => {
      response = incoming;
      incoming.once("close", () => signal?.removeEventListener("abort", onAbort));
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
    });
    const fail = (err: Error): void => {
      signal?.removeEventListener("abort", onAbort);
      reject(err);
    };
    outgoing.on("error", fail);
    onUnsolicitedUpgrade(outgoing, fail);
    outgoing.end(body);
  });
}

import { createHash } from "node:crypto";
import { request as tls } from "node:https";
import { onUnsolicitedUpgrade } from "@coxswain/apimachinery/client/unsolicited-upgrade";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { serverIdentityFault } from "@coxswain/apimachinery/transport/connect";
import { request as plain } from "@coxswain/apimachinery/transport/node-http";
import type { PodSources } from "./merge.ts";
import { manifestTooLong, maxManifestBytes, staticPods } from "./static-pod.ts";

export interface HttpSourceOptions {
  url: string;
  headers: Readonly<Record<string, readonly string[]>>;
  nodeName: string;
  frequencyMs: number;
  sources: PodSources;
  clock: Clock;
  turns: Turns;
  log: Logger;
}

const timeoutMs = 10_000;

/** Polls a URL for static Pods. Source: pkg/kubelet/config/http.go */
export async function runHttpSource(options: HttpSourceOptions, signal: AbortSignal): Promise<void> {
  let last = "";
  while (!signal.aborted) {
    try {
      const text = await fetchText(options.url, options.headers);
      if (text === "") {
        options.sources.set("http", []); // the source has answered: nothing else waits for it
        last = "";
        throw new Error(`zero-length data received from ${options.url}`);
      }
      const digest = createHash("sha256").update(text).digest("hex");
      if (digest !== last) {
        const { url: from, nodeName, turns } = options;
        const now = options.clock.now();
        options.sources.set("http", await staticPods(text, { source: "http", from, nodeName, now, turns }));
        last = digest;
      }
    } catch (err) {
      options.log.error("Failed to read pods from URL", err, { url: options.url });
    }
    await options.clock.sleep(options.frequencyMs, signal).catch(() => undefined);
  }
}

function fetchText(url: string, headers: Readonly<Record<string, readonly string[]>>): Promise<string> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? tls : plain;
    const outgoing: Record<string, string[]> = {};
    for (const [name, values] of Object.entries(headers)) outgoing[name] = [...values];
    const signal = AbortSignal.timeout(timeoutMs);
    const verified = { checkServerIdentity: serverIdentityFault };
    const request = send(url, { headers: outgoing, agent: false, signal, ...verified }, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        if (size >= maxManifestBytes) response.destroy(new Error(manifestTooLong));
        else pieces.push(piece);
      });
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString("utf8");
        if (response.statusCode !== 200) reject(new Error(`${url}: ${response.statusCode} ${response.statusMessage ?? ""}`));
        else resolve(text);
      });
    });
    request.on("error", reject);
    onUnsolicitedUpgrade(request, reject);
    request.end();
  });
}

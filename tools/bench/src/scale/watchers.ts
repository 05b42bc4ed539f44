/**
 * Process that opens watches: `watchers.ts <url> <token> <count> <path>`, each on a separate connection. Counts events and ended watches. They
 * ask for protobuf, as informers of Kubernetes' own programs do.
 */
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { openHttp2 } from "../http2-client.ts";
import { serveReports } from "./child.ts";
import { FrameCounter } from "./frame-counter.ts";

export interface WatchCounts {
  readonly events: number;
  readonly bytes: number;
  readonly ended: number;
}

const headers = { accept: protobufMediaType };
const [url = "", token = "", count = "0", path = ""] = process.argv.slice(2);
const counts = { events: 0, bytes: 0, ended: 0 };

async function watch(): Promise<void> {
  const client = await openHttp2(url, token, undefined);
  const frames = new FrameCounter();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = (why: string): void => {
    counts.ended++;
    reject(new Error(`a watch ended before it began: ${why}`));
  };
  client.send(
    { method: "GET", path, headers },
    {
      begun: (status) => (status === 200 ? resolve() : ended(`answered with ${status}`)),
      data(piece) {
        counts.bytes += piece.length;
        counts.events += frames.push(piece);
      },
      ended: () => ended("the server ended it"),
      failed: (err) => ended(err.message),
    },
  );
  await promise;
}

await Promise.all(Array.from({ length: Number(count) }, watch));
serveReports((): WatchCounts => counts);

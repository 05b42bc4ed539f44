/** One question to one other DNS server. */
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { flags } from "./protocol.ts";
import type { Upstream } from "./resolv-conf.ts";
import { newFrameReader, withLength } from "./stream-frames.ts";

interface ExchangeOptions {
  readonly upstream: Upstream;
  readonly request: Buffer;
  /** Whether a message with the request's ID answers this request; others are ignored. */
  readonly isAnswer: (message: Buffer) => boolean;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Queries over UDP, and over TCP when the answer was truncated. The UDP socket has a random port and is connected, so that the
 * kernel drops datagrams of other senders.
 * @throws Error when there is no answer in time
 */
export async function queryUpstream(options: ExchangeOptions): Promise<Buffer> {
  const answer = await overUdp(options);
  return (answer.readUInt16BE(2) & flags.truncated) === 0 ? answer : overTcp(options);
}

function overUdp({ upstream, request, isAnswer, timeoutMs, clock, signal }: ExchangeOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(upstream.address) ? "udp6" : "udp4");
    const end = (settle: () => void): void => {
      timer.cancel();
      signal.removeEventListener("abort", aborted);
      socket.removeAllListeners("message").close();
      settle();
    };
    let isOver = false;
    const once = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      end(settle);
    };
    const aborted = (): void => once(() => reject(signal.reason));
    const timer = clock.after(timeoutMs, () =>
      once(() => reject(new Error(`no answer from ${upstream.address} in ${timeoutMs} ms`))),
    );
    signal.addEventListener("abort", aborted, { once: true });
    socket.on("error", (err) => once(() => reject(err)));
    socket.on("message", (message) => {
      if (isAnswer(message)) once(() => resolve(message));
    });
    socket.connect(upstream.port, upstream.address, () => {
      if (!isOver) socket.send(request, (err) => (err ? once(() => reject(err)) : undefined));
    });
    if (signal.aborted) aborted();
  });
}

function overTcp({ upstream, request, isAnswer, timeoutMs, clock, signal }: ExchangeOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: upstream.address, port: upstream.port });
    const end = (settle: () => void): void => {
      timer.cancel();
      signal.removeEventListener("abort", aborted);
      socket.destroy();
      settle();
    };
    const aborted = (): void => end(() => reject(signal.reason));
    const timer = clock.after(timeoutMs, () =>
      end(() => reject(new Error(`no answer from ${upstream.address} over TCP in ${timeoutMs} ms`))),
    );
    signal.addEventListener("abort", aborted, { once: true });
    const read = newFrameReader(65_535, (message) => {
      if (isAnswer(message)) end(() => resolve(message));
    });
    socket.on("error", (err) => end(() => reject(err)));
    socket.on("close", () => end(() => reject(new Error(`${upstream.address} closed the connection`))));
    socket.on("data", read);
    socket.write(withLength(request));
    if (signal.aborted) aborted();
  });
}

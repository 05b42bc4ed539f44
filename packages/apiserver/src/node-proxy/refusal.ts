/**
 * A server that does not agree to an upgrade. Its answer goes to the client, and nothing of the client's goes to it any
 * more: it would take that for further requests of ours, with whatever our credentials are good for (CVE-2018-1002105).
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go tryUpgrade
 */
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Connection } from "@coxswain/apimachinery/client/connect";

/** A head that is longer has no end for us. */
export const longestHeadBytes = 16_384;

const withinMs = 10_000;

/** @returns where the head ends, before its empty line; -1 when it does not within what may be a head */
export function headEnd(answer: Buffer): number {
  const end = answer.subarray(0, longestHeadBytes + endOfHead.length).indexOf(endOfHead);
  return end > longestHeadBytes ? -1 : end;
}

const endOfHead = "\r\n\r\n";

/**
 * Resolves when the answer was written, or could not be; both connections end then.
 * @param first what came of it so far
 */
export async function returnRefusal(client: Socket, backend: Connection, first: Buffer): Promise<void> {
  const timer = setTimeout(() => backend.destroy(new Error("i/o timeout")), withinMs);
  client.once("close", () => backend.destroy());
  client.resume(); // whatever it sends
  try {
    await pipeline(answerFrom(backend, first), client);
  } catch {
    // Broken off there, and so here: the client must not take what came for the whole.
  } finally {
    clearTimeout(timer);
    client.destroy();
  }
}

/** As far as it says that it goes, or until the server ends the connection. */
async function* answerFrom(backend: Connection, first: Buffer): AsyncGenerator<Buffer> {
  let left = lengthOf(first);
  const taken = (bytes: Buffer): Buffer => {
    const own = bytes.subarray(0, left);
    left -= own.length;
    return own;
  };
  yield taken(first);
  if (left === 0) return;
  for await (const bytes of backend as AsyncIterable<Buffer>) {
    yield taken(bytes);
    if (left === 0) return;
  }
}

/** Of head and body. */
function lengthOf(answer: Buffer): number {
  const end = headEnd(answer);
  const length = end < 0 ? undefined : /^content-length:[ \t]*(\d{1,15})[ \t]*$/im.exec(answer.toString("latin1", 0, end))?.[1];
  return length === undefined ? Number.POSITIVE_INFINITY : end + endOfHead.length + Number(length);
}

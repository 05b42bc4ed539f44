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

/**
 * Lines may end without the carriage return, as Go reads them.
 * @returns where the head ends, before its empty line; -1 when it does not within what may be a head
 * Source: Go net/textproto reader.go readLineSlice
 */
export function headEnd(answer: Buffer): number {
  const { end } = headOf(answer);
  return end > longestHeadBytes ? -1 : end;
}

/** @returns where the head ends, without the end of its last line, and where the body begins; -1 when it has no end yet */
function headOf(answer: Buffer): { end: number; body: number } {
  const head = answer.subarray(0, longestHeadBytes + "\r\n\r\n".length);
  const [bare, usual] = [head.indexOf("\n\n"), head.indexOf("\n\r\n")];
  const lineEnd = bare < 0 || (usual >= 0 && usual < bare) ? usual : bare;
  if (lineEnd < 0) return { end: -1, body: -1 };
  return { end: head[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd, body: lineEnd + (lineEnd === usual ? 3 : 2) };
}

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
  const { end, body } = headOf(answer);
  const length =
    end < 0 ? undefined : /^content-length:[ \t]*(\d{1,15})[ \t]*\r?$/im.exec(answer.toString("latin1", 0, end))?.[1];
  return length === undefined ? Number.POSITIVE_INFINITY : body + Number(length);
}

/**
 * Handles a backend that rejects an upgrade. Its response is relayed to the client, and no more bytes of the client are sent:
 * the backend would parse them as further requests with the API server's credentials (CVE-2018-1002105).
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go tryUpgrade
 */
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Connection } from "@coxswain/apimachinery/transport/connect";

/** Maximum length of a response head. */
export const longestHeadBytes = 16_384;

const withinMs = 10_000;

/**
 * Lines may end in LF without CR, as in Go.
 * @returns the end of the head, before its empty line; -1 when it does not end within the maximum length
 * Source: Go net/textproto reader.go readLineSlice
 */
export function headEnd(answer: Buffer): number {
  const { end } = headOf(answer);
  return end > longestHeadBytes ? -1 : end;
}

/** @returns end of the head without the last line break, and start of the body; -1 when the head is incomplete */
function headOf(answer: Buffer): { end: number; body: number } {
  const head = answer.subarray(0, longestHeadBytes + "\r\n\r\n".length);
  const [bare, usual] = [head.indexOf("\n\n"), head.indexOf("\n\r\n")];
  const lineEnd = bare < 0 || (usual >= 0 && usual < bare) ? usual : bare;
  if (lineEnd < 0) return { end: -1, body: -1 };
  return { end: head[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd, body: lineEnd + (lineEnd === usual ? 3 : 2) };
}

/**
 * Resolves when the response was relayed or failed; both connections are closed then.
 * @param first bytes of the response received so far
 */
export async function returnRefusal(client: Socket, backend: Connection, first: Buffer): Promise<void> {
  const timer = setTimeout(() => backend.destroy(new Error("i/o timeout")), withinMs);
  client.once("close", () => backend.destroy());
  client.resume(); // discards what the client sends
  try {
    await pipeline(answerFrom(backend, first), client);
  } catch {
    // The backend aborted: the client's connection is aborted too, so that it notices the truncation.
  } finally {
    clearTimeout(timer);
    client.destroy();
  }
}

/** The response up to its Content-Length, or until the backend closes the connection. */
async function* answerFrom(backend: Connection, first: Buffer): AsyncGenerator<Buffer> {
  let left = lengthOf(first);
  const taken = (bytes: Buffer): Buffer => {
    const own = bytes.subarray(0, left);
    left -= own.length;
    return own;
  };
  yield taken(first);
  if (left === 0) return;
  // Cast: a connection without an encoding yields Buffers.
  for await (const bytes of backend as AsyncIterable<Buffer>) {
    yield taken(bytes);
    if (left === 0) return;
  }
}

/** Total length of head and body in bytes. */
function lengthOf(answer: Buffer): number {
  const { end, body } = headOf(answer);
  const length =
    end < 0 ? undefined : /^content-length:[ \t]*(\d{1,15})[ \t]*\r?$/im.exec(answer.toString("latin1", 0, end))?.[1];
  return length === undefined ? Number.POSITIVE_INFINITY : body + Number(length);
}
